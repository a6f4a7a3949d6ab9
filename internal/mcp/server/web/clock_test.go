package web

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/server"
)

// fakeEngine is an in-memory engine without upstream servers. For a program it calls the function execute. It cannot
// run anything else.
type fakeEngine struct {
	Engine
	execute func(ctx context.Context)
	running *atomic.Int64
}

func (e fakeEngine) Execute(ctx context.Context, _ core.ExecutionRequest) core.Outcome {
	e.running.Add(1)
	defer e.running.Add(-1)
	e.execute(ctx)
	if ctx.Err() != nil {
		return core.Outcome{ExecutionID: "x", Status: core.StatusCancelled}
	}
	return core.Outcome{ExecutionID: "x", Status: core.StatusOK, Result: json.RawMessage(`"late"`)}
}
func (e fakeEngine) CountRunning() int                                          { return int(e.running.Load()) }
func (fakeEngine) Waiting(string) []core.Approval                               { return nil }
func (fakeEngine) ExposedServers() []string                                     { return nil }
func (fakeEngine) WaitForExposed(context.Context, time.Duration)                {}
func (fakeEngine) Toolset() *core.Toolset                                       { return &core.Toolset{} }
func (fakeEngine) ListExposed(context.Context, server.Kind) []server.ListedItem { return nil }
func (fakeEngine) SetLogLevel(string)                                           {}
func (fakeEngine) WatchChanges(func(string, string, json.RawMessage)) func()    { return func() {} }

// bubbleListener holds a Listener and its HTTP client, both in a testing/synctest bubble.
type bubbleListener struct {
	*testing.T
	pipes  *testenv.PipeListener
	client *http.Client
	stop   func() // closes the Listener and waits until it has shut down
}

func serveInBubble(t *testing.T, o Options, execute func(ctx context.Context)) *bubbleListener {
	t.Helper()
	var running atomic.Int64
	o.Engine = func(string, []string) Engine { return fakeEngine{execute: execute, running: &running} }
	l, pipes := newListener(o, true), testenv.NewPipes()
	l.net = pipes
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- l.Serve(ctx) }()
	client := &http.Client{Transport: &http.Transport{DialContext: pipes.Dial}}
	c := &bubbleListener{t, pipes, client, func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		served <- nil
	}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		c.stop()
		for _, one := range l.tenants {
			one.server.Close()
		}
	})
	return c
}

func (c *bubbleListener) dial() net.Conn {
	c.Helper()
	conn, err := c.pipes.Dial(c.Context(), "", "")
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() { _ = conn.Close() })
	return conn
}

