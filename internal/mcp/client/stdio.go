package client

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

const (
	// terminateGrace is how long a server's process may take to end after its input was closed. After a third of that
	// time the process is asked to terminate, and at the end of that time it is killed.
	terminateGrace = time.Second
	// exitPatience is how long to wait for the exit of a server that closed its output, so that its exit status can
	// be reported. After the exit, the last output of the server is read for at most the same time.
	exitPatience = time.Second
)

// startStdio starts the command of spec as a process, and returns a wire over the process's standard streams.
func startStdio(spec ServerSpec, processes ProcessStarter, stderr io.Writer, a memoryAccount, place *spoolDir) (messageWire, int, *core.Error) {
	cmd, err := serverCommand(spec)
	if err != nil {
		return nil, 0, errStart(spec, err)
	}
	pipes, err := openPipes(cmd)
	if err != nil {
		return nil, 0, errStart(spec, err)
	}
	process, err := processes.Start(cmd)
	pipes.closeTheirs()
	if err != nil {
		pipes.closeOurs()
		return nil, 0, errStart(spec, err)
	}
	logged := make(chan struct{})
	go func() {
		defer close(logged)
		_, _ = io.Copy(stderr, pipes.stderr)
	}()
	go func() {
		<-process.Done()
		pipes.expireReads(spec.exit)
	}()
	return &stdioWire{
		in: pipes.stdout, out: pipes.stdin, limit: spec.MaxMessage, account: a, spool: place,
		ended: func(error) *core.Error { return errEnded(process, logged, spec.exit) },
		finish: func() {
			if !closesWithin(process.Done(), terminateGrace/3) {
				process.Stop(terminateGrace - terminateGrace/3)
			}
			pipes.closeOurs()
			<-logged
		},
	}, process.ProcessID(), nil
}

// closesWithin reports whether the channel c is closed within the duration d.
func closesWithin(c <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-c:
		return true
	case <-t.C:
		return false
	}
}

// serverProcess is the process of a server, such as a *reaper.ReapedProcess.
type serverProcess interface {
	Done() <-chan struct{}
	State() string
	Stop(grace time.Duration)
}

// errEnded returns the error for a server that closed its output, with its exit
// status. It kills the process if it does not exit within patience. If the process
// exits, errEnded waits up to patience again for logged, which is closed when the
// last lines of the server's log have been read.
func errEnded(process serverProcess, logged <-chan struct{}, patience time.Duration) *core.Error {
	if !closesWithin(process.Done(), patience) {
		process.Stop(0)
		return core.Errorf(core.KindUpstreamGone, opReceive, "the server closed its output without exiting")
	}
	closesWithin(logged, patience)
	return core.Errorf(core.KindUpstreamGone, opReceive, "the server process ended: %s", process.State())
}

func errStart(spec ServerSpec, err error) *core.Error {
	e := core.Errorf(core.KindUpstreamGone, "upstream.start", "the server cannot be started: %w", err)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return e.WithHint("install %s, or give its full path as the command", spec.Command)
	}
	return e
}

// serverCommand returns the process of spec, not yet started. A command without a path is looked up in the PATH that
// the server's environment has.
func serverCommand(spec ServerSpec) (*exec.Cmd, error) {
	env := serverEnvironment(os.Environ(), spec.Env)
	path, err := lookPath(spec.Command, env)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, spec.Args...)
	cmd.Args[0] = spec.Command
	cmd.Dir, cmd.Env = spec.Dir, env
	return cmd, nil
}

func lookPath(name string, env []string) (string, error) {
	path := lookupVariable(env, "PATH")
	if filepath.Base(name) != name || path == os.Getenv("PATH") {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", &exec.Error{Name: name, Err: exec.ErrNotFound}
}

func lookupVariable(env []string, name string) string {
	for _, kv := range env {
		if k, v, _ := strings.Cut(kv, "="); sameVariable(k, name) {
			return v
		}
	}
	return ""
}

// serverEnvironment returns the environment of a server's process: the configured variables, and those variables of
// Retort's own environment that describe the user and the user's folders. No other variable is passed on, because it
// may hold a secret.
func serverEnvironment(own []string, configured map[string]string) []string {
	var env []string
	for _, kv := range own {
		name, _, _ := strings.Cut(kv, "=")
		if _, set := configured[name]; isInherited(name) && !set {
			env = append(env, kv)
		}
	}
	for name, value := range configured {
		env = append(env, name+"="+value)
	}
	return env
}

func isInherited(name string) bool {
	for _, n := range inheritedNames() {
		if sameVariable(n, name) {
			return true
		}
	}
	return strings.HasPrefix(name, "LC_") || strings.HasPrefix(name, "XDG_")
}

// childPipes holds both ends of the standard streams of a child process: the ends that this process uses, and those
// that the child inherits.
type childPipes struct {
	stdin          *os.File
	stdout, stderr *os.File
	theirs         []*os.File
}

func openPipes(cmd *exec.Cmd) (*childPipes, error) {
	p := &childPipes{}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.theirs = inW, append(p.theirs, inR)
	outR, outW, err := os.Pipe()
	if err != nil {
		p.closeAll()
		return nil, err
	}
	p.stdout, p.theirs = outR, append(p.theirs, outW)
	errR, errW, err := os.Pipe()
	if err != nil {
		p.closeAll()
		return nil, err
	}
	p.stderr, p.theirs = errR, append(p.theirs, errW)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	return p, nil
}

func (p *childPipes) closeTheirs() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
}

func (p *childPipes) closeOurs() {
	for _, f := range []*os.File{p.stdin, p.stdout, p.stderr} {
		_ = f.Close() // closing nil is an error, not a panic
	}
}

// expireReads makes reads of the server's output fail once the time patience has passed. It is called when the server
// has exited, because a daemon that the server started may keep the pipes open.
func (p *childPipes) expireReads(patience time.Duration) {
	soon := time.Now().Add(patience)
	_ = p.stdout.SetReadDeadline(soon)
	_ = p.stderr.SetReadDeadline(soon)
}

func (p *childPipes) closeAll() {
	p.closeTheirs()
	p.closeOurs()
}

// startDial connects to a server through its Dial function, in this process.
func startDial(ctx context.Context, spec ServerSpec, a memoryAccount, place *spoolDir) (messageWire, *core.Error) {
	conn, err := spec.Dial(ctx)
	if err != nil {
		return nil, core.Errorf(core.KindUpstreamGone, "upstream.start", "the server cannot be reached: %w", err)
	}
	closing := sync.OnceFunc(func() { _ = conn.Close() })
	return &stdioWire{
		in: conn, out: conn, limit: spec.MaxMessage, account: a, spool: place, finish: closing,
		ended: func(err error) *core.Error {
			return core.Errorf(core.KindUpstreamGone, opReceive, "the connection to the server ended: %w", err)
		},
	}, nil
}
