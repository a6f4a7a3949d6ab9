package vm

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// socketTimeout bounds how long Firecracker may take to create its sockets.
const socketTimeout = 20 * time.Second

// dialSocket connects to a socket that the monitor has created in its confinement. It rejects a socket that another
// process has created.
func (p *machinePorts) dialSocket(ctx context.Context, path string) (*net.UnixConn, error) {
	name := "/proc/" + strconv.Itoa(p.pid) + "/root" + path
	for end := time.Now().Add(socketTimeout); ; {
		conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: name, Net: "unix"})
		switch {
		case err == nil:
			if err = p.checkPeer(conn); err != nil {
				_ = conn.Close()
				return nil, err
			}
			return conn, nil
		case !errors.Is(err, syscall.ENOENT) && !errors.Is(err, syscall.ECONNREFUSED) || time.Now().After(end):
			return nil, err
		}
		if err := p.pauseRetry(ctx); err != nil {
			return nil, err
		}
	}
}

// pauseRetry waits two milliseconds before the next attempt to connect. It returns an error if ctx or the monitor has
// ended.
func (p *machinePorts) pauseRetry(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-p.over:
		return io.EOF
	case <-time.After(2 * time.Millisecond):
		return nil
	}
}

// checkPeer returns an error if the process at the other end of conn is not the monitor.
func (p *machinePorts) checkPeer(conn *net.UnixConn) error {
	raw, err := conn.SyscallConn()
	if err != nil {
		return err
	}
	var who *unix.Ucred
	failed := raw.Control(func(fd uintptr) { who, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(failed, err); err == nil && int(who.Pid) != p.pid {
		err = fmt.Errorf("process %d uses the machine's socket", who.Pid)
	}
	return err
}

// dialVsock connects to a port of the machine as soon as the machine listens there.
func (p *machinePorts) dialVsock(ctx context.Context, port int) (*os.File, error) {
	for {
		conn, err := p.dialSocket(ctx, vsockPath)
		if err != nil {
			return nil, err
		}
		var f *os.File
		if err = requestPort(conn, port); err == nil {
			f, err = conn.File()
		}
		_ = conn.Close()
		if err == nil {
			return f, nil
		}
		if err := p.pauseRetry(ctx); err != nil {
			return nil, err
		}
	}
}

// requestPort asks Firecracker to connect to a port of the machine. It reads the answer byte by byte, because the
// bytes after the answer come from the machine.
func requestPort(conn *net.UnixConn, port int) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %d\n", port); err != nil {
		return err
	}
	var said []byte
	for b := make([]byte, 1); len(said) < 32; {
		if _, err := io.ReadFull(conn, b); err != nil {
			return err
		}
		if b[0] == '\n' {
			break
		}
		said = append(said, b[0])
	}
	if !strings.HasPrefix(string(said), "OK ") {
		return fmt.Errorf("the vsock of Firecracker reports %q", said)
	}
	return nil
}

// firecrackerAPI represents a connection to Firecracker's HTTP API, as a client.
type firecrackerAPI struct {
	conn *net.UnixConn
	said *bufio.Reader
}

func (p *machinePorts) dialAPI(ctx context.Context) (*firecrackerAPI, error) {
	conn, err := p.dialSocket(ctx, apiPath)
	if err != nil {
		return nil, err
	}
	return &firecrackerAPI{conn, bufio.NewReaderSize(conn, maxLineLength)}, nil
}

func (a *firecrackerAPI) closeConn() { _ = a.conn.Close() }

// apiRequest represents a request to Firecracker's HTTP API.
type apiRequest struct {
	method, path string
	body         any
}

var errRefused = errors.New("refused by Firecracker")

// sendRequest sends a request and waits for the response.
func (a *firecrackerAPI) sendRequest(r apiRequest) error {
	data, err := json.Marshal(r.body)
	if err != nil {
		return err
	}
	q, err := http.NewRequest(r.method, "http://localhost"+r.path, bytes.NewReader(data))
	if err != nil {
		return err
	}
	q.Header.Set("Content-Type", "application/json")
	if err := q.Write(a.conn); err != nil {
		return fmt.Errorf("the API of Firecracker: %w", err)
	}
	said, err := http.ReadResponse(a.said, q)
	if err != nil {
		return fmt.Errorf("the API of Firecracker: %w", err)
	}
	defer said.Body.Close()
	text, err := io.ReadAll(io.LimitReader(said.Body, maxLineLength))
	if err == nil && said.StatusCode/100 != 2 {
		var fault struct {
			Message string `json:"fault_message"`
		}
		_ = json.Unmarshal(text, &fault)
		err = fmt.Errorf("%w: %s %s: %s", errRefused, r.method, r.path, fault.Message)
	}
	return err
}
