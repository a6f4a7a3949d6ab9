package gvisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/exitcause"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire"
)

// backend holds what the containers of one engine share.
type backend struct {
	Options
	place place
	runsc func() (string, error)
	roots map[string]func() (*root, error) // by runtime, each made once
	trial context.Context                  // of the container that nobody asked for; ends with the backend
	over  context.CancelFunc

	trials  sync.WaitGroup
	mu      sync.Mutex
	spawner *procgroup.Spawner
}

// running gives the path of the program that this process runs, even after an upgrade has replaced the file.
const running = "/proc/self/exe"

// New makes a backend, which the caller must close. It starts and writes nothing before the first request.
func New(o Options) *warmpool.Backend {
	b := &backend{Options: o, roots: map[string]func() (*root, error){}}
	b.place.dir = o.Dir
	b.trial, b.over = context.WithCancel(context.Background())
	b.runsc = sync.OnceValues(b.find)
	b.Limits = b.Limits.Or(core.DefaultLimits())
	self, err := os.Executable()
	switch {
	case len(b.Guest) == 0:
		b.Guest = []string{running, "guest"}
	case err == nil && b.Guest[0] == self:
		b.Guest = append([]string{running}, b.Guest[1:]...)
	}
	for _, c := range b.Commands.All() {
		b.roots[commandRoot+c.Name] = sync.OnceValues(func() (*root, error) { return b.buildCommand(c) })
	}
	kinds := []warmpool.Kind{b.kind(quickjs, nil)}
	for _, i := range o.Interpreters {
		kinds = append(kinds, b.kind(i.Runtime, &i))
	}
	return warmpool.New(warmpool.Options{Name: Name, Kinds: kinds, Capabilities: sync.OnceValue(b.look), Command: b.command, Closed: b.close})
}

// spawn returns the spawner of containers. It creates the spawner on first use.
func (b *backend) spawn() *procgroup.Spawner {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spawner == nil {
		b.spawner = procgroup.New(procgroup.OpenGroups())
	}
	return b.spawner
}

// close waits for trials, ends the spawner and removes the folder. All guests must be gone.
func (b *backend) close() error {
	b.over()
	b.place.close() // a later trial fails
	b.trials.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.spawner != nil {
		b.spawner.Close()
	}
	return b.place.remove()
}

// kind returns how containers of a runtime are started; i is nil for the built-in runtime.
func (b *backend) kind(runtime string, i *interpreter.Interpreter) warmpool.Kind {
	b.roots[runtime] = sync.OnceValues(func() (*root, error) { return b.build(runtime, i) })
	start := func(ctx context.Context) (warmpool.Guest, error) {
		g, err := b.start(ctx, runtime)
		if err != nil {
			return nil, err // not a *container that is nil
		}
		return g, nil
	}
	return warmpool.Kind{Runtime: runtime, Start: start, Warm: b.Warm, MaxWarm: b.MaxWarm, Bounds: "rlimits, watcher, and a control group where there is one", Relayed: b.network(i) != nil}
}

// network returns the network for programs of an interpreter, or nil if they have none.
func (b *backend) network(i *interpreter.Interpreter) *interpreter.Network {
	if i == nil || !i.Proxied {
		return nil
	}
	return b.Network
}

// find looks for the runsc program.
func (b *backend) find() (string, error) {
	name := b.Runsc
	if name == "" {
		name = "runsc"
	}
	found, err := exec.LookPath(name)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err != nil {
		return "", core.Errorf(core.KindSandboxUnavailable, Name, "gVisor is not on this machine: %w", err).
			WithHint("install runsc: CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@go, or as https://gvisor.dev/docs/user_guide/install says; where it is not in PATH, set gvisor: {runsc: /path/to/runsc}")
	}
	return found, nil
}

// trialTime bounds the time that the first container may take to become ready.
const trialTime = 20 * time.Second

// look finds the capabilities by starting a container. It does not notice what is installed later.
func (b *backend) look() sandbox.Capabilities {
	have := sandbox.Capabilities{Name: Name, Strength: sandbox.UserKernel, Walls: walled, Runtimes: []string{quickjs}, Proxies: b.Network != nil}
	if err := b.try(); err != nil {
		have.Unavailable = core.AsError(err)
		return have
	}
	for _, i := range b.Interpreters {
		if _, err := i.Look(); err != nil {
			have.Missing = append(have.Missing, sandbox.Missing{Runtime: i.Runtime, Why: core.AsError(err)})
			continue
		}
		have.Runtimes = append(have.Runtimes, i.Runtime)
	}
	slices.Sort(have.Runtimes)
	b.Commands.Note(&have)
	return have
}

