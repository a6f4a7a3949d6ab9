package demo

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

const maxCells = 2_000_000 // cells of one spreadsheet

type sheetServer struct {
	*serverBase
	w     *demoWorld
	books []*sheetWorkbook
}

type sheetWorkbook struct {
	ID      string
	Title   string
	Version int
	Tabs    []*dataTable
}

func buildSheets(b *serverBase) map[string]toolFunc {
	s := &sheetServer{serverBase: b, w: newWorld()}
	s.fillWorkbooks()
	return map[string]toolFunc{
		"list_spreadsheets": readTool(s.listWorkbooks),
		"get_spreadsheet":   readTool(s.getWorkbook),
		"read_range":        readTool(s.readRange),
		"read_rows":         readTool(s.readRows),
		"list_revisions":    readTool(s.listRevisions),
		"append_rows":       writeTool(s.appendRows),
		"update_range":      writeTool(s.updateRange),
		"clear_range":       writeTool(s.clearRange),
		"add_sheet":         writeTool(s.addSheet),
	}
}

func (s *sheetServer) fillWorkbooks() {
	s.books = append(s.books, &sheetWorkbook{
		ordersSheet, "Orders 2025-2026", 1, []*dataTable{renameTable(makeOrders(s.w), "Orders"), s.makeTargets()},
	})
	r := newSeededRand("sheets")
	for i := range 30 {
		t := &dataTable{name: "Readings", cols: []tableColumn{
			{name: "Sensor", kind: textKind}, {name: "Date", kind: dateKind}, {name: "Mean", kind: decimalKind}, {name: "Alarms", kind: integerKind},
		}}
		for j := range 120 {
			t.rows = append(t.rows, []any{
				fmt.Sprintf("S-%04d", i*10+j%10), formatDay(demoToday.AddDate(0, 0, -j/10)),
				float64(randomBetween(r, -2000, 2500)) / 100, int64(r.IntN(4)),
			})
		}
		s.books = append(s.books, &sheetWorkbook{fmt.Sprintf("readings-%02d", i+1), "Readings " + s.w.companies[i].Name, 1, []*dataTable{t}})
	}
}

func renameTable(t *dataTable, name string) *dataTable { t.name = name; return t }

// makeTargets returns a small sheet of sales targets for the orders.
func (s *sheetServer) makeTargets() *dataTable {
	t := &dataTable{
		name: "Targets",
		cols: []tableColumn{{name: "Region", kind: textKind}, {name: "Quarter", kind: textKind}, {name: "Target", kind: decimalKind}},
	}
	for i, region := range regions {
		for q := range 4 {
			t.rows = append(t.rows, []any{region, fmt.Sprintf("2026-Q%d", q+1), float64(900_000 - i*150_000 + q*40_000)})
		}
	}
	return t
}

func (s *sheetServer) findWorkbook(id string) (*sheetWorkbook, error) {
	i := slices.IndexFunc(s.books, func(b *sheetWorkbook) bool { return b.ID == id })
	if i < 0 {
		return nil, s.missingError("spreadsheet", id)
	}
	return s.books[i], nil
}

// findSheet finds a sheet by its name. An empty name means the first sheet.
func (s *sheetServer) findSheet(id, name string) (*sheetWorkbook, *dataTable, error) {
	b, err := s.findWorkbook(id)
	if err != nil {
		return nil, nil, err
	}
	for _, t := range b.Tabs {
		if name == "" || strings.EqualFold(t.name, name) {
			return b, t, nil
		}
	}
	return nil, nil, fmt.Errorf("400 Bad request: '%s' has no sheet '%s'", id, name)
}

func (s *sheetServer) listWorkbooks(in struct {
	Query     string `json:"query"`
	PageToken string `json:"pageToken"`
}) (toolResult, error) {
	type entry struct {
		ID    string `json:"spreadsheetId"`
		Title string `json:"title"`
	}
	var found []entry
	for _, b := range s.books {
		if containsFold(b.Title, in.Query) {
			found = append(found, entry{b.ID, b.Title})
		}
	}
	page, next, err := pageByToken(found, "books:"+in.Query, in.PageToken, 20)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		Spreadsheets []entry `json:"spreadsheets"`
		Next         string  `json:"nextPageToken,omitempty"`
	}{page, next})
}

func (s *sheetServer) getWorkbook(in struct {
	ID string `json:"spreadsheetId"`
}) (toolResult, error) {
	b, err := s.findWorkbook(in.ID)
	if err != nil {
		return toolResult{}, err
	}
	type tab struct {
		Name    string   `json:"name"`
		Rows    int      `json:"rowCount"`
		Columns []string `json:"columns"`
	}
	var tabs []tab
	for _, t := range b.Tabs {
		tabs = append(tabs, tab{t.name, len(t.rows), t.colNames()})
	}
	return structuredResult(struct {
		ID      string `json:"spreadsheetId"`
		Title   string `json:"title"`
		Version int    `json:"version"`
		Sheets  []tab  `json:"sheets"`
	}{b.ID, b.Title, b.Version, tabs})
}

