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
	// oomEventDelay bounds how long after a container's end the daemon may take to report that the container ran out
	// of memory.
	oomEventDelay = 250 * time.Millisecond
)

// Explain implements warmpool.Guest.
func (c *guestContainer) Explain(end *wire.ProgramEnd, p core.CheckedProgram) {
	select {
	case <-c.ended:
	case <-time.After(removeTimeout):
	}
	stderr := c.stderr.String()
	if c.outgrown.Load() || c.isOutOfMemory(stderr) || c.code == 128+int(syscall.SIGKILL) && c.daemon.oom.isOutOfMemory(c.id, oomEventDelay) {
		stop := wire.MemoryStop(p.Limits.Memory)
		end.Status, end.Error = stop.Status, stop.Reason
		return
	}
	end.Status, end.Error = core.StatusError, c.exitError(stderr, p.Name)
}

// isOutOfMemory reports whether the runtime's standard error states that it ran out of memory.
func (c *guestContainer) isOutOfMemory(stderr string) bool {
	if c.i != nil {
		return c.i.Exhausted != nil && c.i.Exhausted(stderr)
	}
	return exitcause.OutOfMemory(stderr)
}

// exitError returns the error for a container that ended without exceeding a limit. It derives the signal that ended
// the program from the exit status, which follows the convention of shells.
func (c *guestContainer) exitError(stderr, file string) *core.Error {
	if c.code < 0 {
		c.backend.recheckDaemon()
		return core.Errorf(core.KindRuntime, Name+".run", "the connection to Docker ended while the program ran").WithHint(daemonHint)
	}
	x := exitcause.RuntimeExit{
		Op: Name + ".run", Subject: "the container", State: fmt.Sprintf("exit status %d", c.code), Stderr: stderr,
		File: file, Runtime: c.runtime, Native: c.i != nil,
	}
	if signal, ok := exitcause.OfShell(c.code); ok {
		x.Signal, x.State, x.Killed = signal, fmt.Sprintf("signal: %v", signal), signal == syscall.SIGKILL
	}
	if c.i != nil {
		x.Crashed = c.i.Crashed
	}
	return exitcause.ExplainExit(x)
}

// oomWatcher receives the daemon's events about containers of this engine that ran out of memory. It must receive
// them as they happen, because the daemon forgets a container when it removes it.
type oomWatcher struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	ids  map[string]bool
	news chan struct{} // closed and replaced by a new channel at each event, to wake all waiting goroutines
}

const maxRemembered = 1024

func watchMemory(a *engineAPI, engine string) *oomWatcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &oomWatcher{cancel: cancel, ids: map[string]bool{}, news: make(chan struct{})}
	go func() {
		for ctx.Err() == nil {
			w.followEvents(ctx, a, engine)
			select {
			case <-ctx.Done():
			case <-time.After(time.Second):
			}
		}
	}()
	return w
}

func (w *oomWatcher) stopWatching() { w.cancel() }

func (w *oomWatcher) followEvents(ctx context.Context, a *engineAPI, engine string) {
	filters, _ := json.Marshal(map[string][]string{"type": {"container"}, "event": {"oom"}, "label": {labelEngine + "=" + engine}})
	response, err := a.openResponse(ctx, http.MethodGet, "/events", url.Values{"filters": {string(filters)}}, "", nil)
	if err != nil {
		return
	}
	defer response.Body.Close()
	for events := json.NewDecoder(response.Body); ; {
		var e struct{ Actor struct{ ID string } }
		if events.Decode(&e) != nil {
			return
		}
		w.noteContainer(e.Actor.ID)
	}
}

func (w *oomWatcher) noteContainer(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ids) >= maxRemembered {
		clear(w.ids)
	}
	w.ids[id] = true
	close(w.news)
	w.news = make(chan struct{})
}

// isOutOfMemory reports whether a container ran out of memory. It waits for the daemon's event that says so, but not
// longer than the argument patience.
func (w *oomWatcher) isOutOfMemory(id string, patience time.Duration) bool {
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
