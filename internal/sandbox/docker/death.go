package docker

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

const (
	effects     = "calls that the program had made before may have had their effects"
	stackHint   = "look for a recursion without an end, or use a loop; a higher limit of recursion does not make the stack larger"
	crashHint   = "most often that is a recursion without an end, or values nested too deeply: use loops and flat values; " + effects
	killedHint  = "the machine may be short of memory; " + effects
	exitHint    = "a program ends with its last statement, not by ending its process; " + effects
	restartHint = effects + "; run it again, in smaller steps"
	daemonHint  = "see that the daemon runs: sudo systemctl status docker; " + effects
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
	return strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory")
}

// complaint returns the first line of stderr that has letters, in the form of a message's tail.
func complaint(stderr string) string {
	for line := range strings.Lines(stderr) {
		if line = strings.TrimSpace(line); strings.ContainsFunc(line, unicode.IsLetter) {
			return ": " + line
		}
	}
	return ""
}

// death returns the error for the end of a container that exceeded no limit.
func (c *container) death(stderr, file string) *core.Error {
	if c.code < 0 {
		c.backend.doubt()
		return core.Errorf(core.KindRuntime, Name+".run", "the connection to Docker ended while the program ran").WithHint(daemonHint)
	}
	words := complaint(stderr)
	switch syscall.Signal(c.code - 128) {
	case syscall.SIGSEGV, syscall.SIGBUS, syscall.SIGILL, syscall.SIGTRAP, syscall.SIGABRT, syscall.SIGFPE:
		return c.crash(words, stderr, file)
	case syscall.SIGKILL:
		return core.Errorf(core.KindRuntime, Name+".run", "the container was ended from outside%s", words).WithHint(killedHint)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the container ended unexpectedly (exit status %d)%s", c.code, words)
	if c.i != nil && words == "" {
		return e.WithHint(exitHint)
	}
	return e.WithHint(restartHint)
}

// crash returns the error for a crash of the runtime, which a program can cause.
func (c *container) crash(words, stderr, file string) *core.Error {
	line, deep := 0, false
	if c.i != nil && c.i.Crashed != nil {
		line, deep = c.i.Crashed(stderr, file)
	}
	e := core.Errorf(core.KindRuntime, Name+".run", "the program crashed %s%s", c.runtime, words).WithHint(crashHint)
	if deep {
		e = core.Errorf(core.KindRuntime, Name+".run", "the call stack overflowed: functions called each other until the stack of %s was gone", c.runtime).WithHint(stackHint)
	}
	if e.Line = line; line > 0 {
		e.Column = 1
	}
	return e
}

// watcher receives the daemon's events about containers of this engine that ran out of memory. After a container is
// removed, the daemon no longer knows.
type watcher struct {
	cancel context.CancelFunc

	mu   sync.Mutex
	ids  map[string]bool
	news chan struct{} // closed and replaced with each
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
