package docker

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/wire"
)

const (
	daemonHint = "check that the daemon runs: sudo systemctl status docker; " + exitcause.Effects
	// tardy sets the longest delay between the end of a container and the event that it ran out of memory.
	tardy = 250 * time.Millisecond
)

// Explain implements warmpool.Guest.
func (c *container) Explain(end *wire.End, p core.Program) {
	select {
	case <-c.ended:
	case <-time.After(ending):
	}
	stderr := c.stderr.String()
	if c.outgrown.Load() || c.exhausted(stderr) || c.code == 128+int(syscall.SIGKILL) && c.daemon.oom.has(c.id, tardy) {
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
		return
	}
	end.Status, end.Error = core.StatusError, c.death(stderr, p.Name)
}

// exhausted reports whether the runtime's output says that it ran out of memory.
func (c *container) exhausted(stderr string) bool {
	if c.i != nil {
		return c.i.Exhausted != nil && c.i.Exhausted(stderr)
	}
	return exitcause.OutOfMemory(stderr)
}

// death returns the error for the end of a container that exceeded no limit. Like a shell, the daemon reports in the
// exit status which signal ended the program.
func (c *container) death(stderr, file string) *core.Error {
	if c.code < 0 {
		c.backend.doubt()
		return core.Errorf(core.KindRuntime, Name+".run", "the connection to Docker ended while the program ran").WithHint(daemonHint)
	}
	x := exitcause.Exit{
		Op: Name + ".run", Subject: "the container", State: fmt.Sprintf("exit status %d", c.code), Stderr: stderr,
		File: file, Runtime: c.runtime, Native: c.i != nil,
	}
	if signal, ok := exitcause.OfShell(c.code); ok {
		x.Signal, x.State, x.Killed = signal, fmt.Sprintf("signal: %v", signal), signal == syscall.SIGKILL
	}
	if c.i != nil {
		x.Crashed = c.i.Crashed
	}
	return exitcause.Explain(x)
}

// watcher receives the daemon's events about containers of this engine that ran out of memory. After a container is
// removed, the daemon no longer knows.
type watcher struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	ids  map[string]bool
	news chan struct{} // closed and replaced with each event
}

const maxRemembered = 1024

func watchMemory(a *api, engine string) *watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{cancel: cancel, ids: map[string]bool{}, news: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			w.follow(ctx, a, engine)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return w
}

func (w *watcher) stop() { w.cancel() }

func (w *watcher) follow(ctx context.Context, a *api, engine string) {
	filters, _ := json.Marshal(map[string][]string{"type": {"container"}, "event": {"oom"}, "label": {labelEngine + "=" + engine}})
	response, err := a.open(ctx, http.MethodGet, "/events", url.Values{"filters": {string(filters)}}, "", nil)
	if err != nil {
		return
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var e struct{ Actor struct{ ID string } }
		if events.Decode(&e) != nil {
			return
		}
		w.note(e.Actor.ID)
	}
}

func (w *watcher) note(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ids) >= maxRemembered {
		clear(w.ids)
	}
	w.ids[id] = true
	close(w.news)
	w.news = make(chan struct{})
}

// has reports whether a container ran out of memory. It waits up to patience for the event.
func (w *watcher) has(id string, patience time.Duration) bool {
	for late := time.After(patience); ; {
		w.mu.Lock()
		found, news := w.ids[id], w.news
		w.mu.Unlock()
		if found {
			return true
		}
		select {
		case <-news:
		case <-late:
			return false
		}
	}
}
