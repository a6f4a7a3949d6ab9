package process

import (
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/pipeline/isolate"
	"retort/internal/pipeline/isolate/isolatetest"
	"retort/internal/run"
)

// proxying is a Host that greets whoever connects.
type proxying struct {
	isolate.HostFunc
	served atomic.Int64
}

func (p *proxying) ServeConn(ctx context.Context, conn net.Conn) {
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	p.served.Add(1)
	_, _ = io.WriteString(conn, "hello")
	_, _ = io.Copy(io.Discard, conn)
}

// TestNetworkedEscapes holds that a program with a network has one way more, and that it
// leads to its Host.
func TestNetworkedEscapes(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("swordfish"), 0o644); err != nil {
		t.Fatal(err)
	}
	b := New(Options{Warm: -1})
	defer b.Close()
	k := native(t, "python", "probe", "python")
	k.plan.Network = true
	b.kinds["python"] = k
	b.open(k, Options{Warm: -1})
	b.have = func() isolate.Capabilities { return isolate.Capabilities{Runtimes: []string{"python"}} }
	h := &proxying{HostFunc: echo}
	report := runNetworked(t, b, secret, h)
	open := []string{"OPEN a socket: IPv4", "OPEN the proxy"}
	var rest []string
	for line := range strings.Lines(string(report.Output)) {
		if i := slices.Index(open, strings.TrimSpace(line)); i >= 0 {
			open = slices.Delete(open, i, i+1)
			continue
		}
		rest = append(rest, line)
	}
	isolatetest.Judge(t, strings.Join(rest, ""), 100)
	if len(open) > 0 || h.served.Load() != 1 {
		t.Errorf("closed: %v; %d connections arrived", open, h.served.Load())
	}
	if report := runNetworked(t, b, secret, echo); !strings.Contains(string(report.Output), "closed the proxy") {
		t.Error("there is a proxy for a host that is none")
	}
}

func runNetworked(t *testing.T, b *Backend, code string, h isolate.Host) isolate.Report {
	t.Helper()
	l := run.Limits{Timeout: 30 * time.Second}.Or(run.DefaultLimits())
	s, err := b.Prepare(context.Background(), isolate.Spec{Runtime: "python", Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	r, err := s.Run(context.Background(), run.Program{Code: code, Name: "program", Limits: l}, h)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
