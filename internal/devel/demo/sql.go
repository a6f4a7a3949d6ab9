package demo

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	statementTimeout = 5 * time.Second
	maxValue         = 4 << 10  // bytes of a value and of a row; this also bounds the memory of a sort
	maxParams        = 1 << 20  // bytes of a statement's parameters
	maxResult        = 16 << 20 // bytes of the values of a result
	maxPages         = 16 << 10 // pages of 4 KiB in the database
)

// sqlDatabase holds tables in an in-memory SQLite database. It starts SQLite for the first statement, and fills a
// table with its rows before the first statement that names the table. Statements run one at a time.
type sqlDatabase struct {
	tables  []*dataTable
	timeout time.Duration // of one statement

	mu     sync.Mutex
	pool   *sql.DB // nil before the first statement
	conn   *sql.Conn
	guard  *statementGuard
	filled map[string]bool
}

func newSQLDatabase(tables []*dataTable) *sqlDatabase {
	return &sqlDatabase{tables: tables, timeout: statementTimeout, filled: map[string]bool{}}
}

func (d *sqlDatabase) close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pool == nil {
		return nil
	}
	return errors.Join(d.conn.Close(), d.pool.Close())
}

type statementInput struct {
	SQL     string            `json:"sql"`
	Params  []json.RawMessage `json:"params"`
	MaxRows int               `json:"max_rows"`
}

// decodeParams returns the parameters of a statement in the form that SQLite takes. Integers keep all of their
// digits.
func (in statementInput) decodeParams() (params []any, err error) {
	size := 0
	for _, raw := range in.Params {
		if size += len(raw); size > maxParams {
			return nil, fmt.Errorf("the params have more than %d bytes", maxParams)
		}
		var v any
		if err := json.Unmarshal(raw, &v); err != nil {
			return nil, err
		}
		if _, ok := v.(float64); ok && !strings.ContainsAny(string(raw), ".eE") {
			var whole int64
			if err := json.Unmarshal(raw, &whole); err != nil {
				return nil, fmt.Errorf("the number %.30s is out of range", raw)
			}
			v = whole
		}
		params = append(params, v)
	}
	return params, nil
}

// query returns the rows of a SELECT, but no more than limit+1. The row after the limit shows the caller that there
// are more rows than limit.
func (d *sqlDatabase) query(ctx context.Context, in statementInput, limit int) (out *dataTable, err error) {
	err = d.run(ctx, in, false, func(ctx context.Context, params []any) error {
		rows, err := d.conn.QueryContext(ctx, in.SQL, params...)
		if err != nil {
			return err
		}
		defer rows.Close()
		out, err = readResult(rows, limit+1)
		return err
	})
	return out, err
}

// explain returns SQLite's query plan of a SELECT, one line for each step.
func (d *sqlDatabase) explain(ctx context.Context, in statementInput) (plan []string, err error) {
	err = d.run(ctx, in, false, func(ctx context.Context, params []any) error {
		plan, err = d.plan(ctx, in.SQL, params)
		return err
	})
	return plan, err
}

// execute runs an INSERT, UPDATE or DELETE as a whole or not at all.
func (d *sqlDatabase) execute(ctx context.Context, in statementInput) (table string, changed int, err error) {
	err = d.run(ctx, in, true, func(ctx context.Context, params []any) error {
		if table = d.guard.written; table == "" {
			return errors.New("execute takes INSERT, UPDATE and DELETE; use query for SELECT")
		}
		changed, err = d.change(ctx, table, in.SQL, params)
		return err
	})
	return table, changed, err
}

func (d *sqlDatabase) change(ctx context.Context, table, statement string, params []any) (changed int, err error) {
	if err := d.runTrusted(ctx, "BEGIN"); err != nil {
		return 0, err
	}
	defer func() {
		end := "COMMIT"
		if err != nil {
			end = "ROLLBACK"
		}
		err = errors.Join(err, d.runTrusted(context.WithoutCancel(ctx), end))
	}()
	result, err := d.conn.ExecContext(ctx, statement, params...)
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	if err != nil {
		return 0, err
	}
	rows, err := d.storedRows(ctx, table)
	if err == nil && rows > maxTable {
		err = fmt.Errorf("table %s is full: it holds at most %d rows", table, maxTable)
	}
	return int(n), err
}

// run checks a client's statement, fills the tables that it names, and then calls work. The context passed to work
// ends after the timeout of statements.
func (d *sqlDatabase) run(ctx context.Context, in statementInput, write bool, work func(context.Context, []any) error) error {
	params, err := in.decodeParams()
	if err == nil {
		err = checkStatement(in.SQL, len(params))
	}
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.start(ctx); err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	d.guard.reset(write)
	if _, err = d.plan(limited, in.SQL, params); err == nil {
		err = d.fill(limited, d.guard.named)
	}
	if err == nil {
		err = work(limited, params)
	}
	if ctx.Err() == nil && limited.Err() != nil {
		return fmt.Errorf("canceling the statement: it took longer than %v", d.timeout)
	}
	if d.guard.refused != nil {
		return d.guard.refused
	}
	return plainError(err)
}