// cellRange represents a range of cells. Row 0 holds the titles. The end row and end column are exclusive.
type cellRange struct {
	book           *sheetWorkbook
	tab            *dataTable
	r0, c0, r1, c1 int
}

var a1 = regexp.MustCompile(`^(?:([^!]+)!)?(?:([A-Z]{1,2})(\d{1,6})?(?::([A-Z]{1,2})(\d{1,6})?)?)?$`)

// parseRange parses A1 notation: Orders!A1:C10, A:C, B2, Orders!.
func (s *sheetServer) parseRange(id, text string) (cellRange, error) {
	m := a1.FindStringSubmatch(text)
	if m == nil {
		if _, t, err := s.findSheet(id, text); err == nil { // the name of a sheet alone
			m = []string{"", t.name, "", "", "", ""}
		} else if _, err := s.findWorkbook(id); err != nil {
			return cellRange{}, err
		} else {
			return cellRange{}, fmt.Errorf("400 Bad request: unable to parse range '%s'; an example is Orders!A1:C10", text)
		}
	}
	b, t, err := s.findSheet(id, strings.Trim(m[1], "'"))
	if err != nil {
		return cellRange{}, err
	}
	x := cellRange{b, t, 0, 0, len(t.rows) + 1, len(t.cols)}
	if m[2] != "" {
		x.c0, x.c1 = columnIndex(m[2]), columnIndex(m[2])+1
		if m[4] != "" {
			x.c1 = columnIndex(m[4]) + 1
		}
	}
	if row, _ := strconv.Atoi(m[3]); row > 0 {
		x.r0, x.r1 = row-1, row
		if m[4] != "" {
			x.r1 = len(t.rows) + 1
		}
	}
	if row, _ := strconv.Atoi(m[5]); row > 0 {
		x.r1 = row
	}
	if x.r0 >= x.r1 || x.c0 >= x.c1 || x.c1 > len(t.cols) {
		return cellRange{}, fmt.Errorf(
			"400 Bad request: range '%s' exceeds the grid of '%s', which has %d rows and %d columns", text, t.name,
			len(t.rows)+1, len(t.cols),
		)
	}
	return x, nil
}

// columnIndex returns the index of a column: A is 0, Z is 25, AA is 26.
func columnIndex(s string) int {
	n := 0
	for _, c := range s {
		n = n*26 + int(c-'A') + 1
	}
	return n - 1
}

func (s *sheetServer) readRange(in struct {
	ID     string `json:"spreadsheetId"`
	Range  string `json:"range"`
	Render string `json:"valueRenderOption"`
}) (toolResult, error) {
	x, err := s.parseRange(in.ID, in.Range)
	if err != nil {
		return toolResult{}, err
	}
	values := [][]any{}
	for r := x.r0; r < min(x.r1, len(x.tab.rows)+1); r++ {
		row := make([]any, 0, x.c1-x.c0)
		for c := x.c0; c < x.c1; c++ {
			row = append(row, x.cellValue(r, c, in.Render == "FORMATTED_VALUE"))
		}
		values = append(values, row)
	}
	return jsonText(struct {
		Range  string  `json:"range"`
		Values [][]any `json:"values"`
	}{in.Range, values})
}

func (x cellRange) cellValue(r, c int, formatted bool) any {
	if r == 0 {
		return x.tab.cols[c].name
	}
	v := x.tab.rows[r-1][c]
	if n, ok := v.(float64); ok && formatted {
		return fmt.Sprintf("%.2f", n)
	}
	if v == nil {
		return ""
	}
	return v
}

func (s *sheetServer) readRows(in struct {
	ID      string            `json:"spreadsheetId"`
	Sheet   string            `json:"sheet"`
	Filters []filterCondition `json:"filters"`
	OrderBy sortOrder         `json:"orderBy"`
	Offset  int               `json:"offset"`
	Limit   int               `json:"limit"`
}) (toolResult, error) {
	_, t, err := s.findSheet(in.ID, in.Sheet)
	if err != nil {
		return toolResult{}, err
	}
	found, err := t.filterRows(in.Filters, in.OrderBy)
	if err != nil {
		return toolResult{}, err
	}
	page := pageByOffset(found, in.Offset, orDefault(in.Limit, 500))
	return structuredResult(struct {
		Columns []string        `json:"columns"`
		Rows    json.RawMessage `json:"rows"`
		Total   int             `json:"total"`
		HasMore bool            `json:"has_more"`
	}{t.colNames(), t.encodeRows(page), len(found), in.Offset+len(page) < len(found)})
}

