package demo

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const booleanType = "BOOLEAN"

// start opens SQLite and creates the tables without rows.
func (d *sqlDatabase) start(ctx context.Context) error {
	if d.pool != nil {
		return nil
	}
	pool, err := sql.Open("sqlite", "file::memory:?_dqs=0")
	if err != nil {
		return err
	}
	conn, err := pool.Conn(ctx)
	if err != nil {
		return errors.Join(err, pool.Close())
	}
	d.conn, d.guard = conn, &statementGuard{keys: map[string]string{}}
	if err := d.prepare(context.WithoutCancel(ctx)); err != nil {
		return errors.Join(err, conn.Close(), pool.Close())
	}
	d.pool = pool
	return nil
}

// prepare creates the tables and sets SQLite's limits for the size and complexity of statements.
func (d *sqlDatabase) prepare(ctx context.Context) error {
	statements := []string{
		"PRAGMA temp_store = MEMORY", fmt.Sprintf("PRAGMA max_page_count = %d", maxPages),
		"CREATE TABLE " + secretTable + " (id TEXT, salary REAL)",
	}
	for _, t := range d.tables {
		statements = append(statements, t.definition())
		d.guard.keys[t.name] = t.cols[0].name
	}
	for _, s := range statements {
		if _, err := d.conn.ExecContext(ctx, s); err != nil {
			return err
		}
	}
	for id, value := range map[int]int{
		sqlite3.SQLITE_LIMIT_LENGTH: maxValue, sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 500, sqlite3.SQLITE_LIMIT_ATTACHED: 0,
		sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100, sqlite3.SQLITE_LIMIT_COLUMN: 100,
	} {
		if _, err := sqlite.Limit(d.conn, id, value); err != nil {
			return err
		}
	}
	return d.conn.Raw(func(conn any) error {
		registerer, ok := conn.(sqlite.AuthorizerRegisterer)
		if !ok {
			return errors.New("the driver of SQLite has no authorizer")
		}
		return registerer.RegisterAuthorizer(d.guard.authorize)
	})
}

// definition returns the CREATE TABLE statement of the table. The names of its constraints are messages that
// explain why a value is invalid.
func (t *dataTable) definition() string {
	var columns []string
	for i, c := range t.cols {
		kind, message, check := c.constraint()
		if i == 0 {
			kind += " NOT NULL PRIMARY KEY"
		}
		columns = append(columns, fmt.Sprintf(`%s %s CONSTRAINT "%s %s" CHECK (%s)`, c.name, kind, c.name, message, check))
	}
	return fmt.Sprintf("CREATE TABLE %s (%s)", t.name, strings.Join(columns, ", "))
}

// constraint returns the SQLite type of a column, the condition that its values must meet, and a message for values
// that do not.
func (c tableColumn) constraint() (kind, message, check string) {
	message = "must be of type " + string(c.kind)
	switch c.kind {
	case integerKind:
		return "INT", message, fmt.Sprintf("typeof(%s) IN ('integer', 'null')", c.name)
	case decimalKind:
		return "REAL", message, fmt.Sprintf("typeof(%s) IN ('real', 'null') AND abs(%[1]s) <= %g", c.name, maxDecimal)
	case booleanKind:
		return booleanType, message, c.name + " IN (FALSE, TRUE)"
	case dateKind:
		return "TEXT", message, fmt.Sprintf("date(%s) IS %[1]s", c.name)
	case datetimeKind:
		return "TEXT", message + " in UTC", fmt.Sprintf("strftime('%%Y-%%m-%%dT%%H:%%M:%%SZ', %s) IS %[1]s", c.name)
	}
	if len(c.options) > 0 {
		return "TEXT", "must be one of " + strings.Join(c.options, ", "), c.name + " IN ('" + strings.Join(c.options, "', '") + "')"
	}
	return "TEXT", message, fmt.Sprintf("typeof(%s) IN ('text', 'null')", c.name)
}

// fill inserts the rows of those tables that are still empty.
func (d *sqlDatabase) fill(ctx context.Context, names []string) error {
	for _, t := range d.tables {
		if d.filled[t.name] || !slices.Contains(names, t.name) {
			continue
		}
		if err := d.insertRows(context.WithoutCancel(ctx), t); err != nil {
			return err
		}
		d.filled[t.name] = true
		t.rows = nil // they are in SQLite now
	}
	return nil
}

func (d *sqlDatabase) insertRows(ctx context.Context, t *dataTable) (err error) {
	d.guard.trusted = true
	defer func() { d.guard.trusted = false }()
	tx, err := d.conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tx.Rollback())
		}
	}()
	insert, err := tx.PrepareContext(ctx, fmt.Sprintf("INSERT INTO %s VALUES (?%s)", t.name, strings.Repeat(", ?", len(t.cols)-1)))
	if err != nil {
		return err
	}
	for _, row := range t.rows {
		if _, err := insert.ExecContext(ctx, row...); err != nil {
			return errors.Join(err, insert.Close())
		}
	}
	if err := insert.Close(); err != nil {
		return err
	}
	return tx.Commit()
}

// runTrusted runs a statement of the server itself, to which the rules for clients' statements do not apply.
func (d *sqlDatabase) runTrusted(ctx context.Context, statement string) error {
	d.guard.trusted = true
	defer func() { d.guard.trusted = false }()
	_, err := d.conn.ExecContext(ctx, statement)
	return err
}

// countRows returns the number of rows of a table.
func (d *sqlDatabase) countRows(ctx context.Context, t *dataTable) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.filled[t.name] {
		return len(t.rows), nil
	}
	return d.storedRows(ctx, t.name)
}

func (d *sqlDatabase) storedRows(ctx context.Context, table string) (rows int, err error) {
	d.guard.trusted = true
	defer func() { d.guard.trusted = false }()
	err = d.conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&rows)
	return rows, err
}
