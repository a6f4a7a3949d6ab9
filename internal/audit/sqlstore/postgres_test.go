package sqlstore

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// sharedServer returns the PostgreSQL server that all tests share. The first test that needs it starts it.
var sharedServer = sync.OnceValues(testenv.StartPostgres)

var databases atomic.Int64

func TestMain(m *testing.M) {
	if path := os.Getenv(killedVariable); path != "" {
		appendUntilKilled(path)
		os.Exit(1)
	}
	code := m.Run()
	if databases.Load() > 0 {
		if p, err := sharedServer(); err == nil {
			p.Stop()
		}
	}
	os.Exit(code)
}

// newDatabase creates a new database and returns its address.
func newDatabase(t testing.TB) (url string) {
	t.Helper()
	n := databases.Add(1)
	p, err := sharedServer()
	testenv.Missing(t, "postgres", err)
	c, err := pgx.Connect(context.Background(), p.URL("postgres"))
	must(t, err)
	defer c.Close(context.Background())
	name := fmt.Sprint("t", n)
	_, err = c.Exec(context.Background(), "CREATE DATABASE "+name)
	must(t, err)
	return p.URL(name)
}

// connectDirectly returns a connection to the database that bypasses the store.
func connectDirectly(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(background, url)
	must(t, err)
	t.Cleanup(func() { _ = c.Close(background) })
	return c
}

// cutConnections terminates the connections that own a chain, as a network failure would. It waits until the
// server has released the chains, which takes some time.
func cutConnections(t *testing.T, url string) {
	t.Helper()
	c := connectDirectly(t, url)
	const owners = "FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	_, err := c.Exec(background, "SELECT pg_terminate_backend(pid) "+owners)
	must(t, err)
	testenv.WaitUntil(t, "the chains are free", func() (free bool) {
		must(t, c.QueryRow(background, "SELECT count(*) = 0 "+owners).Scan(&free))
		return free
	})
}

// TestChainsOfPostgres checks that several engines can write to one database, each its own chain, and that a chain is
// continued later.
func TestChainsOfPostgres(t *testing.T) {
	url := newDatabase(t)
	stores := make([]audit.LogStore, 4)
	var all4 sync.WaitGroup
	for i := range stores {
		all4.Go(func() { stores[i], _ = Open(background, url, Options{}) })
	}
	all4.Wait()
	chains := map[string]int64{}
	for i, s := range stores {
		if s == nil {
			t.Fatal("one was not opened")
		}
		defer s.Close()
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10+i), Opened: []string{"same"}}))
		chains[head(t, s).Chain] = head(t, s).Seq
	}
	if len(chains) != 4 {
		t.Fatalf("%d chains", len(chains))
	}
	heads, err := stores[0].Chains(background)
	if err != nil || len(heads) != 4 {
		t.Error(heads, err)
	}
	for _, h := range heads {
		if got := all(t, stores[3].Walk(background, h.Chain, 1)); len(got) != int(chains[h.Chain]) {
			t.Errorf("%d rows of %s", len(got), h.Chain)
		}
	}
	places := map[audit.RowPosition]bool{}
	var before *audit.RowPosition
	for {
		page := all(t, stores[1].Find(background, audit.Filter{Limit: 3, Before: before}))
		for _, r := range page {
			p := audit.RowPosition{At: r.At, Chain: r.Chain, Seq: r.Seq}
			if before = &p; places[p] {
				t.Fatal("a row comes twice")
			}
			places[p] = true
		}
		if len(page) < 3 {
			break
		}
	}
	if len(places) != 10+11+12+13 {
		t.Errorf("pages give %d rows", len(places))
	}
	freed := head(t, stores[2])
	must(t, stores[2].Close())
	s := open(t, url, Options{})
	if got := head(t, s); got.Chain != freed.Chain || got.Seq != freed.Seq {
		t.Errorf("%+v is not the chain that was free", got)
	}
	if opened, err := s.Open(background); err != nil || len(opened) != 1 {
		t.Error(opened, err)
	}
}

// TestIdleConnection checks that an entry is written over a new connection if the old one was cut while it was idle.
func TestIdleConnection(t *testing.T) {
	url := newDatabase(t)
	s := open(t, url, Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 3)}))
	for range 2 {
		rows := nextRows(t, s, 2)
		cutConnections(t, url)
		s.(*sqlStore).databaseEngine.(*postgresEngine).used = time.Time{} // long ago
		must(t, s.Append(background, audit.WriteBatch{Rows: rows}))
	}
	if h := head(t, s); h.Seq != 7 {
		t.Errorf("%+v", h)
	}
}

