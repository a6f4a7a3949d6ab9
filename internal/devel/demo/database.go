package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	eventRows   = 20_000
	firstBigID  = 9_007_199_254_740_993 // 2^53 + 1: a float64 cannot represent these IDs
	maxTable    = 50_000                // rows of one table
	secretTable = "salaries"
)

type databaseServer struct {
	*serverBase
	w      *demoWorld
	tables []*dataTable
	sql    *sqlDatabase
}

func buildDatabase(b *serverBase) map[string]toolFunc {
	d := &databaseServer{serverBase: b, w: newWorld()}
	d.makeTables()
	d.sql = newSQLDatabase(d.tables)
	b.close = d.sql.close
	return map[string]toolFunc{
		"list_tables":     {call: decodeArguments(d.listTables)},
		"describe_table":  {call: decodeArguments(d.describeTable)},
		"query":           {call: decodeArguments(d.runQuery)},
		"explain_query":   {call: decodeArguments(d.explainQuery)},
		"list_statements": readTool(d.listStatements),
		"execute":         {writes: true, call: decodeArguments(d.executeStatement)},
	}
}

func (d *databaseServer) makeTables() {
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

// explainError returns the error that the database server reports for err. If a table does not exist, the error lists
// the existing tables. For the reserved table names "forbidden" and "rate-limited" it is the error that they cause on
// purpose.
func (d *databaseServer) explainError(err error) error {
	var missing missingTableError
	if errors.As(err, &missing) {
		if err := d.provokedError(string(missing)); err != nil {
			return err
		}
		return fmt.Errorf("%w; there are %s", missing, strings.Join(d.tableNames(), ", "))
	}
	return err
}

func (d *databaseServer) findTable(name string) (*dataTable, error) {
	if strings.EqualFold(name, secretTable) {
		return nil, errSecretTable
	}
	i := slices.IndexFunc(d.tables, func(t *dataTable) bool { return strings.EqualFold(t.name, name) })
	if i < 0 {
		return nil, d.explainError(missingTableError(name))
	}
	return d.tables[i], nil
}

func (d *databaseServer) tableNames() (names []string) {
	for _, t := range d.tables {
		names = append(names, t.name)
	}
	return names
}

func (d *databaseServer) listTables(ctx context.Context, _ struct{}) (toolResult, error) {
	type entry struct {
		Name string `json:"name"`
		Rows int    `json:"rows"`
	}
	var list []entry
	for _, t := range d.tables {
		rows, err := d.sql.countRows(ctx, t)
		if err != nil {
			return toolResult{}, err
		}
		list = append(list, entry{t.name, rows})
	}
	return structuredResult(struct {
		Tables []entry `json:"tables"`
	}{append(list, entry{secretTable, len(d.w.staff)})})
}

func (d *databaseServer) describeTable(ctx context.Context, in struct {
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
	rows, err := d.sql.countRows(ctx, t)
	if err != nil {
		return toolResult{}, err
	}
	sample, err := d.sql.query(ctx, statementInput{SQL: "SELECT * FROM " + t.name}, 3)
	if err != nil {
		return toolResult{}, err
	}
	return jsonText(struct {
		Table   string          `json:"table"`
		Rows    int             `json:"rows"`
		Columns []col           `json:"columns"`
		Sample  json.RawMessage `json:"sample"`
	}{t.name, rows, columns, sample.encodeRows(pageByOffset(sample.rows, 0, 3))})
}

func (d *databaseServer) runQuery(ctx context.Context, in statementInput) (toolResult, error) {
	limit := orDefault(in.MaxRows, 1000)
	out, err := d.sql.query(ctx, in, limit)
	if err != nil {
		return toolResult{}, d.explainError(err)
	}
	rows := pageByOffset(out.rows, 0, limit)
	return jsonText(struct {
		Columns   []string        `json:"columns"`
		Rows      json.RawMessage `json:"rows"`
		Count     int             `json:"row_count"`
		Truncated bool            `json:"truncated"`
	}{out.colNames(), out.encodeRows(rows), len(rows), len(rows) < len(out.rows)})
}

// explainQuery returns the plan of a query as text.
func (d *databaseServer) explainQuery(ctx context.Context, in statementInput) (toolResult, error) {
	plan, err := d.sql.explain(ctx, in)
	if err != nil {
		return toolResult{}, d.explainError(err)
	}
	return textResult("QUERY PLAN\n%s", strings.Join(plan, "\n"))
}

func (d *databaseServer) listStatements(in struct {
	Limit int `json:"limit"`
}) (toolResult, error) {
	return jsonText(pageByOffset(d.effectsOn(""), 0, orDefault(in.Limit, 100)))
}

func (d *databaseServer) executeStatement(ctx context.Context, in statementInput) (toolResult, error) {
	table, rows, err := d.sql.execute(ctx, in)
	if err != nil {
		return toolResult{}, d.explainError(err)
	}
	done := d.recordEffect("execute", table, "%d rows: %s", rows, bodySnippet(in.SQL))
	return structuredResult(struct {
		Rows        int    `json:"rows_affected"`
		StatementID string `json:"statement_id"`
	}{rows, done.ID})
}
