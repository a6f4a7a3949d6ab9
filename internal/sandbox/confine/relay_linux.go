package confine

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/wire/mux"
)

// relayFiles bounds the open descriptors of a relay: one for each connection, and some spare ones.
const relayFiles = mux.MaxStreams + 32

// startRelay starts the guest in a child process, which completes its own confinement, and forwards the guest's
// connections to the parent. It returns when the guest has ended or the parent has closed its end of the stream. If
// the parent has closed the stream, the guest ends together with this process. startRelay returns a *RelayEnded, or
// another error if the confinement failed.
func (p *SandboxPlan) startRelay() error {
	runtime.GOMAXPROCS(2)
	// The guest runs as the same user and must not access the relay's memory. When the guest starts, this is
	// undone for the guest.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return setupError("dumpable", err)
	}
	listener, err := p.openListener()
	if err != nil {
		return setupError("network", err)
	}
	guest, err := p.startGuest()
	if err != nil {
		return setupError("guest", err)
	}
	self := &SandboxPlan{Profile: "relay", Files: relayFiles, User: p.User, Contained: true}
	if err := self.confineProcess(nil); err != nil {
		return err
	}
	return &RelayEnded{guest.forwardConnections(listener, stdioStream{os.NewFile(0, "input"), os.NewFile(1, "output")})}
}

// openListener opens a listener in the network namespace of this process.
func (p *SandboxPlan) openListener() (net.Listener, error) {
	if err := raiseLoopback(); err != nil && !p.Contained { // there the device is up already, and raising it is not permitted
		return nil, err
	}
	fd, err := listenProxyPort()
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "listener")
	defer f.Close()
	return net.FileListener(f)
}

// relayedGuest represents the guest process of a relay.
type relayedGuest struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
}

// startGuest starts this binary again as the guest. The plan of the guest does not include the relay.
func (p *SandboxPlan) startGuest() (*relayedGuest, error) {
	rest := *p
	if rest.Network = relayedNetwork; rest.Processes > 0 { // the threads of a user are counted together
		rest.Processes += RelayThreads
	}
	plan, err := json.Marshal(rest)
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(ProgramPath, os.Args[1:]...)
	cmd.Env, cmd.Stderr = []string{}, os.NewFile(standardError, "errors")
	var told *os.File
	if p.Contained {
		cmd.Args[2] = string(plan)
	} else {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		defer read.Close()
		cmd.ExtraFiles, told = []*os.File{read}, write
	}
	g := &relayedGuest{cmd: cmd}
	if g.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if g.out, err = cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil || told == nil {
		return g, err
	}
	_, err = told.Write(plan)
	return g, errors.Join(err, told.Close())
}

// forwardConnections forwards the guest's output and its connections over stream until the guest ends or the parent
// closes the stream. It returns the guest's exit status.
func (g *relayedGuest) forwardConnections(l net.Listener, stream io.ReadWriteCloser) int {
	m := mux.New(stream, nil)
	go func() { _ = m.ServeFrames() }() // Done reports its end
	go forwardConnections(l, m)
	go func() { _, _ = io.Copy(g.in, m.FirstStream()) }()
	ended := make(chan int, 1)
	// The other end closes when the guest's output ends. So the output is closed only when the exit status is
	// known: a process with much memory takes time to end.
	go func() {
		_, _ = io.Copy(m.FirstStream(), g.out)
		_ = g.cmd.Wait() // how it ended is in ProcessState
		ended <- g.exitStatus()
		_ = m.FirstStream().CloseWrite()
	}()
	select {
	case status := <-ended:
		return status
	case <-m.Done():
	}
	select {
	case status := <-ended:
		return status
	default:
		return 0
	}
}

// exitStatus returns the guest's exit status, or 128 plus the number of the signal that ended it.
func (g *relayedGuest) exitStatus() int {
	status, ok := g.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return g.cmd.ProcessState.ExitCode()
}

// forwardConnections accepts connections, a limited number at a time, and forwards each over its own stream of m, the
// multiplexed connection to the parent.
func forwardConnections(l net.Listener, m *mux.StreamMux) {
	free := make(chan struct{}, mux.MaxStreams)
	for {
		free <- struct{}{}
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-free }()
			defer conn.Close()
			lane, err := m.Open()
			if err != nil {
				return
			}
			defer lane.Close()
			copyBoth(lane, conn)
		}()
	}
}

// halfCloser represents a connection whose sending direction can be closed separately.
type halfCloser interface {
	net.Conn
	CloseWrite() error
}

// copyBoth copies data between two connections in both directions, until both directions have ended or one has
// failed.
func copyBoth(a, b net.Conn) {
	ctx, over := context.WithCancel(context.Background())
	defer context.AfterFunc(ctx, func() { _, _ = a.Close(), b.Close() })()
	defer over()
	var both sync.WaitGroup
	copying := func(to, from net.Conn) {
		if _, err := io.Copy(struct{ io.Writer }{to}, struct{ io.Reader }{from}); err != nil {
			over()
			return
		}
		if half, ok := to.(halfCloser); !ok || half.CloseWrite() != nil {
			over()
		}
	}
	both.Go(func() { copying(a, b) })
	both.Go(func() { copying(b, a) })
	both.Wait()
}

// stdioStream combines the standard input and output of this process into one stream.
type stdioStream struct {
	io.Reader
	io.Writer
}

// Close does nothing, because the relay ends the conversation by exiting.
func (stdioStream) Close() error { return nil }
