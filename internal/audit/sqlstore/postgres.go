package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"retort/internal/audit"
	"retort/internal/core"
)

// schemaName is the name of the PostgreSQL schema that contains the tables.
const schemaName = "retort"

// writeTimeout bounds each statement that writes, so that an unreachable server does not block the engine forever.
const writeTimeout = 30 * time.Second

// sessionPollInterval is the time between two checks whether a terminated session has ended.
const sessionPollInterval = 20 * time.Millisecond

// postgresEngine implements databaseEngine with a PostgreSQL database. Several engines may write to the database,
// each to its own chain. An engine claims its chain with an advisory lock, which belongs to its connection.
// Therefore the connection must be direct or go through a pooler in session mode.
type postgresEngine struct {
	where   string // address without the password
	owner   string
	left    bool
	chain   int64 // 0: no chain was claimed yet
	backend int   // process ID of the server process that holds the lock
	used    time.Time
}

func openPostgres(ctx context.Context, url string, o Options) (_ audit.LogStore, err error) {
	config, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "store.open", "the address of the audit log is invalid: %w", err).
			WithHint("an address has the form postgres://user@host:5432/database")
	}
	for name, value := range map[string]string{
		"application_name": "retort", "synchronous_commit": "on",
		// The server notices after a minute that an engine has gone, and frees its chain.
		"tcp_keepalives_idle": "30", "tcp_keepalives_interval": "10", "tcp_keepalives_count": "3",
	} {
		if _, set := config.RuntimeParams[name]; !set {
			config.RuntimeParams[name] = value
		}
	}
	config.RuntimeParams["search_path"] = schemaName
	if o.ReadOnly && !o.Forgets {
		config.RuntimeParams["default_transaction_read_only"] = "on"
	}
	e := &postgresEngine{where: fmt.Sprintf("%s on %s", config.Database, config.Host), owner: o.Owner, left: o.Left}
	s := &sqlStore{databaseEngine: e, readOnly: o.ReadOnly, mayForget: o.Forgets, db: stdlib.OpenDB(*config)}
	s.db.SetMaxOpenConns(1 + maxReadConns)
	s.db.SetMaxIdleConns(1 + maxReadConns)
	defer func() {
		if err != nil {
			err = s.wrapError("store.open", err)
			_ = s.Close()
		}
	}()
	if o.ReadOnly {
		return s, checkSchema(ctx, s.db, e.where, "postgres")
	}
	if err := e.migrateSchema(ctx, s.db); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s, s.ensureWriter(ctx)
}

func (e *postgresEngine) migrateSchema(ctx context.Context, db *sql.DB) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	all := migrationSteps("postgres")
	return inTransaction(ctx, c, "BEGIN", func() error {
		if _, err := c.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", applicationID)); err != nil {
			return err
		}
		var there bool
		if err := c.QueryRowContext(ctx, "SELECT count(*) > 0 FROM pg_namespace WHERE nspname = '"+schemaName+"'").Scan(&there); err != nil {
			return err
		}
		if !there {
			if _, err := c.ExecContext(ctx, "CREATE SCHEMA "+schemaName); err != nil {
				return err
			}
		}
		return runMigrations(ctx, c, e.where, all)
	})
}

func (e *postgresEngine) claimChain(ctx context.Context, db *sql.DB) (_ *sql.Conn, chain int64, err error) {
	c, err := db.Conn(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() {
		if err != nil {
			discardConnection(c) // with its lock, if it has one
		}
	}()
	if e.chain == 0 {
		chain, err = e.chooseChain(ctx, c)
	} else {
		chain, err = e.chain, e.reacquireLock(ctx, c)
	}
	if err == nil {
		err = c.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&e.backend)
	}
	if err == nil {
		e.chain, e.used = chain, time.Now()
	}
	return c, chain, err
}

