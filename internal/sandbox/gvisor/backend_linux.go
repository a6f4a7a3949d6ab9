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

// gvisorBackend runs programs in gVisor containers. It holds the state that all containers of one engine share.
type gvisorBackend struct {
	Options
	place engineFolder
	runsc func() (string, error)
	// roots holds, for each runtime, a function that returns its root file system. Each root is made only once.
	roots map[string]func() (*guestRoot, error)
	// trial is the context of the trial container that findCapabilities starts. It ends when the backend is closed.
	trial context.Context
	over  context.CancelFunc

	trials  sync.WaitGroup
	spawner procgroup.LazySpawner
}

// runningProgram is a path of this process's own executable. It stays valid when an upgrade replaces the file.
const runningProgram = "/proc/self/exe"

// New returns a gVisor backend, which the caller must close. Before the first request it starts no process and
// creates no file.
func New(o Options) *warmpool.Backend {
	b := &gvisorBackend{Options: o, roots: map[string]func() (*guestRoot, error){}}
	b.place.dir = o.Dir
	b.trial, b.over = context.WithCancel(context.Background())
	b.runsc = sync.OnceValues(b.findRunsc)
	b.Limits = b.Limits.WithDefaults(core.DefaultLimits())
	self, err := os.Executable()
	switch {
	case len(b.Guest) == 0:
		b.Guest = []string{runningProgram, "guest"}
	case err == nil && b.Guest[0] == self:
		b.Guest = append([]string{runningProgram}, b.Guest[1:]...)
	}
	for _, c := range b.Commands.Commands() {
		b.roots[commandRoot+c.Name] = sync.OnceValues(func() (*guestRoot, error) { return b.buildCommand(c) })
	}
	kinds := []warmpool.GuestKind{b.poolKind(quickjs, nil)}
	for _, i := range o.Interpreters {
		kinds = append(kinds, b.poolKind(i.Runtime, &i))
	}
	return warmpool.New(warmpool.Options{
		Kind: kind, Kinds: kinds, Capabilities: b.findCapabilities, Command: b.runCommand, Closed: b.close,
	})
}

// close waits until the containers that were started only as a trial have ended, closes the spawner and removes the
// engine's folder. All guests must have ended.
func (b *gvisorBackend) close() error {
	b.over()
	b.place.closeFolder() // a later trial fails
	b.trials.Wait()
	b.spawner.Close()
	return b.place.removeFolder()
}

// poolKind describes to the pool how to start containers of a runtime. i is nil for the built-in runtime.
func (b *gvisorBackend) poolKind(runtime string, i *interpreter.Interpreter) warmpool.GuestKind {
	b.roots[runtime] = sync.OnceValues(func() (*guestRoot, error) { return b.buildRoot(runtime, i) })
	start := func(ctx context.Context) (warmpool.Guest, error) {
		g, err := b.startContainer(ctx, runtime)
		if err != nil {
			return nil, err // not a *container that is nil
		}
		return g, nil
	}
	return warmpool.GuestKind{
		Runtime: runtime, Start: start, Warm: b.Warm, MaxWarm: b.MaxWarm, Relayed: b.interpreterNetwork(i) != nil,
	}
}

// interpreterNetwork returns the network for programs of an interpreter, or nil if they have no network access.
func (b *gvisorBackend) interpreterNetwork(i *interpreter.Interpreter) *interpreter.ProxyNetwork {
	if i == nil || !i.Proxied {
		return nil
	}
	return b.Network
}

// findRunsc finds the executable of runsc, gVisor's container runtime.
func (b *gvisorBackend) findRunsc() (string, error) {
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
			WithHint(
				"install runsc: CGO_ENABLED=0 go install gvisor.dev/gvisor/runsc@go, or see https://gvisor.dev/docs/user_guide/install; if it is not in PATH, set gvisor: {runsc: /path/to/runsc}",
			)
	}
	return found, nil
}

// trialTime bounds how long the trial container of tryContainer may take to become ready.
const trialTime = 20 * time.Second

// findCapabilities determines the capabilities by starting a container. It does not notice software that is installed
// later.
func (b *gvisorBackend) findCapabilities() sandbox.Capabilities {
	have := sandbox.Capabilities{
		Name: kind.Name, Strength: kind.Strength, Walls: walled, Runtimes: []string{quickjs}, Proxies: b.Network != nil,
	}
	if err := b.tryContainer(); err != nil {
		have.Unavailable = core.AsError(err)
		return have
	}
	for _, i := range b.Interpreters {
		if _, err := i.FindProgram(); err != nil {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: core.AsError(err)})
			continue
		}
		have.Runtimes = append(have.Runtimes, i.Runtime)
	}
	slices.Sort(have.Runtimes)
	b.Commands.AddToCapabilities(&have)
	return have
}

// tryContainer starts a container and ends it, to check that containers work on this machine.
func (b *gvisorBackend) tryContainer() error {
	if _, err := b.runsc(); err != nil {
		return err
	}
	b.trials.Add(1)
	defer b.trials.Done()
	ctx, cancel := context.WithTimeout(b.trial, trialTime)
	defer cancel()
	g, err := b.startContainer(ctx, quickjs)
	if err != nil {
		return err
	}
	defer func() {
		_ = g.Close()
		<-g.Gone()
	}()
	stop := context.AfterFunc(ctx, g.Kill)
	defer stop()
	if _, err := wire.ReadGreeting(wire.NewConn(g)); err != nil {
		g.Kill()
		<-g.Gone()
		cause, hint := findRemedy(g.stderr.String())
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "gVisor cannot start a container on this machine: %s (%w%s)", cause, err,
			exitcause.FirstStderrLine(g.stderr.String()),
		).WithHint("%s", hint)
	}
	return nil
}

