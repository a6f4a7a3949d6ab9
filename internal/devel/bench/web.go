package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// clientCount sets the number of concurrent clients.
const clientCount = 1000

// unlimitedSettings holds settings with limits that the clients never reach. The usual limits would stop them,
// because all clients of the measurement are the same principal.
const unlimitedSettings = "http: {executions: 2000, sessions: 2000, rate: 1000000/minute}\n"

// measureHTTP measures many concurrent clients over HTTP. Each sends a small program with one call. Half of them use
// the protocol versions with sessions.
func (b *benchRun) measureHTTP(ctx context.Context) error {
	url, pid, stop, err := b.startListener(ctx)
	if err != nil {
		return err
	}
	defer stop()
	program, err := smallProgram()
	if err != nil {
		return err
	}
	first := httpClient{url, program, http.DefaultClient}
	if err := first.runStateless(ctx); err != nil { // a warm-up
		return err
	}
	idle, _ := residentMB(pid)
	peak, unwatch := watchMemory(pid)
	took, failures := b.runClients(ctx, first)
	engine, sandboxes := unwatch(), peak()
	if len(took) == 0 {
		return fmt.Errorf("no client was answered: %w", errors.Join(failures...))
	}
	name := fmt.Sprintf("%d clients over HTTP at once, a program each", clientCount)
	b.addRow(name, took, "ms", 0)
	slices.Sort(took)
	b.rows = append(b.rows,
		ResultRow{Name: name + ": 99 of 100 within", Median: took[len(took)*99/100], Unit: "ms"},
		ResultRow{Name: name + ": errors", Median: float64(len(failures))},
		ResultRow{Name: name + ": resident memory of the engine, before", Median: idle, Unit: "MB"},
		ResultRow{Name: name + ": and at most", Median: engine, Unit: "MB"},
		ResultRow{Name: name + ": of all sandboxes together, at most", Median: sandboxes, Unit: "MB"})
	if len(failures) > 0 {
		return fmt.Errorf("%d of %d clients failed, the first: %w", len(failures), clientCount, failures[0])
	}
	return nil
}

// startListener starts a retort process that listens over HTTP, with one upstream server.
func (b *benchRun) startListener(ctx context.Context) (url string, pid int, stop func(), err error) {
	dir := filepath.Join(b.home, "http")
	servers, _ := json.Marshal(
		map[string]any{"mcpServers": map[string]any{"bench": map[string]any{"command": b.Self, "args": []string{"bench", "--upstream", "20"}}}},
	)
	for name, text := range map[string]string{"mcp.json": string(servers), "retort.yaml": unlimitedSettings} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", 0, nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			return "", 0, nil, err
		}
	}
	cmd := exec.CommandContext(
		ctx, b.Self, "--config", filepath.Join(dir, "mcp.json"), "--config", filepath.Join(dir, "retort.yaml"), "--home",
		filepath.Join(dir, "home"), "serve", "--http", "127.0.0.1:0",
	)
	said, err := cmd.StderrPipe()
	if err != nil {
		return "", 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", 0, nil, err
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "retort listens on "); ok {
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return url, cmd.Process.Pid, func() { _ = cmd.Process.Signal(syscall.SIGTERM); _ = cmd.Wait() }, nil
		}
	}
	return "", 0, nil, errors.Join(errors.New("the listener did not start"), cmd.Wait())
}

// runClients runs all simulated clients at the same time.
func (b *benchRun) runClients(ctx context.Context, g httpClient) (took []float64, failures []error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	begin := make(chan struct{})
	for i := range clientCount {
		g.http = &http.Client{Transport: &http.Transport{}}
		work := g.runStateless
		if i%2 == 1 {
			work = g.inSession
		}
		all.Go(func() {
			<-begin
			start := time.Now()
			err := work(ctx)
			g.http.CloseIdleConnections()
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
				return
			}
			took = append(took, float64(time.Since(start))/float64(time.Millisecond))
		})
	}
	close(begin)
	all.Wait()
	return took, failures
}

// watchMemory samples the memory of a process and its children every 100 ms, and returns two functions. The function
// engine ends the sampling and returns the highest memory of the process, in MB. The function sandboxes waits until
// the sampling has ended, and returns the highest total memory of all children, in MB.
func watchMemory(pid int) (sandboxes, engine func() float64) {
	done, ended := make(chan struct{}), make(chan struct{})
	var own, others float64
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
			if m, err := residentMB(pid); err == nil {
				own = max(own, m)
			}
			sum := 0.0
			for _, child := range childPIDs(pid) {
				m, _ := uniqueMB(child)
				sum += m
			}
			others = max(others, sum)
		}
	}()
	return func() float64 { <-ended; return others }, func() float64 { close(done); <-ended; return own }
}

// httpClient implements a minimal MCP client over HTTP.
type httpClient struct {
	url, program string
	http         *http.Client
}

// smallProgram returns a request to run a small program, which makes one read-only call.
func smallProgram() (string, error) {
	var tool struct{ Name string }
	if err := json.Unmarshal(makeDefinitions(1)[0], &tool); err != nil {
		return "", err
	}
	return fmt.Sprintf(`"name":"execute_code","arguments":{"code":"return (await callMCPTool('bench__%s', {id: '1'})).id"}`, tool.Name), nil
}

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`

func (g httpClient) runStateless(ctx context.Context) error {
	_, err := g.sendRequest(ctx, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{`+g.program+`,`+modernMeta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_code")
	return err
}

func (g httpClient) inSession(ctx context.Context) error {
	id, err := g.sendRequest(
		ctx,
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`,
	)
	if err == nil {
		_, err = g.sendRequest(ctx, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", id)
	}
	if err == nil {
		_, err = g.sendRequest(ctx, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{`+g.program+`}}`, "Mcp-Session-Id", id)
	}
	return err
}

// sendRequest sends one request. If the request is a call, it returns an error unless the answer contains the result
// of the small program that the client runs.
func (g httpClient) sendRequest(ctx context.Context, body string, headers ...string) (session string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url, strings.NewReader(body))
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := g.http.Do(r)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode >= 300 || strings.Contains(body, "tools/call") && !strings.Contains(string(text), `"result":42`)) {
		err = fmt.Errorf("%s: %.300s", response.Status, text)
	}
	return response.Header.Get("Mcp-Session-Id"), err
}
