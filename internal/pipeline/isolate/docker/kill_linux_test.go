//go:build amd64 || arm64

package docker

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

const engineRuns = 50

// engine is the main program of an engine that is killed: it runs programs, ten at once, of
// which half are busy, and says with a line when some are under way.
func engine(host, dir string) {
	b := New(Options{Host: host, Dir: dir, Runtime: "runc"})
	var all sync.WaitGroup
	for worker := range 10 {
		all.Go(func() {
			for range engineRuns / 10 {
				s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: quickjs, Limits: run.DefaultLimits()})
				if err != nil {
					fmt.Println(err)
					return
				}
				fmt.Println("under way")
				code := "await callMCPTool('x')"
				if worker%2 == 0 {
					code = "for (;;);"
				}
				_, _ = s.Run(context.Background(), run.Program{Code: code}, isolate.HostFunc(func(context.Context, run.Call) (run.Result, error) {
					return run.Result{Value: []byte("1")}, nil
				}))
				_ = s.Close()
			}
		})
	}
	all.Wait()
}

// containers are those with our label.
func containers(t *testing.T, host string) int {
	t.Helper()
	a, known := find(host)
	if known != nil {
		t.Fatal(known)
	}
	filters, _ := json.Marshal(map[string][]string{"label": {label}})
	var list []any
	if err := newAPI(a).call(t.Context(), http.MethodGet, "/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &list); err != nil {
		t.Fatal(err)
	}
	return len(list)
}

// An engine that is killed leaves nothing: its containers end with their input, and what
// had not been started yet goes with the next engine.
func TestKilledEngine(t *testing.T) {
	d := daemonHere(t)
	dir := t.TempDir()
	for round := range 3 {
		cmd := exec.Command(os.Args[0], "engine", d.Host(), dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for n := 0; n < 1+5*round && lines.Scan(); n++ {
			if lines.Text() != "under way" {
				t.Fatal(lines.Text())
			}
		}
		time.Sleep(50 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Logf("%d containers when it was killed", containers(t, d.Host()))
		next := New(Options{Host: d.Host(), Dir: dir, Runtime: "runc", Warm: -1})
		for late := time.Now().Add(60 * time.Second); containers(t, d.Host()) > 0 || stale(dir); time.Sleep(50 * time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("%d containers are left", containers(t, d.Host()))
			}
		}
		if err := next.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("files are left: %v", left)
		}
	}
}
