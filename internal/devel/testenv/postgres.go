package testenv

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
)

// PostgresServer represents a PostgreSQL server in a temporary folder. It listens on a unix socket there.
type PostgresServer struct {
	dir     string
	process *os.Process
	ended   chan struct{}
}

// StartPostgres starts a PostgreSQL server with the programs that are installed on this machine. If this process is
// root, the server runs as another user. Stop ends the server. On Linux it also ends when this process ends.
func StartPostgres() (*PostgresServer, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("/tmp", "pg") // the path of a socket is short
	if err != nil {
		return nil, err
	}
	p := &PostgresServer{dir: dir, ended: make(chan struct{})}
	attr, err := unprivilegedAttr(dir)
	if err == nil {
		err = p.start(bin, attr)
	}
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return p, nil
}

func (p *PostgresServer) start(bin string, attr *syscall.SysProcAttr) error {
	data := filepath.Join(p.dir, "data")
	init := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-U", "retort", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	init.SysProcAttr, init.Dir = attr, p.dir
	if out, err := init.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	server := exec.Command(
		filepath.Join(bin, "postgres"), "-D", data, "-k", p.dir, "-c", "listen_addresses=", "-c",
		"fsync="+fsyncSetting(), "-c", "max_connections=100",
	)
	server.SysProcAttr, server.Dir = attr, p.dir
	server.Env = append(os.Environ(), "LC_ALL=C")
	said, err := server.StderrPipe()
	if err != nil {
		return err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // the server dies with the thread that has started it
		defer close(p.ended)
		err := server.Start()
		started <- err
		if err == nil {
			_ = server.Wait()
		}
	}()
	if err := <-started; err != nil {
		return err
	}
	p.process = server.Process
	var heard []string
	for lines := bufio.NewScanner(said); lines.Scan(); {
		if heard = append(heard, lines.Text()); strings.Contains(lines.Text(), "ready to accept connections") {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return nil
		}
	}
	return errors.New("postgres: " + strings.Join(heard, "\n"))
}

// fsyncSetting returns the setting "fsync" of the server. It is on for benchmarks, and off for tests because
// none of them simulates a power failure.
func fsyncSetting() string {
	if bench := flag.Lookup("test.bench"); bench != nil && bench.Value.String() != "" {
		return "on"
	}
	return "off"
}

// URL returns the URL of a database of the server.
func (p *PostgresServer) URL(database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.User("retort"), Path: "/" + database,
		RawQuery: url.Values{"host": {p.dir}}.Encode(),
	}).String()
}

// Stop stops the server and deletes its folder.
func (p *PostgresServer) Stop() {
	_ = p.process.Signal(syscall.SIGQUIT)
	<-p.ended
	_ = os.RemoveAll(p.dir)
}

// postgresPrograms returns the folder of initdb and postgres, which Debian does not put into PATH.
func postgresPrograms() (dir string, err error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		initdb, err = filepath.EvalSymlinks(initdb)
		return filepath.Dir(initdb), err
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		return "", errors.New("there is no initdb in PATH or /usr/lib/postgresql (Debian: apt install postgresql)")
	}
	slices.SortFunc(found, func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) })
	return filepath.Dir(found[len(found)-1]), nil
}
