//go:build unix

package engine_test

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"retort/internal/admin"
	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// oddFiles maps names to functions that put something unexpected, such as a named pipe, in the place of a file.
var oddFiles = map[string]func(t *testing.T, path string){
	"pipe":      func(t *testing.T, path string) { check(t, syscall.Mkfifo(path, 0o600)) },
	"directory": func(t *testing.T, path string) { check(t, os.Mkdir(path, 0o700)) },
	"link": func(t *testing.T, path string) {
		check(t, os.Symlink(filepath.Join(filepath.Dir(path), "missing"), path))
	},
	"endless": func(t *testing.T, path string) { check(t, os.Symlink("/dev/zero", path)) },
	"large": func(t *testing.T, path string) {
		check(t, os.WriteFile(path, nil, 0o600))
		check(t, os.Truncate(path, 10<<30))
	},
	"socket": func(t *testing.T, path string) {
		l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
		check(t, err)
		l.(*net.UnixListener).SetUnlinkOnClose(false)
		check(t, os.Rename(l.Addr().String(), path))
		check(t, l.Close())
	},
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fillHome fills a data directory and returns paths in it: those of its content, and some at which a file can exist
// but does not.
func fillHome(t testing.TB, dir string) (paths []string) {
	t.Helper()
	c := killable(dir)
	e, err := engine.Open(t.Context(), c)
	check(t, err)
	o := e.Execute(t.Context(), engine.Request{ID: "first", Code: "await state.set('k', 1); return await notes.createNote({id: 'first'})"})
	if o.Status != core.StatusOK {
		t.Fatal(o.Status, o.Error)
	}
	check(t, e.Close())
	_, err = admin.CreateToken(c, "anna", time.Hour)
	check(t, err)
	for _, below := range []string{"home", "keys"} {
		check(t, filepath.WalkDir(filepath.Join(dir, below), func(path string, d os.DirEntry, err error) error {
			if err == nil && (d.Type().IsRegular() || filepath.Dir(path) == filepath.Join(dir, "home")) {
				paths = append(paths, path)
			}
			return err
		}))
	}
	for _, also := range []string{"audit/record-1.db-wal", "audit/record-1.db-shm", "audit/record-9.db", "approvals/always.json", "state/default.json", "catalog/tokens.json", "queue/lock", "queue/names.lock", "skills/.lock"} {
		if path := filepath.Join(dir, "home", also); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// useEverything calls everything that reads the data directory. The calls may fail, but must return.
func useEverything(ctx context.Context, c engine.Config) (said []string) {
	say := func(err error) {
		if err != nil {
			said = append(said, core.AsError(err).Error())
		}
	}
	page, err := admin.QueryAudit(ctx, c, admin.AuditQuery{})
	say(err)
	said = append(said, page.Warnings...)
	verdict, err := admin.VerifyAudit(ctx, c, admin.VerifyOptions{})
	say(err)
	for _, f := range verdict.Findings {
		said = append(said, f.Says)
	}
	used, err := admin.SumUsage(ctx, c, admin.UsageSpan{})
	say(err)
	said = append(said, used.Warnings...)
	_, err = admin.ExportAudit(ctx, c, io.Discard, admin.AuditExport{Format: "jsonl"})
	say(err)
	_, err = admin.ListApprovals(c)
	say(err)
	_, err = admin.ListTokens(c)
	say(err)
	_, err = admin.ListJobs(c)
	say(err)
	_, err = admin.ExamineMachine(ctx, c, false)
	say(err)
	e, err := engine.Open(ctx, c)
	if say(err); err != nil {
		return said
	}
	_, err = e.ListSkills("", nil)
	say(err)
	o := e.Execute(ctx, engine.Request{Code: "return [await state.get('k'), await notes.createNote({id: 'again'})]"})
	if o.Error != nil {
		say(o.Error)
	}
	job, err := engine.ProgramJob(engine.Request{Code: "return 1"})
	say(err)
	_, err = e.Submit(ctx, job)
	say(err)
	say(e.Close())
	return said
}

// TestOddFiles replaces each file of a data directory by something unexpected, such as a named pipe or a link. It
// checks that nothing blocks forever, and that no file outside of the data directory is changed. It also checks that
// a warning names an audit log file that cannot be read.
func TestOddFiles(t *testing.T) {
	dir, whole := t.TempDir(), t.TempDir()
	paths := fillHome(t, dir)
	check(t, os.CopyFS(whole, os.DirFS(dir)))
	kinds := []string{"pipe", "directory", "link", "endless", "large", "socket"}
	for i, path := range paths {
		for j, kind := range kinds {
			if j != i%len(kinds) && !testenv.Full() {
				continue
			}
			for _, below := range []string{"home", "keys"} {
				check(t, os.RemoveAll(filepath.Join(dir, below)))
				check(t, os.CopyFS(filepath.Join(dir, below), os.DirFS(filepath.Join(whole, below))))
			}
			check(t, os.RemoveAll(path))
			check(t, os.MkdirAll(filepath.Dir(path), 0o700))
			oddFiles[kind](t, path)
			name, _ := filepath.Rel(dir, path)
			came := make(chan []string, 1)
			go func() { came <- useEverything(context.WithoutCancel(t.Context()), killable(dir)) }()
			said := testenv.Receive(t, came, "the commands, with a "+kind+" for "+name)
			if strings.HasSuffix(name, "record-9.db") && !strings.Contains(strings.Join(said, "\n"), "record-9.db") {
				t.Errorf("a %s for %s is not named: %q", kind, name, said)
			}
			for _, line := range said {
				if strings.HasPrefix(line, string(core.KindInternal)+": ") {
					t.Errorf("a %s for %s is reported as a fault of Retort: %s", kind, name, line)
				}
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), "missing")); err == nil {
				t.Errorf("a file was made where the link %s leads", name)
			}
		}
	}
}
