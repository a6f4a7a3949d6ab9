package demo

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	eventRows   = 20_000
	firstBigID  = 9_007_199_254_740_993 // 2^53 + 1: ids that a float64 cannot hold
	maxTable    = 200_000               // rows of one table
	secretTable = "salaries"
)

type databaseServer struct {
	*serverBase
	w      *demoWorld
	tables []*dataTable
}

func buildDatabase(b *serverBase) map[string]toolFunc {
	d := &databaseServer{serverBase: b, w: newWorld()}
	d.fillTables()
	return map[string]toolFunc{
		"list_tables":     readTool(d.listTables),
		"describe_table":  readTool(d.describeTable),
		"query":           readTool(d.runQuery),
		"explain_query":   readTool(d.explainQuery),
		"list_statements": readTool(d.listStatements),
		"execute":         writeTool(d.executeStatement),
	}
}

func (d *databaseServer) fillTables() {
	sales := makeOrders(d.w)
	sales.name = "orders"
	for i := range sales.cols {
		c := &sales.cols[i]
		c.name = strings.ToLower(strings.ReplaceAll(c.name, " ", "_"))
	}
	d.tables = []*dataTable{sales, d.makeCustomers(), d.makeProducts(), d.makeEmployees(), d.makeEvents(sales)}
}

func (d *databaseServer) makeCustomers() *dataTable {
	t := &dataTable{name: "customers", cols: []tableColumn{
		{name: "id", kind: textKind}, {name: "name", kind: textKind}, {name: "domain", kind: textKind}, {name: "industry", kind: textKind},
		{name: "country", kind: textKind}, {name: "city", kind: textKind}, {name: "employees", kind: integerKind},
		{name: "revenue", kind: integerKind},
	}}
	for _, c := range d.w.companies {
		t.rows = append(t.rows, []any{c.ID, c.Name, c.Domain, c.Industry, c.Country, c.City, int64(c.Employees), int64(c.Revenue)})
	}
	return t
}

func (d *databaseServer) makeProducts() *dataTable {
	t := &dataTable{name: "products", cols: []tableColumn{
		{name: "sku", kind: textKind}, {name: "name", kind: textKind}, {name: "category", kind: textKind}, {name: "price", kind: decimalKind},
	}}
	for _, a := range articleCatalogue() {
		t.rows = append(t.rows, []any{a.sku, a.name, a.category, a.price})
	}
	return t
}

func (d *databaseServer) makeEmployees() *dataTable {
	t := &dataTable{name: "employees", cols: []tableColumn{
		{name: "id", kind: textKind}, {name: "name", kind: textKind}, {name: "email", kind: textKind}, {name: "phone", kind: textKind},
		{name: "title", kind: textKind}, {name: "country", kind: textKind}, {name: "hired", kind: dateKind}, {name: "remote", kind: booleanKind},
	}}
	r := newSeededRand("employees")
	for _, p := range d.w.staff {
		t.rows = append(t.rows, []any{
			p.ID, p.fullName(), p.Email, p.Phone, p.Title, p.Country,
			formatDay(demoToday.AddDate(0, 0, -randomBetween(r, 40, 4000))), r.IntN(3) == 0,
		})
	}
	return t
}

func (d *databaseServer) makeEvents(sales *dataTable) *dataTable {
	t := &dataTable{name: "events", cols: []tableColumn{
		{name: "id", kind: integerKind}, {name: "at", kind: datetimeKind}, {name: "order_id", kind: textKind}, {name: "kind", kind: textKind},
		{name: "actor", kind: textKind},
	}}
	r := newSeededRand("events")
	kinds := []string{"created", "paid", "packed", "shipped", "returned", "note"}
	at := demoToday.AddDate(-1, 0, 0)
	for i := range eventRows {
		at = at.Add(time.Duration(randomBetween(r, 60, 3000)) * time.Second)
		t.rows = append(t.rows, []any{
			int64(firstBigID + 2*i), at.Format(time.RFC3339), pickOne(r, sales.rows)[0], pickOne(r, kinds),
			pickOne(r, d.w.staff).mailName(),
		})
	}
	return t
}

