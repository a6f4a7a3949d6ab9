// Package process runs each program in a child process of its own: this binary
// again, as `retort guest`, which has the JavaScript runtime built in. The child
// has no environment, no inherited descriptors and no say: it is started ahead
// of time, runs one program and is killed.
package process

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

const (
	name   = "process"
	engine = "quickjs"
)

// Options configure a Backend. The zero value is a good default.
type Options struct {
	// Command starts a guest that speaks package wire on its standard input
	// and output. Empty means this binary with the argument "guest".
	Command []string
	// Warm is how many children wait for programs while little is asked for:
	// 2 if zero, none if negative.
	Warm int
	// MaxWarm is how many may wait when much is asked for: 8 if zero.
	MaxWarm int
}

// Backend is an isolate.Backend of child processes. It is safe for use by
// several goroutines.
type Backend struct {
	command     []string
	unavailable *run.Error
	spawner     *spawner
	pool        *pool

	mu       sync.Mutex
	running  map[*sandbox]struct{}
	closed   bool
	children sync.WaitGroup // that have been started and not yet waited for
}

var _ isolate.Backend = (*Backend)(nil)

// New makes a Backend and starts to warm children in the background. Close
// must be called.
func New(o Options) *Backend {
	b := &Backend{command: o.Command, spawner: newSpawner(), running: map[*sandbox]struct{}{}}
	if len(b.command) == 0 {
		self, err := os.Executable()
		if err != nil {
			b.unavailable = run.Errorf(run.KindSandboxUnavailable, "process", "the path of this program is not known: %w", err)
		}
		b.command = []string{self, "guest"}
	}
	warm, most := o.Warm, o.MaxWarm
	if warm == 0 {
		warm = 2
	}
	if most == 0 {
		most = 8
	}
	if b.unavailable != nil {
		warm = 0
	}
	b.pool = newPool(b.spawn, max(warm, 0), max(warm, most, 0))
	return b
}

// Capabilities implements isolate.Backend.
func (b *Backend) Capabilities() isolate.Capabilities {
	return isolate.Capabilities{Name: name, Runtimes: []string{engine}, Strength: strength, Walls: walls(), Unavailable: b.unavailable}
}

// Prepare implements isolate.Backend. It takes a child that is ready, or waits
// for one to be started.
func (b *Backend) Prepare(ctx context.Context, s isolate.Spec) (isolate.Sandbox, error) {
	if b.unavailable != nil {
		return nil, b.unavailable
	}
	if !slices.Contains(b.Capabilities().Runtimes, s.Runtime) {
		return nil, run.Errorf(run.KindSandboxUnavailable, "process.prepare", "the process sandbox has no runtime %q", s.Runtime).
			WithHint("it has %s", engine)
	}
	c, err := b.pool.take(ctx)
	if err != nil {
		return nil, unavailable(ctx, err)
	}
	sandbox := &sandbox{backend: b, child: c, limits: s.Limits}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		c.kill()
		return nil, unavailable(ctx, errClosed)
	}
	b.running[sandbox] = struct{}{}
	return sandbox, nil
}

func unavailable(ctx context.Context, err error) *run.Error {
	if ctx.Err() != nil {
		return run.Errorf(run.KindCancelled, "process.prepare", "the execution was cancelled")
	}
	return run.Errorf(run.KindSandboxUnavailable, "process.prepare", "no sandbox could be started: %w", err)
}

var errClosed = errors.New("the process backend is closed")

// Close implements isolate.Backend.
func (b *Backend) Close() error {
	b.mu.Lock()
	b.closed = true
	running := make([]*sandbox, 0, len(b.running))
	for s := range b.running {
		running = append(running, s)
	}
	b.mu.Unlock()
	b.pool.close()
	for _, s := range running {
		_ = s.Close()
	}
	b.children.Wait()
	b.spawner.close()
	return nil
}

func (b *Backend) forget(s *sandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.running, s)
}

// rootDir is where children run: not in a directory that means something.
func rootDir() string { return filepath.VolumeName(os.TempDir()) + string(filepath.Separator) }