// send makes a GET request, or a POST request if body is not empty.
func (c *bubbleListener) send(path, body string, headers ...string) (status int, header http.Header, text string) {
	c.Helper()
	method := http.MethodGet
	if body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(c.Context(), method, "http://127.0.0.1"+path, strings.NewReader(body))
	if err != nil {
		c.Fatal(err)
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	response, err := c.client.Do(r)
	if err != nil {
		c.Fatal(err)
	}
	defer response.Body.Close()
	all, _ := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(all)
}

// program requests a program over HTTP, by calling the tool execute_code. In these tests, the engine calls a Go
// function instead of running a program.
func (c *bubbleListener) program() (status int, text string) {
	c.Helper()
	const body = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
	status, _, text = c.send(Path, body, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call", "Mcp-Name: execute_code")
	return status, text
}

const greeting = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`

// TestSlowRequests checks that a request that arrives byte by byte is ended by a timeout, whether it
// is slow in the headers or in the body.
func TestSlowRequests(t *testing.T) {
	for name, c := range map[string]struct {
		start, answer string
		takes         time.Duration
	}{
		"headers": {"POST /mcp HTTP/1.1\r\nHost: localhost\r\n", "", maxHeaderTime},
		"body":    {"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{", "HTTP/1.1 408", 40 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := serveInBubble(t, Options{Limits: ListenerLimits{Read: 40 * time.Second}}, nil)
				conn, began := p.dial(), time.Now()
				var dripping sync.WaitGroup
				defer dripping.Wait()
				dripping.Go(func() {
					_, err := io.WriteString(conn, c.start)
					for err == nil {
						time.Sleep(time.Second)
						_, err = io.WriteString(conn, "X")
					}
				})
				text, _ := io.ReadAll(conn)
				if took := time.Since(began); took != c.takes || !strings.HasPrefix(string(text), c.answer) {
					t.Errorf("ended after %s with %q, want %q after %s", took, text, c.answer, c.takes)
				}
				_ = conn.Close()
				if status, _, text := p.send("/healthz", ""); status != http.StatusOK {
					t.Errorf("the next one got %d %s", status, text)
				}
			})
		})
	}
}

// TestReadTimeoutIsNotForAnswers checks that the timeout for reading a request does not limit how
// long its program runs.
func TestReadTimeoutIsNotForAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveInBubble(t, Options{}, func(ctx context.Context) {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
		})
		if status, text := p.program(); status != http.StatusOK || !strings.Contains(text, `"late"`) {
			t.Error(status, text)
		}
	})
}

// TestConnections checks that connections beyond the limit wait until another one is closed.
func TestConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveInBubble(t, Options{Limits: ListenerLimits{Connections: 2}}, nil)
		first, _ := p.dial(), p.dial()
		answer := make(chan string, 1)
		go func() {
			third := p.dial()
			_, _ = io.WriteString(third, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			line, _ := bufio.NewReader(third).ReadString('\n')
			answer <- line
		}()
		synctest.Wait()
		if len(answer) > 0 {
			t.Errorf("the third connection got %q", <-answer)
		}
		_ = first.Close()
		if line := <-answer; !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Errorf("after the first connection was closed, the third got %q", line)
		}
	})
}

// TestConnectionsPerAddress checks that connections beyond the limit for one address are closed immediately, and that
// a new connection is served after an open one was closed.
func TestConnectionsPerAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveInBubble(t, Options{Limits: ListenerLimits{Connections: 100, PerAddress: 3}}, nil)
		ours := []net.Conn{p.dial(), p.dial(), p.dial()}
		began := time.Now()
		if n, err := p.dial().Read(make([]byte, 1)); n > 0 || err != io.EOF || !time.Now().Equal(began) {
			t.Errorf("a fourth connection ends after %s with %v, want at once", time.Since(began), err)
		}
		_ = ours[0].Close()
		synctest.Wait()
		if status, _, text := p.send("/healthz", ""); status != http.StatusOK {
			t.Errorf("after one connection was closed: %d %s", status, text)
		}
	})
}

// TestIdleSession checks that a session ends after it has been idle for too long, and not while it
// is in use.
func TestIdleSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := serveInBubble(t, Options{Limits: ListenerLimits{Idle: time.Hour}}, nil)
		_, header, _ := p.send(Path, greeting)
		ping := func() int {
			status, _, _ := p.send(Path, `{"jsonrpc":"2.0","id":2,"method":"ping"}`, "Mcp-Session-Id: "+header.Get("Mcp-Session-Id"))
			return status
		}
		for range 3 {
			time.Sleep(59 * time.Minute)
			if status := ping(); status != http.StatusOK {
				t.Errorf("a session in use got %d", status)
			}
		}
		time.Sleep(62 * time.Minute)
		if status := ping(); status != http.StatusNotFound {
			t.Errorf("an idle session got %d", status)
		}
	})
}

// TestDrain checks that a listener that shuts down refuses new calls, waits for the calls that are
// running, and cancels those that outlast Limits.Drain.
func TestDrain(t *testing.T) {
	for name, c := range map[string]struct {
		needs, takes time.Duration
		cancelled    bool
	}{"ends": {20 * time.Second, 20 * time.Second, false}, "does not": {time.Hour, 30 * time.Second, true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cancelled := make(chan struct{})
				p := serveInBubble(t, Options{Limits: ListenerLimits{Drain: 30 * time.Second}, Cancel: func() { close(cancelled) }}, func(context.Context) {
					select {
					case <-time.After(c.needs):
					case <-cancelled:
					}
				})
				answer := make(chan int, 1)
				go func() {
					status, _ := p.program()
					answer <- status
				}()
				synctest.Wait()
				began, stopped := time.Now(), make(chan time.Time, 1)
				go func() { p.stop(); stopped <- time.Now() }()
				synctest.Wait()
				if status, _, _ := p.send("/readyz", ""); status != http.StatusServiceUnavailable {
					t.Errorf("/readyz got %d while shutting down", status)
				}
				if status, text := p.program(); status != http.StatusServiceUnavailable {
					t.Errorf("a new call got %d %s", status, text)
				}
				if status := <-answer; status != http.StatusOK {
					t.Errorf("the running call got %d", status)
				}
				took := (<-stopped).Sub(began).Round(100 * time.Millisecond) // it polls every 10 ms
				if got := isClosed(cancelled); took != c.takes || got != c.cancelled {
					t.Errorf("ended after %s, cancelled: %v; want %s and %v", took, got, c.takes, c.cancelled)
				}
			})
		})
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
