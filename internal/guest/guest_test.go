package guest

import (
	"context"
	"io"
	"testing"
	"time"

	"retort/internal/run"
	"retort/internal/wire"
)

type pipeEnd struct {
	io.ReadCloser
	io.WriteCloser
}

func (p pipeEnd) Close() error { p.ReadCloser.Close(); return p.WriteCloser.Close() }

type hostFunc func(ctx context.Context, c run.Call) (run.Result, error)

func (f hostFunc) Call(ctx context.Context, c run.Call) (run.Result, error) { return f(ctx, c) }

func runProgram(t *testing.T, p run.Program, h wire.Host) wire.End {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	exited := make(chan error, 1)
	go func() {
		err := Main(inR, outW)
		outW.CloseWithError(err)
		exited <- err
	}()
	conn := wire.NewConn(pipeEnd{outR, inW})
	if _, err := wire.Greet(conn); err != nil {
		t.Fatal(err)
	}
	p.Limits = p.Limits.Or(run.DefaultLimits())
	end, err := wire.Serve(context.Background(), conn, p, h)
	if err != nil {
		t.Fatal(err)
	}
	select {
	case <-exited:
	case <-time.After(10 * time.Second):
		t.Fatal("the guest does not end")
	}
	return end
}

func TestSmoke(t *testing.T) {
	h := hostFunc(func(ctx context.Context, c run.Call) (run.Result, error) { return run.Result{Value: c.Arguments}, nil })
	for _, code := range []string{"return 1", "console.log('a', {b: [1,2,3]}); return {a: 9007199254740993n}", "const x = 1;\n  null.foo", "return await callMCPTool('a', {b: 12345678901234567890n})"} {
		t0 := time.Now()
		end := runProgram(t, run.Program{Code: code}, h)
		t.Logf("%s\n%s %s %v %q %v", code, end.Status, end.Value, end.Error, end.Output, time.Since(t0))
		if end.Error != nil {
			t.Logf("%+v", *end.Error)
		}
	}
}