// plan lets SQLite plan a statement without running it, so that the statementGuard learns what the statement would
// do. It refuses statements that scan more than one table, because their running time has no useful bound.
func (d *sqlDatabase) plan(ctx context.Context, statement string, params []any) (lines []string, err error) {
	rows, err := d.conn.QueryContext(ctx, "EXPLAIN QUERY PLAN "+statement, params...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	depth, alternatives := map[int]int{}, map[int]bool{} // alternatives: steps of one table, by the parts of an OR
	scans := 0
	for rows.Next() {
		var id, parent, unused int
		var step string
		if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
			return nil, err
		}
		lines = append(lines, strings.Repeat("  ", depth[parent])+step)
		depth[id] = depth[parent] + 1
		alternatives[id] = alternatives[parent] || step == "MULTI-INDEX OR"
		if step == "MULTI-INDEX OR" || isScan(step) && !alternatives[parent] {
			scans++
		}
	}
	if scans > 1 {
		return nil, errors.New("the statement goes through several tables; joins, subqueries and unions of tables are not supported")
	}
	return lines, rows.Err()
}

// isScan reports whether a step of a query plan scans or searches a table.
func isScan(step string) bool {
	return (strings.HasPrefix(step, "SCAN ") || strings.HasPrefix(step, "SEARCH ")) && !strings.HasSuffix(step, "CONSTANT ROW")
}

func readResult(rows *sql.Rows, limit int) (*dataTable, error) {
	types, err := rows.ColumnTypes()
	if err != nil {
		return nil, err
	}
	out := &dataTable{}
	values, places := make([]any, len(types)), make([]any, len(types))
	for i, c := range types {
		if slices.Contains(out.colNames(), c.Name()) {
			return nil, fmt.Errorf("the result has two columns %q; name one with AS", c.Name())
		}
		out.cols = append(out.cols, tableColumn{name: c.Name()})
		places[i] = &values[i]
	}
	size := 0
	for len(out.rows) < limit && rows.Next() {
		if err := rows.Scan(places...); err != nil {
			return nil, err
		}
		row := slices.Clone(values)
		for i, v := range row {
			if row[i], err = resultValue(v, types[i].DatabaseTypeName()); err != nil {
				return nil, fmt.Errorf("%s %w", out.cols[i].name, err)
			}
			size += valueSize(row[i])
		}
		if size > maxResult {
			return nil, fmt.Errorf("the result has more than %d bytes; select fewer columns or rows", maxResult)
		}
		out.rows = append(out.rows, row)
	}
	return out, rows.Err()
}

func valueSize(v any) int {
	if s, ok := v.(string); ok {
		return 16 + len(s)
	}
	return 16
}

// resultValue converts a value of SQLite. Decimals are rounded to four digits.
func resultValue(v any, declared string) (any, error) {
	switch x := v.(type) {
	case int64:
		if declared == booleanType {
			return x != 0, nil
		}
	case float64:
		if math.IsInf(x, 0) || math.IsNaN(x) {
			return nil, errors.New("is out of range")
		}
		if math.Abs(x) < 1e11 {
			return math.Round(x*1e4) / 1e4, nil
		}
	case []byte:
		return nil, errors.New("is a blob; select text or numbers")
	}
	return v, nil
}

// missingTableError is the error for a table that does not exist. It holds the table's name.
type missingTableError string

func (e missingTableError) Error() string {
	return fmt.Sprintf("relation %q does not exist", string(e))
}

// plainError returns an error of SQLite without its technical parts, such as error codes. To some errors it adds
// advice.
func plainError(err error) error {
	var failed *sqlite.Error
	if !errors.As(err, &failed) {
		return err
	}
	text := failed.Error()
	if i := strings.LastIndex(text, " ("); i > 0 {
		text = text[:i]
	}
	for _, prefix := range []string{"SQL logic error: ", "constraint failed: ", "CHECK constraint failed: "} {
		text = strings.TrimPrefix(text, prefix)
	}
	if name, missing := strings.CutPrefix(text, "no such table: "); missing {
		return missingTableError(name)
	}
	switch {
	case strings.HasPrefix(text, "no such column: "):
		text += "; describe_table lists the columns of a table"
	case strings.HasPrefix(text, `near "ILIKE"`):
		text += "; LIKE ignores case"
	case failed.Code()&0xff == sqlite3.SQLITE_TOOBIG:
		text += fmt.Sprintf("; a value and a row may have %d bytes", maxValue)
	}
	return errors.New(text)
}
