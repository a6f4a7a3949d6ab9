package store

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"retort/internal/testenv"
)

// server is one for all tests, started by the first that needs it.
var server = sync.OnceValues(testenv.StartPostgres)

var databases atomic.Int64

func TestMain(m *testing.M) {
	if path := os.Getenv(killedVariable); path != "" {
		appendUntilKilled(path)
		os.Exit(1)
	}
	code := m.Run()
	if databases.Load() > 0 {
		if p, err := server(); err == nil {
			p.Stop()
		}
	}
	os.Exit(code)
}

// database is a new one.
func database(t testing.TB) (url string) {
	t.Helper()
	n := databases.Add(1)
	p, err := server()
	testenv.Missing(t, "postgres", err)
	c, err := pgx.Connect(context.Background(), p.URL("postgres"))
	must(t, err)
	defer c.Close(context.Background())
	name := fmt.Sprint("t", n)
	_, err = c.Exec(context.Background(), "CREATE DATABASE "+name)
	must(t, err)
	return p.URL(name)
}