// chooseChain finds a chain that belongs to the owner and that no running engine uses, and locks it. If there is
// no such chain, it creates one or, if only an existing chain may be continued, returns ErrNone.
func (e *postgresEngine) chooseChain(ctx context.Context, c *sql.Conn) (int64, error) {
	chains, err := queryList[int64](ctx, c, "SELECT name FROM chains WHERE owner = $1 ORDER BY name", []byte(e.owner))
	if err != nil {
		return 0, err
	}
	for _, chain := range chains {
		if got, err := tryLock(ctx, c, chain); got || err != nil {
			return chain, err
		}
	}
	if e.left {
		return 0, core.Errorf(core.KindInvalidArguments, "store.open", "the audit log %s: %w", e.where, ErrNone)
	}
	for {
		chain := newChain()
		got, err := tryLock(ctx, c, chain)
		if err != nil {
			return 0, err
		}
		if got {
			_, err = c.ExecContext(ctx, "INSERT INTO chains (name, seq, base, owner) VALUES ($1, 0, 0, $2)", chain, []byte(e.owner))
			return chain, err
		}
	}
}

// reacquireLock acquires the lock of the chain again after the connection that held it was lost. If the server still
// considers the old session alive, reacquireLock terminates that session. It then waits until the session has ended,
// which releases the lock.
func (e *postgresEngine) reacquireLock(ctx context.Context, c *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for {
		if got, err := tryLock(ctx, c, e.chain); got || err != nil {
			return err
		}
		switch holder, err := e.holderPID(ctx, c); {
		case err != nil:
			return err
		case holder == e.backend:
			if _, err := c.ExecContext(ctx, "SELECT pg_terminate_backend($1)", holder); err != nil {
				return err
			}
		case holder != 0:
			return core.Errorf(
				core.KindInternal, "store.open",
				"chain %s of the audit log %s was taken by another process after the connection was lost", chainName(e.chain),
				e.where,
			).
				WithHint("restart this Retort: it continues with another chain")
		}
		select {
		case <-ctx.Done():
			return core.Errorf(
				core.KindInternal, "store.open",
				"audit log %s: the database server has not yet ended the session of the lost connection: %w", e.where,
				ctx.Err(),
			).
				WithHint("the next entry tries to reconnect; until that succeeds no program runs, because it could not be recorded")
		case <-time.After(sessionPollInterval):
		}
	}
}

// holderPID returns the process ID of the server process that holds the lock of the chain, or 0 if none does.
func (e *postgresEngine) holderPID(ctx context.Context, c *sql.Conn) (backend int, err error) {
	err = c.QueryRowContext(ctx, `SELECT COALESCE(max(pid), 0) FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND objsubid = 1 AND classid = $1 AND objid = $2
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`, e.chain>>32, e.chain&0xffffffff).Scan(&backend)
	return backend, err
}

func tryLock(ctx context.Context, c *sql.Conn, chain int64) (got bool, err error) {
	err = c.QueryRowContext(ctx, "SELECT pg_try_advisory_lock($1)", chain).Scan(&got)
	return got, err
}

// recheckIdleAge is how long a connection may be unused before isAlive tests it.
const recheckIdleAge = time.Second

// isAlive reports whether the connection is still open. It tests only a connection that was unused for a while, which
// the server or the network may have closed.
func (e *postgresEngine) isAlive(c *sql.Conn) bool {
	defer func() { e.used = time.Now() }()
	if time.Since(e.used) < recheckIdleAge {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	return c.PingContext(ctx) == nil
}

// releaseConnection unlocks the chain for the next engine. The server would also unlock it, but only when it notices
// that the connection has ended.
func (e *postgresEngine) releaseConnection(c *sql.Conn, failed bool) {
	if failed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), lockTimeout)
	defer cancel()
	_, _ = c.ExecContext(ctx, "SELECT pg_advisory_unlock($1)", e.chain)
}