// findRemedy returns the reason why gVisor failed to start a container, and a hint with the command that fixes it.
func findRemedy(stderr string) (cause, hint string) {
	setting := func(file string) string {
		data, _ := os.ReadFile(file)
		return strings.TrimSpace(string(data))
	}
	switch {
	case os.Geteuid() != 0 && setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1":
		return "AppArmor denies user namespaces to programs without a profile",
			"sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
	case os.Geteuid() != 0 && setting("/proc/sys/kernel/unprivileged_userns_clone") == "0":
		return "only root may create user namespaces on this machine", "sudo sysctl -w kernel.unprivileged_userns_clone=1"
	case setting("/proc/sys/user/max_user_namespaces") == "0":
		return "user namespaces are turned off on this machine", "sudo sysctl -w user.max_user_namespaces=15000"
	case strings.Contains(stderr, "flag provided but not defined"):
		return "this runsc is too old", "install a newer one: https://gvisor.dev/docs/user_guide/install"
	case strings.Contains(stderr, "no space left"):
		return "the disk is full", "free disk space where the data directory is"
	}
	return "see what it says", "run retort doctor; to test gVisor itself: runsc do true"
}

// startContainer starts a container for programs of a runtime.
func (b *gvisorBackend) startContainer(ctx context.Context, runtime string) (*guestContainer, error) {
	runsc, err := b.runsc()
	if err != nil {
		return nil, err
	}
	r, err := b.roots[runtime]()
	if err != nil {
		return nil, err
	}
	dir, err := b.place.makeContainerDir()
	if err != nil {
		return nil, explainFileError(err)
	}
	g, err := b.launchContainer(ctx, runsc, r, dir)
	if err != nil {
		_ = os.RemoveAll(dir)
		return nil, explainFileError(err)
	}
	return g, nil
}

// launchContainer starts the container whose files are in the folder dir and whose root file system is r.
func (b *gvisorBackend) launchContainer(ctx context.Context, runsc string, r *guestRoot, dir string) (_ *guestContainer, err error) {
	shared := r.shareMemory(dir)
	defer func() {
		if err != nil {
			_ = shared.Close()
		}
	}()
	if err := r.writeBundle(dir, shared.FilePath()); err != nil {
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
	g.connectGuest()
	g.cmd.Stdin, g.cmd.Stdout, g.cmd.Stderr = in, out, &g.stderr
	if err := b.runContainer(ctx, g); err != nil {
		return nil, errors.Join(err, toGuest.Close(), fromGuest.Close())
	}
	return g, nil
}

// newContainer returns a container that is not started yet. The argument dir is the folder with the container's
// bundle, which consists of the files that runsc reads.
func newContainer(runsc string, r *guestRoot, dir string) *guestContainer {
	cmd := exec.Command(runsc, runscArguments(dir)...)
	cmd.Env, cmd.Dir = []string{"TMPDIR=" + dir}, dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	cmd.WaitDelay = time.Second
	return &guestContainer{dir: dir, cmd: cmd, root: r, gone: make(chan struct{}), watching: make(chan struct{})}
}

// runContainer starts the process of a container and watches for its end.
func (b *gvisorBackend) runContainer(ctx context.Context, g *guestContainer) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if g.group, err = b.spawner.Ensure().Start(g.cmd); err == nil {
		go g.awaitExit()
	}
	return err
}

// runscArguments returns the arguments of runsc for a container. The container has no network, host files, sockets or
// devices. It uses the gVisor platform that needs no hardware support.
func runscArguments(dir string) []string {
	args := []string{
		"--root=" + filepath.Join(dir, "state"), "--platform=systrap", "--network=none", "--ignore-cgroups", "--overlay2=none",
		"--host-uds=none", "--host-fifo=none", "--net-raw=false",
	}
	if os.Geteuid() != 0 {
		args = append(args, "--rootless")
	}
	return append(args, "run", "--bundle="+dir, "--pid-file="+filepath.Join(dir, pidFile), "retort-"+filepath.Base(dir))
}

// explainFileError converts a file error to one with a hint on how to fix it.
func explainFileError(err error) error {
	var known *core.Error
	switch {
	case errors.As(err, &known):
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return core.Errorf(
			core.KindSandboxUnavailable, Name, "the container could not be written: %w", err,
		).WithHint("free space on the disk of the data directory")
	}
	return core.Errorf(
		core.KindSandboxUnavailable, Name, "the container could not be started: %w", err,
	).WithHint("run `retort doctor` to see what is wrong")
}

// buildRoot creates the root file system for the containers of a runtime.
func (b *gvisorBackend) buildRoot(runtime string, i *interpreter.Interpreter) (*guestRoot, error) {
	dir, err := b.place.makeRootDir(runtime)
	if err != nil {
		return nil, explainFileError(err)
	}
	r, err := newRoot(dir, runtime, b.Guest, i, b.interpreterNetwork(i))
	if err != nil {
		return nil, explainFileError(fmt.Errorf("%s: %w", runtime, err))
	}
	return r, nil
}