func TestLostConnection(t *testing.T) {
	url := newDatabase(t)
	s := open(t, url, Options{})
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 3)}))
	h := head(t, s)
	rows := nextRows(t, s, 2)
	cutConnections(t, url)
	if err := s.Append(background, audit.WriteBatch{Rows: rows}); err == nil {
		t.Error("it was written over a connection that was cut")
	} else if known := core.AsError(err); known.Hint == "" {
		t.Error(err)
	}
	if got := head(t, s); got.Chain != h.Chain || got.Seq != 3 {
		t.Errorf("%+v after %+v", got, h)
	}
	must(t, s.Append(background, audit.WriteBatch{Rows: rows}))

	cutConnections(t, url)
	thief := open(t, url, Options{})
	if head(t, thief).Chain != h.Chain {
		t.Fatal("the chain was not free")
	}
	for range 2 {
		_, err := s.Head(background)
		if known := core.AsError(err); err == nil || known.Hint == "" {
			t.Error(err)
		}
		if err := s.Append(background, audit.WriteBatch{}); err == nil {
			t.Error("it writes a chain that another one has")
		}
	}
	must(t, thief.Append(background, audit.WriteBatch{Rows: nextRows(t, thief, 1)}))
	must(t, thief.Close())
	if got := head(t, s); got.Chain != h.Chain || got.Seq != 6 {
		t.Errorf("%+v", got)
	}
}

// TestHalfLostConnection checks that the store takes its chain back if its old connection is lost but the server
// still considers it open.
func TestHalfLostConnection(t *testing.T) {
	s := open(t, newDatabase(t), Options{})
	own := s.(*sqlStore)
	h := head(t, s)
	lost := own.w
	own.w = nil // the server sees nothing of it
	defer lost.Close()
	if got := head(t, s); got.Chain != h.Chain {
		t.Errorf("%+v after %+v", got, h)
	}
	must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
}

func TestPostgresRefuses(t *testing.T) {
	url := newDatabase(t)
	mustRefuse(t, url, Options{ReadOnly: true}, "no audit log in")
	mustRefuse(t, strings.Replace(url, "/t", "/missing", 1), Options{}, "create the database")
	mustRefuse(t, "postgres://u:secret@127.0.0.1:1/d", Options{}, "server is running")
	if err := mustRefuse(t, "postgres://u:secret@127.0.0.1:x/d", Options{}, "has the form"); strings.Contains(fmt.Sprintf("%+v", err), "secret") {
		t.Error("a password is told: ", err)
	}
	must(t, open(t, url, Options{}).Close())
	_, err := connectDirectly(t, url).Exec(background, "UPDATE retort.version SET version = 99")
	must(t, err)
	mustRefuse(t, url, Options{}, "newer version")
	mustRefuse(t, url, Options{ReadOnly: true}, "newer version")
}

func TestForgottenKeysAreGoneFromTheTable(t *testing.T) {
	url := newDatabase(t)
	s := open(t, url, Options{})
	must(t, s.Append(background, audit.WriteBatch{Keys: []audit.BodyKey{{ID: "a", Wrapped: []byte("the wrapped key")}, {ID: "b", Wrapped: []byte("another")}}}))
	file := func() string {
		var data []byte
		c := connectDirectly(t, url)
		_, err := c.Exec(background, "CHECKPOINT")
		must(t, err)
		must(t, c.QueryRow(background, "SELECT pg_read_binary_file(pg_relation_filepath('retort.keys'))").Scan(&data))
		return string(data)
	}
	if !strings.Contains(file(), "the wrapped key") {
		t.Error("the test does not see a key that is there")
	}
	n, err := s.Forget(background, []string{"a"})
	if data := file(); n != 1 || err != nil || strings.Contains(data, "the wrapped key") || !strings.Contains(data, "another") {
		t.Error(n, err, "or the wrong keys are there")
	}
}

// TestMigrations checks that a database is migrated to a newer schema, and that a failed migration leaves it
// unchanged.
func TestMigrations(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := appendMixed(t, s, 10, 1)
		own := s.(*sqlStore)
		c, err := own.db.Conn(background)
		must(t, err)
		defer c.Close()
		now, err := versionOf(background, c)
		must(t, err)
		made := append(slices.Repeat([]string{"not read again"}, now), "ALTER TABLE entries ADD COLUMN madeup INTEGER; CREATE INDEX by_madeup ON entries (madeup)", "UPDATE entries SET madeup = 7")
		begin := "BEGIN"
		broken := inTransaction(background, c, begin, func() error { return runMigrations(background, c, url, append(made[:now+1:now+1], "no SQL")) })
		version, err := versionOf(background, c)
		if broken == nil || version != now || err != nil {
			t.Fatalf("a step that fails leaves version %d: %v, %v", version, broken, err)
		}
		for range 2 {
			must(t, inTransaction(background, c, begin, func() error { return runMigrations(background, c, url, made) }))
		}
		if version, err := versionOf(background, c); version != now+2 || err != nil {
			t.Error(version, err)
		}
		if sevens, err := queryList[int64](background, c, "SELECT madeup FROM entries"); len(sevens) != len(rows) || err != nil || sevens[0] != 7 {
			t.Error(sevens, err)
		}
		must(t, s.Close())
		mustRefuse(t, url, Options{}, "newer version")
	})
}
