package process

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"retort/internal/guest"
	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "guest" {
		if err := guest.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var echo = isolate.HostFunc(func(_ context.Context, c run.Call) (run.Result, error) { return run.Result{Value: c.Arguments}, nil })

func TestSmoke(t *testing.T) {
	t0 := time.Now()
	b := New(Options{})
	defer b.Close()
	for i, code := range []string{"return 1", "console.log('a', {b: [1,2,3]}); return {a: 9007199254740993n}", "const x = 1;\n  null.foo", "return await callMCPTool('a', {b: 12345678901234567890n})"} {
		if i > 0 {
			time.Sleep(100 * time.Millisecond)
		}
		s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: "quickjs", Limits: run.DefaultLimits()})
		if err != nil {
			t.Fatal(err)
		}
		t.Log("prepared", time.Since(t0))
		t0 = time.Now()
		r, err := s.Run(context.Background(), run.Program{Code: code}, echo)
		d := time.Since(t0)
		s.Close()
		t.Logf("%s\n%s %s %v %q %v %v", code, r.Status, r.Value, r.Error, r.Output, d, time.Since(t0))
		t.Log(r.MemoryBytes, err)
	}
}
