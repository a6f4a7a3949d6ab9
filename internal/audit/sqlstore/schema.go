package sqlstore

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"retort/internal/core"
)

// schemaFiles holds the migrations: file n migrates a database from version n-1 to version n, for n = 1, 2, … A
// released migration must never be changed.
//
//go:embed schema/*.sql
var schemaFiles embed.FS

func migrationSteps(dialect string) (all []string) {
	for n := 1; ; n++ {
		step, err := schemaFiles.ReadFile(fmt.Sprintf("schema/%s-%d.sql", dialect, n))
		if err != nil {
			return all // it was the last one
		}
		all = append(all, string(step))
	}
}

// runMigrations migrates a database to the newest schema. The caller must have begun a transaction that keeps other
// processes from migrating at the same time.
func runMigrations(ctx context.Context, c *sql.Conn, name string, steps []string) error {
	if _, err := c.ExecContext(ctx, "CREATE TABLE IF NOT EXISTS version (version INTEGER NOT NULL)"); err != nil {
		return err
	}
	version, err := versionOf(ctx, c)
	if err != nil {
		return err
	}
	if version == len(steps) {
		return nil
	}
	if err := checkVersion(name, version, len(steps)); err != nil && version > len(steps) {
		return err
	}
	for _, step := range steps[version:] {
		if _, err := c.ExecContext(ctx, step); err != nil {
			return err
		}
	}
	if _, err := c.ExecContext(ctx, "DELETE FROM version"); err != nil {
		return err
	}
	_, err = c.ExecContext(ctx, fmt.Sprintf("INSERT INTO version (version) VALUES (%d)", len(steps)))
	return err
}

// versionOf returns the schema version of a database. It is 0 for a new database.
func versionOf(ctx context.Context, c rowQuerier) (version int, err error) {
	err = c.QueryRowContext(ctx, "SELECT version FROM version").Scan(&version)
	if errors.Is(err, sql.ErrNoRows) {
		err = nil
	}
	return version, err
}

// checkVersion returns an error unless version is the newest one. The error's hint says what to do.
func checkVersion(name string, version, newest int) error {
	switch {
	case version > newest:
		return core.Errorf(
			core.KindInvalidArguments, "store.open",
			"%s was written by a newer version of Retort (its schema version is %d, this Retort supports up to %d)", name, version, newest,
		).
			WithHint("update this Retort; nothing was changed")
	case version < newest:
		return core.Errorf(
			core.KindInvalidArguments, "store.open",
			"%s was written by an older version of Retort (its schema version is %d, this Retort reads %d)", name, version, newest,
		).
			WithHint("start retort once with this audit log to update its schema")
	}
	return nil
}

// checkSchema returns an error unless the database has the newest schema.
func checkSchema(ctx context.Context, db *sql.DB, name, dialect string) error {
	all := migrationSteps(dialect)
	version, err := versionOf(ctx, db)
	if err != nil {
		return err
	}
	return checkVersion(name, version, len(all))
}

// inTransaction runs f in a transaction that the statement begin starts. It rolls back if f returns an error.
func inTransaction(ctx context.Context, c *sql.Conn, begin string, f func() error) error {
	_, err := c.ExecContext(ctx, begin)
	if err != nil {
		return err
	}
	if err = f(); err == nil {
		_, err = c.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = c.ExecContext(ctx, "ROLLBACK")
	}
	return err
}
