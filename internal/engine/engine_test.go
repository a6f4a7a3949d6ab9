package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

func open(tb testing.TB, servers ...string) *engine.Engine {
	tb.Helper()
	return openWith(tb, "", servers...)
}

// unlimitedTime sets a timeout that no program reaches, however slow the machine is.
var unlimitedTime = engine.Limits{Timeout: time.Hour}

// openWith opens an engine with settings, the text of a retort.yaml. In tests the engine starts nothing in
// advance, because most of them run only a program or two. Benchmarks use the default.
func openWith(tb testing.TB, settings string, servers ...string) *engine.Engine {
	tb.Helper()
	c := engine.Config{NoFiles: true, Home: tb.TempDir(), Settings: settings, Limits: unlimitedTime}
	if _, test := tb.(*testing.T); test {
		c.Reserve = engine.ReserveNone
	}
	for _, name := range servers {
		c.Servers = append(c.Servers, engine.Server{Name: name, Dial: demo.DialFunc(name)})
	}
	e, err := engine.Open(tb.Context(), c)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = e.Close() })
	return e
}

// TestEffectsHappenOnce checks that a call with effects reaches the server exactly as often as the program makes it.
// It counts the effects that the server has recorded.
func TestEffectsHappenOnce(t *testing.T) {
	server, err := demo.Open("crm")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Servers: []engine.Server{{Name: "crm", Dial: server.Dial}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	o := e.Execute(t.Context(), engine.Request{Code: `
		const made = await Promise.all(Array.from({length: 50}, (_, i) =>
			crm.createRecord({objectType: 'Lead', data: {LastName: 'Lead ' + i, Company: 'C', Email: 'l' + i + '@example.org'}})));
		return new Set(made.map((m: any) => m.id ?? m.Id)).size;`})
	if o.Status != core.StatusOK || string(o.Result) != "50" {
		t.Fatalf("%s %s %+v", o.Status, o.Result, o.Error)
	}
	if n := len(server.RecordedEffects()); n != 50 {
		t.Errorf("the upstream saw %d effects, want 50", n)
	}
}

func TestStatsAccountForWhatRan(t *testing.T) {
	e := open(t, "crm", "files")
	e.WaitForServers(t.Context())
	for _, code := range []string{"return 1", "return 2", "throw new Error('x')", "const x = ;"} {
		e.Execute(t.Context(), engine.Request{Code: code, Session: "s"})
	}
	text, err := json.Marshal(e.Stats(t.Context(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"servers":2`, `"ready":2`, `"total":4`, `"by_status":{"error":1,"ok":2,"rejected":1}`, `"active":0`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("stats lack %s: %s", want, text)
		}
	}
}

func TestColdStartAnswersFromTheCatalogue(t *testing.T) {
	home := t.TempDir()
	warm, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}})
	if err != nil {
		t.Fatal(err)
	}
	warm.WaitForServers(t.Context())
	_ = warm.Close()

	hang := engine.Server{Name: "crm", Command: "sleep", Args: []string{"1000"}}
	cold, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Servers: []engine.Server{hang}})
	if err != nil {
		t.Fatal(err)
	}
	defer cold.Close()
	found, err := cold.Search(t.Context(), engine.Query{Text: "update a record"})
	if err != nil || len(found.Tools) == 0 || !found.Tools[0].Cached {
		t.Errorf("%+v, %v", found, err)
	}
}

// TestNothingPilesUp checks that the engine still works after programs that are canceled, time out,
// fail or make many calls. No execution may leak a goroutine while the engine is open, and the
// engine may leak nothing once it is closed.
func TestNothingPilesUp(t *testing.T) {
	testenv.CheckLeaks(t)
	c := engine.Config{NoFiles: true, Home: t.TempDir(), Limits: unlimitedTime}
	for _, name := range []string{"crm", "chat"} {
		c.Servers = append(c.Servers, engine.Server{Name: name, Dial: demo.DialFunc(name)})
	}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	executeMany(t, e, 4)
	t.Run("executions", func(t *testing.T) {
		testenv.CheckGoroutines(t, ignoreIdleSandboxes...)
		many := 20
		if testenv.Full() {
			many = 40
		}
		executeMany(t, e, many)
	})
	if o := e.Execute(t.Context(), engine.Request{Code: "return 'alive'"}); string(o.Result) != `"alive"` {
		t.Errorf("%+v", o)
	}
}

// ignoreIdleSandboxes holds options for goleak that ignore the goroutines of idle sandboxes. These wait for the
// next execution, and there may be more of them after a test than before.
var ignoreIdleSandboxes = []goleak.Option{
	goleak.IgnoreAnyFunction("retort/internal/sandbox/process.(*guestChild).awaitExit"),
	goleak.IgnoreAnyFunction("retort/internal/sandbox/warmpool.(*Backend).awaitGone"),
	goleak.IgnoreAnyFunction("os/exec.(*Cmd).Start.func2"), // copies the sandbox's standard error
}

// executeMany executes n programs in parallel. Some are canceled while they run, some time out, some
// make many calls, and some fail.
func executeMany(t *testing.T, e *engine.Engine, n int) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			r, want := engine.Request{}, core.StatusOK
			switch i % 4 {
			case 0:
				r.Code, want = "await chat.listChannels({}); while (true) {}", core.StatusCancelled
				r.Progress = func(int) { cancel() }
			case 1:
				r.Code, want = "while (true) {}", core.StatusTimeout
				r.Limits.Timeout = 50 * time.Millisecond // the program ends in no other way
			case 2:
				r.Code = "await Promise.all(Array.from({length: 100}, () => chat.listChannels({}))); return 1"
			default:
				r.Code, want = "throw new Error('no')", core.StatusError
			}
			if o := e.Execute(ctx, r); o.Status != want {
				t.Errorf("%s: %s %+v, want %s", r.Code, o.Status, o.Error, want)
			}
		})
	}
	all.Wait()
}

func TestTwoConfigurationsOfOneNameAreRefused(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/.mcp.json", []byte(`{"mcpServers": {"crm": {"command": "x"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := engine.Open(t.Context(), engine.Config{Dir: dir, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}})
	if e := core.AsError(err); e == nil || e.Kind != core.KindInvalidArguments {
		t.Errorf("%v", err)
	}
}

// BenchmarkCalls measures one tool call of a program that makes a thousand.
func BenchmarkCalls(b *testing.B) {
	e := open(b, "chat")
	e.WaitForServers(b.Context())
	for _, m := range []struct{ name, code string }{
		{"sequential", "for (let i = 0; i < %d; i++) await chat.listChannels({limit: 1})"},
		{"concurrent", "await Promise.all(Array.from({length: %d}, () => chat.listChannels({limit: 1})))"},
	} {
		b.Run(m.name, func(b *testing.B) {
			b.ReportAllocs()
			for left := b.N; left > 0; left -= 1000 {
				o := e.Execute(b.Context(), engine.Request{Code: fmt.Sprintf(m.code, min(left, 1000))})
				if o.Status != core.StatusOK {
					b.Fatalf("%+v", o.Error)
				}
			}
		})
	}
}