// isReusable reports whether the connection is open and idle, which it is after the transaction was rolled back.
func (e *postgresEngine) isReusable(c *sql.Conn, _ error) (idle bool) {
	err := c.Raw(func(dc any) error {
		conn := dc.(*stdlib.Conn).Conn()
		idle = !conn.IsClosed() && conn.PgConn().TxStatus() == 'I'
		return nil
	})
	return err == nil && idle
}

// runTransaction sends all statements of a transaction at once, to save round trips. It commits if all succeed.
func (e *postgresEngine) runTransaction(ctx context.Context, c *sql.Conn, all []statementChange) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.Raw(func(dc any) error {
		conn := dc.(*stdlib.Conn).Conn()
		batch := &pgx.Batch{}
		batch.Queue("BEGIN")
		texts := map[string]string{}
		for _, ch := range all {
			if texts[ch.statement] == "" {
				texts[ch.statement] = e.bindParameters(ch.statement)
			}
			batch.Queue(texts[ch.statement], ch.args...)
		}
		err := readResults(conn.SendBatch(ctx, batch), all)
		if err == nil {
			_, err = conn.Exec(ctx, "COMMIT")
		}
		if err != nil {
			_, _ = conn.Exec(ctx, "ROLLBACK")
		}
		return err
	})
}

// readResults reads the server's responses to BEGIN and to each statement.
func readResults(sent pgx.BatchResults, all []statementChange) (err error) {
	defer func() { err = cmp.Or(err, sent.Close()) }()
	if _, err := sent.Exec(); err != nil {
		return err
	}
	for _, ch := range all {
		tag, err := sent.Exec()
		if err != nil {
			return err
		}
		if ch.missed != nil && tag.RowsAffected() != 1 {
			return ch.missed
		}
	}
	return nil
}

// lostFileError returns nil. A PostgreSQL server that cannot sync stops by itself, and recovers a consistent state
// when it restarts.
func (e *postgresEngine) lostFileError(error) error { return nil }

func (e *postgresEngine) onWritten(context.Context, int) {}

// bindParameters replaces each ? in a statement by a numbered parameter. Statements contain ? only as a parameter.
func (e *postgresEngine) bindParameters(statement string) string {
	var b strings.Builder
	n := 0
	for part := range strings.SplitSeq(statement, "?") {
		if n > 0 {
			b.WriteString("$" + strconv.Itoa(n))
		}
		b.WriteString(part)
		n++
	}
	return b.String()
}

func (e *postgresEngine) selectStatement(columns, lead, conditions string) string {
	equal := "1 = 1"
	if lead != "" {
		equal = indexCondition(lead, "''")
	}
	return "SELECT " + columns + " FROM entries JOIN (SELECT chain, seq FROM entries WHERE " + equal + conditions +
		" ORDER BY at DESC, chain DESC, seq DESC LIMIT ?) AS found USING (chain, seq) ORDER BY at DESC, chain DESC, seq DESC"
}

func (e *postgresEngine) countColumn(column string) string {
	return "SELECT count(*) FROM (SELECT 1 FROM entries WHERE " + indexCondition(column, "''") + " LIMIT ?) AS counted"
}

func (e *postgresEngine) countTable() string { return "entries" }

// unindexedColumn returns an SQL expression that has the value of a column. The expression is written so that
// PostgreSQL cannot use the column's index.
func (e *postgresEngine) unindexedColumn(column string) string {
	if column == "execution" {
		return column
	}
	return "(" + column + " + 0)"
}

func (e *postgresEngine) sampleTable(ctx context.Context, db *sql.DB) (table string, _ []any, err error) {
	const enough = 500_000 // bytes of a sample: about 1000 rows
	var size float64
	err = db.QueryRowContext(ctx, "SELECT pg_relation_size('entries')").Scan(&size)
	return fmt.Sprintf("entries TABLESAMPLE SYSTEM (%f)", min(100, 100*enough/max(size, 1))), nil, err
}