func (d *databaseServer) findTable(name string) (*dataTable, error) {
	if strings.EqualFold(name, secretTable) {
		return nil, fmt.Errorf("permission denied for table %s", secretTable)
	}
	i := slices.IndexFunc(d.tables, func(t *dataTable) bool { return strings.EqualFold(t.name, name) })
	if i >= 0 {
		return d.tables[i], nil
	}
	if err := d.provokedError(name); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range d.tables {
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("relation %q does not exist; there are %s", name, strings.Join(names, ", "))
}

func (d *databaseServer) listTables(struct{}) (toolResult, error) {
	type entry struct {
		Name string `json:"name"`
		Rows int    `json:"rows"`
	}
	var list []entry
	for _, t := range d.tables {
		list = append(list, entry{t.name, len(t.rows)})
	}
	return structuredResult(struct {
		Tables []entry `json:"tables"`
	}{append(list, entry{secretTable, len(d.w.staff)})})
}

func (d *databaseServer) describeTable(in struct {
	Table string `json:"table"`
}) (toolResult, error) {
	t, err := d.findTable(in.Table)
	if err != nil {
		return toolResult{}, err
	}
	type col struct {
		Name   string     `json:"name"`
		Type   columnType `json:"type"`
		Values []string   `json:"values,omitempty"`
	}
	var columns []col
	for _, c := range t.cols {
		columns = append(columns, col{c.name, c.kind, c.options})
	}
	return jsonText(struct {
		Table   string          `json:"table"`
		Rows    int             `json:"rows"`
		Columns []col           `json:"columns"`
		Sample  json.RawMessage `json:"sample"`
	}{t.name, len(t.rows), columns, t.encodeRows(pageByOffset(t.rows, 0, 3))})
}

type statementInput struct {
	SQL     string            `json:"sql"`
	Params  []json.RawMessage `json:"params"`
	MaxRows int               `json:"max_rows"`
}

// parseStatement parses the statement. Numbers among the params keep their digits.
func (in statementInput) parseStatement() (any, error) {
	var params []any
	for _, raw := range in.Params {
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		if _, ok := v.(float64); ok {
			var err error
			if v, err = sqlNumber(string(raw)); err != nil {
				return nil, err
			}
		}
		params = append(params, v)
	}
	return parseSQL(in.SQL, params)
}

func (in statementInput) parseSelect() (*selectStmt, error) {
	statement, err := in.parseStatement()
	if err != nil {
		return nil, err
	}
	s, ok := statement.(*selectStmt)
	if !ok {
		return nil, fmt.Errorf("cannot execute a statement that writes in a read-only transaction; use execute")
	}
	return s, nil
}

func (d *databaseServer) runQuery(in statementInput) (toolResult, error) {
	s, err := in.parseSelect()
	if err != nil {
		return toolResult{}, err
	}
	t, err := d.findTable(s.table)
	if err != nil {
		return toolResult{}, err
	}
	out, err := s.runSelect(t)
	if err != nil {
		return toolResult{}, err
	}
	rows := pageByOffset(out.rows, 0, orDefault(in.MaxRows, 1000))
	return jsonText(struct {
		Columns   []string        `json:"columns"`
		Rows      json.RawMessage `json:"rows"`
		Count     int             `json:"row_count"`
		Truncated bool            `json:"truncated"`
	}{out.colNames(), out.encodeRows(rows), len(rows), len(rows) < len(out.rows)})
}

// explainQuery answers with the plan, in plain text.
func (d *databaseServer) explainQuery(in statementInput) (toolResult, error) {
	s, err := in.parseSelect()
	if err != nil {
		return toolResult{}, err
	}
	t, err := d.findTable(s.table)
	if err != nil {
		return toolResult{}, err
	}
	rows, err := t.matchingRows(s.where)
	if err != nil {
		return toolResult{}, err
	}
	plan := []string{fmt.Sprintf("Seq Scan on %s  (rows=%d)", t.name, len(t.rows))}
	if s.where != nil {
		plan = append(plan, fmt.Sprintf("Filter  (rows=%d)", len(rows)))
	}
	if len(s.group) > 0 {
		plan = append(plan, "HashAggregate  (key="+strings.Join(s.group, ", ")+")")
	}
	if len(s.order) > 0 {
		plan = append(plan, "Sort")
	}
	if s.limit >= 0 {
		plan = append(plan, fmt.Sprintf("Limit  (rows=%d)", s.limit))
	}
	slices.Reverse(plan)
	return textResult("%s", strings.Join(plan, "\n  -> "))
}

func (d *databaseServer) listStatements(in struct {
	Limit int `json:"limit"`
}) (toolResult, error) {
	return jsonText(pageByOffset(d.effectsOn(""), 0, orDefault(in.Limit, 100)))
}

func (d *databaseServer) executeStatement(in statementInput) (toolResult, error) {
	statement, err := in.parseStatement()
	if err != nil {
		return toolResult{}, err
	}
	var name string
	var apply func(*dataTable) (int, error)
	switch s := statement.(type) {
	case *insertStmt:
		name, apply = s.table, s.applyTo
	case *updateStmt:
		name, apply = s.table, s.applyTo
	case *deleteStmt:
		name, apply = s.table, s.applyTo
	default:
		return toolResult{}, fmt.Errorf("execute takes INSERT, UPDATE and DELETE; use query for SELECT")
	}
	t, err := d.findTable(name)
	if err != nil {
		return toolResult{}, err
	}
	rows, err := apply(t)
	if err != nil {
		return toolResult{}, err
	}
	done := d.recordEffect("execute", t.name, "%d rows: %s", rows, bodySnippet(in.SQL))
	return structuredResult(struct {
		Rows        int    `json:"rows_affected"`
		StatementID string `json:"statement_id"`
	}{rows, done.ID})
}

// convertValues converts the values of some columns. It returns an error for the first value that does not fit.
func (t *dataTable) convertValues(names []string, values []any) (map[int]any, error) {
	if len(names) != len(values) {
		return nil, fmt.Errorf("%d columns but %d values", len(names), len(values))
	}
	fitted := map[int]any{}
	for i, name := range names {
		c, err := t.sqlColumn(name)
		if err != nil {
			return nil, err
		}
		if _, twice := fitted[c]; twice {
			return nil, fmt.Errorf("column %q is named twice", name)
		}
		if fitted[c], err = t.cols[c].convertValue(values[i]); err != nil {
			return nil, err
		}
	}
	return fitted, nil
}

// run inserts all rows or none.
func (s *insertStmt) applyTo(t *dataTable) (int, error) {
	if len(t.rows)+len(s.rows) > maxTable {
		return 0, fmt.Errorf("table %s is full: it holds at most %d rows", t.name, maxTable)
	}
	var rows [][]any
	keys := map[any]bool{nil: true}
	for _, values := range s.rows {
		fitted, err := t.convertValues(s.columns, values)
		if err != nil {
			return 0, err
		}
		row := make([]any, len(t.cols))
		for c, v := range fitted {
			row[c] = v
		}
		if keys[row[0]] || t.rowIndex(row[0]) >= 0 {
			return 0, fmt.Errorf("duplicate or missing key: %s.%s must be unique and not null", t.name, t.cols[0].name)
		}
		keys[row[0]] = true
		rows = append(rows, row)
	}
	t.rows = append(t.rows, rows...)
	return len(rows), nil
}

func (s *updateStmt) applyTo(t *dataTable) (int, error) {
	fitted, err := t.convertValues(s.names, s.values)
	if err != nil {
		return 0, err
	}
	if _, key := fitted[0]; key {
		return 0, fmt.Errorf("%s.%s is the key and cannot be changed", t.name, t.cols[0].name)
	}
	rows, err := t.matchingRows(s.where)
	for _, row := range rows {
		for c, v := range fitted {
			row[c] = v
		}
	}
	return len(rows), err
}

func (s *deleteStmt) applyTo(t *dataTable) (int, error) {
	rows, err := t.matchingRows(s.where)
	if err != nil {
		return 0, err
	}
	gone := map[any]bool{}
	for _, row := range rows {
		gone[row[0]] = true
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []any) bool { return gone[row[0]] })
	return len(rows), nil
}