// try starts a container and ends it again.
func (b *backend) try() error {
	if _, err := b.runsc(); err != nil {
		return err
	}
	b.trials.Add(1)
	defer b.trials.Done()
	ctx, cancel := context.WithTimeout(b.trial, trialTime)
	defer cancel()
	g, err := b.start(ctx, quickjs)
	if err != nil {
		return err
	}
	defer func() {
		_ = g.Close()
		<-g.Gone()
	}()
	stop := context.AfterFunc(ctx, g.Kill)
	defer stop()
	if _, err := wire.Greet(wire.NewConn(g)); err != nil {
		g.Kill()
		<-g.Gone()
		cause, hint := remedy(g.stderr.String())
		return core.Errorf(core.KindSandboxUnavailable, Name, "gVisor does not start a container here: %s (%w%s)", cause, err, exitcause.Detail(g.stderr.String())).WithHint("%s", hint)
	}
	return nil
}

// remedy returns the reason why gVisor did not start a container, and a hint with the command that fixes it.
func remedy(stderr string) (cause, hint string) {
	setting := func(file string) string {
		data, _ := os.ReadFile(file)
		return strings.TrimSpace(string(data))
	}
	switch {
	case os.Geteuid() != 0 && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor keeps user namespaces from programs that it does not know", "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case os.Geteuid() != 0 && setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "user namespaces are for root only here", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are switched off", "sudo sysctl -w user.max_user_namespaces=15000"
	case strings.Contains(stderr, "flag provided but not defined"):
		return "this runsc is too old", "install a newer one: https://gvisor.dev/docs/user_guide/install"
	case strings.Contains(stderr, "no space left"):
		return "the disk is full", "make room where the engine's home is"
	}
	return "see what it says", "retort doctor; gVisor's own view: runsc do true"
}

// start starts a container of a runtime.
func (b *backend) start(ctx context.Context, runtime string) (*container, error) {
	runsc, err := b.runsc()
	if err != nil {
		return nil, err
	}
	r, err := b.roots[runtime]()
	if err != nil {
		return nil, err
	}
	dir, err := b.place.container()
	if err != nil {
		return nil, full(err)
	}
	g, err := b.launch(ctx, runsc, r, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, full(err)
	}
	return g, nil
}

// launch starts the container whose folder is dir.
func (b *backend) launch(ctx context.Context, runsc string, r *root, dir string) (_ *container, err error) {
	shared := r.share(dir)
	defer func() {
		if err != nil {
			_ = shared.Close()
		}
	}()
	if err := r.bundle(dir, shared.Path()); err != nil {
		return nil, err
	}
	in, toGuest, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	fromGuest, out, err := os.Pipe()
	if err != nil {
		_ = toGuest.Close()
		return nil, err
	}
	defer out.Close()
	g := newContainer(runsc, r, dir)
	g.in, g.out, g.shared = fromGuest, toGuest, shared
	g.connect()
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = in, out, &g.stderr
	if err := b.run(ctx, g); err != nil {
		return nil, errors.Join(err, toGuest.Close(), fromGuest.Close())
	}
	return g, nil
}

// newContainer returns a container that is not started yet. Its bundle is in dir.
func newContainer(runsc string, r *root, dir string) *container {
	cmd := exec.Command(runsc, arguments(dir)...)
	cmd.Env, cmd.Dir = []string{"TMPDIR=" + dir}, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	return &container{dir: dir, cmd: cmd, root: r, gone: make(chan struct{}), watching: make(chan struct{})}
}

// run starts a container.
func (b *backend) run(ctx context.Context, g *container) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if g.group, err = b.spawn().Start(g.cmd); err == nil {
		go g.reap()
	}
	return err
}

// arguments returns the arguments of runsc for a container: it has no network, host files, sockets or devices, and
// uses the platform that needs no support of the machine.
func arguments(dir string) []string {
	args := []string{
		"--root=" + filepath.Join(dir, "state"), "--platform=systrap", "--network=none", "--ignore-cgroups", "--overlay2=none",
		"--host-uds=none", "--host-fifo=none", "--net-raw=false",
	}
	if os.Geteuid() != 0 {
		args = append(args, "--rootless")
	}
	return append(args, "run", "--bundle="+dir, "--pid-file="+filepath.Join(dir, pidFile), "retort-"+filepath.Base(dir))
}

// full converts a file error to one that tells the user what to do.
func full(err error) error {
	var known *core.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return core.Errorf(core.KindSandboxUnavailable, Name, "the container could not be written: %w", err).WithHint("make room on the disk of the engine's home")
	}
	return core.Errorf(core.KindSandboxUnavailable, Name, "the container could not be started: %w", err).WithHint("`retort doctor` says what is wrong")
}

// build creates the root of a runtime.
func (b *backend) build(runtime string, i *interpreter.Interpreter) (*root, error) {
	dir, err := b.place.root(runtime)
	if err != nil {
		return nil, full(err)
	}
	r, err := newRoot(dir, runtime, b.Guest, i, b.network(i))
	if err != nil {
		return nil, full(fmt.Errorf("%s: %w", runtime, err))
	}
	return r, nil
}