func (e *postgresEngine) beforeCondition(p audit.RowPosition) (condition string, args []any) {
	chain, ok := chainOf(p.Chain)
	switch {
	case ok:
		return "(at, chain, seq) < (?, ?, ?)", []any{p.At, chain, p.Seq}
	case p.Chain < chainName(0):
		return "at < ?", []any{p.At}
	}
	// It is no chain of ours: those before it are all below a name of as many digits.
	return "(at, chain) <= (?, ?)", []any{p.At, largestChainBelow(p.Chain)}
}

// largestChainBelow returns the largest number that a chain can have if its name sorts before the given name.
func largestChainBelow(name string) (chain int64) {
	for bit := int64(1) << 62; bit > 0; bit >>= 1 {
		if chainName(chain|bit) < name {
			chain |= bit
		}
	}
	return chain
}

func (e *postgresEngine) chainCondition(chain int64) (condition string, args []any, maybe bool) {
	return "chain = ?", []any{chain}, true
}

// forgetKeys deletes keys and then rewrites their table, because deleted rows would stay in its pages. It cannot
// remove copies in the server's log and in backups.
func (e *postgresEngine) forgetKeys(ctx context.Context, c *sql.Conn, ids []string) (n int, err error) {
	err = inTransaction(ctx, c, "BEGIN", func() error {
		return eachPart(ids, func(list string, args []any) error {
			r, err := c.ExecContext(ctx, e.bindParameters("DELETE FROM keys WHERE live = 1 AND id IN "+list), args...)
			if err != nil {
				return err
			}
			some, err := r.RowsAffected()
			n += int(some)
			return err
		})
	})
	if err == nil {
		_, err = c.ExecContext(ctx, "VACUUM FULL keys")
	}
	return n, err
}

// reclaimSpace does nothing, because the server reuses the space itself.
func (e *postgresEngine) reclaimSpace(context.Context, *sql.Conn) error { return nil }

// checkIndexes does nothing. Only the server can write to its files, so programs on this machine cannot tamper with
// the indexes.
func (e *postgresEngine) checkIndexes(context.Context, *sql.Conn) ([]string, error) { return nil, nil }

func (e *postgresEngine) compareIndexes(context.Context, *sql.Conn) error { return nil }

func (e *postgresEngine) snapshotBegin() string {
	return "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY"
}

func (e *postgresEngine) storedBytes(ctx context.Context, db *sql.DB) (n int64, err error) {
	err = db.QueryRowContext(
		ctx,
		"SELECT CAST(sum(pg_total_relation_size(c.oid)) AS BIGINT) FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = $1 AND relkind = 'r'",
		schemaName,
	).Scan(&n)
	return n, err
}

func (e *postgresEngine) closeEngine() {}

func (e *postgresEngine) explainError(op string, err error) error {
	said := core.Errorf(core.KindInternal, op, "the audit log %s: %w", e.where, err)
	var known *pgconn.PgError
	if !errors.As(err, &known) {
		return said.WithHint("check that the PostgreSQL server is running and reachable; nothing runs that cannot be recorded")
	}
	switch {
	case known.Code == "42P01": // undefined_table
		return core.Errorf(core.KindInvalidArguments, op, "there is no audit log in %s: %w", e.where, err).
			WithHint("it is created when retort first runs with audit logging to this address")
	case known.Code == "53100":
		return said.WithHint("the server's disk is full: make room there; nothing runs that cannot be recorded")
	case known.Code == "42501" || strings.HasPrefix(known.Code, "28"):
		return said.WithHint("the user in the address must be allowed to connect and to create the schema %q in the database", schemaName)
	case known.Code == "3D000":
		return said.WithHint("create the database first")
	case known.Code == "25006":
		return said.WithHint("the server is read-only: it is a standby, or it is configured so")
	}
	return said.WithHint("check the log of the PostgreSQL server; nothing runs that cannot be recorded")
}