func (s *sheetServer) listRevisions(in struct {
	ID    string `json:"spreadsheetId"`
	Limit int    `json:"limit"`
}) (toolResult, error) {
	b, err := s.findWorkbook(in.ID)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		Version   int              `json:"version"`
		Revisions []RecordedEffect `json:"revisions"`
	}{b.Version, pageByOffset(s.effectsOn(b.ID), 0, orDefault(in.Limit, 100))})
}

type sheetChange struct {
	ID      string `json:"spreadsheetId"`
	Version int    `json:"version"`
	Cells   int    `json:"updatedCells"`
}

func (s *sheetServer) recordChange(b *sheetWorkbook, tool string, cells int, format string, args ...any) (toolResult, error) {
	b.Version++
	s.recordEffect(tool, b.ID, format, args...)
	return structuredResult(sheetChange{b.ID, b.Version, cells})
}

// convertCells converts rows of values to those that the columns of the table can store. The first value of each row
// belongs to the column with index c0. It returns an error if a value does not fit its column.
func (t *dataTable) convertCells(values [][]any, c0 int) ([][]any, error) {
	fitted := make([][]any, len(values))
	for i, row := range values {
		if c0+len(row) > len(t.cols) {
			return nil, fmt.Errorf("400 Bad request: row %d has %d values for %d columns", i+1, len(row), len(t.cols)-c0)
		}
		fitted[i] = make([]any, len(row))
		for j, v := range row {
			var err error
			if fitted[i][j], err = t.cols[c0+j].convertValue(v); err != nil {
				return nil, fmt.Errorf("400 Bad request: row %d: %w", i+1, err)
			}
		}
	}
	return fitted, nil
}

func (s *sheetServer) appendRows(in struct {
	ID    string  `json:"spreadsheetId"`
	Sheet string  `json:"sheet"`
	Rows  [][]any `json:"rows"`
}) (toolResult, error) {
	b, t, err := s.findSheet(in.ID, in.Sheet)
	if err != nil {
		return toolResult{}, err
	}
	rows, err := t.convertCells(in.Rows, 0)
	if err != nil {
		return toolResult{}, err
	}
	if (len(t.rows)+len(rows))*len(t.cols) > maxCells {
		return toolResult{}, fmt.Errorf("400 Bad request: a sheet has at most %d cells", maxCells)
	}
	cells := 0
	for _, row := range rows {
		cells += len(row)
		t.rows = append(t.rows, append(row, make([]any, len(t.cols)-len(row))...))
	}
	return s.recordChange(b, "append_rows", cells, "%d rows to %s", len(rows), t.name)
}

func (s *sheetServer) updateRange(in struct {
	ID     string  `json:"spreadsheetId"`
	Range  string  `json:"range"`
	Values [][]any `json:"values"`
}) (toolResult, error) {
	x, err := s.parseRange(in.ID, in.Range)
	if err != nil {
		return toolResult{}, err
	}
	if x.r0 == 0 || x.r0+len(in.Values) > len(x.tab.rows)+1 {
		return toolResult{}, fmt.Errorf(
			"400 Bad request: the values must lie in the rows 2 to %d; use append_rows for new ones", len(x.tab.rows)+1,
		)
	}
	values, err := x.tab.convertCells(in.Values, x.c0)
	if err != nil {
		return toolResult{}, err
	}
	cells := 0
	for i, row := range values {
		cells += copy(x.tab.rows[x.r0-1+i][x.c0:], row)
	}
	return s.recordChange(x.book, "update_range", cells, "%s", in.Range)
}

func (s *sheetServer) clearRange(in struct {
	ID    string `json:"spreadsheetId"`
	Range string `json:"range"`
}) (toolResult, error) {
	x, err := s.parseRange(in.ID, in.Range)
	if err != nil {
		return toolResult{}, err
	}
	cells := 0
	for r := max(x.r0, 1); r < min(x.r1, len(x.tab.rows)+1); r++ {
		clear(x.tab.rows[r-1][x.c0:x.c1])
		cells += x.c1 - x.c0
	}
	return s.recordChange(x.book, "clear_range", cells, "%s", in.Range)
}

func (s *sheetServer) addSheet(in struct {
	ID      string   `json:"spreadsheetId"`
	Name    string   `json:"name"`
	Columns []string `json:"columns"`
}) (toolResult, error) {
	b, err := s.findWorkbook(in.ID)
	if err != nil {
		return toolResult{}, err
	}
	if slices.ContainsFunc(b.Tabs, func(t *dataTable) bool { return strings.EqualFold(t.name, in.Name) }) {
		return toolResult{}, fmt.Errorf("409 Conflict: '%s' has a sheet '%s' already", b.ID, in.Name)
	}
	t := &dataTable{name: in.Name}
	for _, c := range in.Columns {
		t.cols = append(t.cols, tableColumn{name: c, kind: textKind})
	}
	b.Tabs = append(b.Tabs, t)
	return s.recordChange(b, "add_sheet", 0, "%s", in.Name)
}
