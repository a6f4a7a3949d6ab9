package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"retort/internal/catalog"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/search/index"
	"retort/internal/sandbox/process"
)

// usualToolCount is the number of tools on the ten servers of a typical developer.
const usualToolCount = 451

// writeServersFile writes a client file with one demo server and returns its path.
func (b *benchRun) writeServersFile() (string, error) {
	file := filepath.Join(b.home, "mcp.json")
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"files": map[string]any{"command": b.Self, "args": []string{"demo-server", "files"}},
	}})
	if err != nil {
		return "", err
	}
	return file, os.WriteFile(file, text, 0o600)
}

func (b *benchRun) measureCommand(ctx context.Context) error {
	file, err := b.writeServersFile()
	if err != nil {
		return err
	}
	return b.timeRuns("retort run -e 'return 1', spawn to result", 15, 0, func() error {
		out, err := exec.CommandContext(
			ctx, b.Self, "--config", file, "--home", filepath.Join(b.home, "run"), "run", "--json", "-e", "return 1",
		).Output()
		if err == nil && !strings.Contains(string(out), `"result":1`) {
			err = fmt.Errorf("unexpected output: %s", out)
		}
		return err
	})
}

func (b *benchRun) overMCP(ctx context.Context) error {
	file, err := b.writeServersFile()
	if err != nil {
		return err
	}
	c, err := startClient(ctx, b.Self, "--config", file, "--home", filepath.Join(b.home, "serve"), "serve")
	if err != nil {
		return err
	}
	defer c.closeClient()
	// Warm means that the pool had time to start another sandbox. A model thinks for longer than that between two
	// programs.
	defer func() { b.pause = 0 }()
	for _, m := range []struct {
		name, code string
		language   core.Language
		pause      time.Duration
		target     float64
	}{
		{"execute_code over MCP stdio, warm: return 1", "return 1", core.TypeScript, 100 * time.Millisecond, 5},
		{
			"execute_code over MCP stdio, warm: one tool call", "return await files.listDirectory({path: '/srv/nordlys'})",
			core.TypeScript, 100 * time.Millisecond, 0,
		},
		{"execute_code over MCP stdio, without a pause: return 1", "return 1", core.TypeScript, 0, 0},
		{"execute_code over MCP stdio, warm: result = 1 in Python", "result = 1", core.Python, 400 * time.Millisecond, 8},
	} {
		if m.language == core.Python && c.executeProgram(m.code, m.language) != nil {
			continue // there is no Python here
		}
		b.pause = m.pause
		if err := b.timeRuns(m.name, 40, m.target, func() error { return c.executeProgram(m.code, m.language) }); err != nil {
			return err
		}
	}
	return nil
}

// openEngine opens an engine whose only server runs in this process and has n generated tools.
func (b *benchRun) openEngine(ctx context.Context, name string, n int) (*engine.Engine, fakeUpstream, error) {
	up := fakeUpstream{tools: makeDefinitions(n)}
	e, err := engine.Open(ctx, engine.Config{
		NoFiles: true, Home: filepath.Join(b.home, name), Keys: b.home, Guest: []string{b.Self, "guest"},
		Servers: []engine.Server{{Name: "bench", Dial: up.dialPipe}},
	})
	if err != nil {
		return nil, up, err
	}
	e.WaitForServers(ctx)
	return e, up, nil
}

// makeToolset makes a toolset of n generated tools, distributed over servers with at most 50 tools each.
func makeToolset(n int) (*core.Toolset, error) {
	c, err := catalog.Open(catalog.Options{})
	if err != nil {
		return nil, err
	}
	all := makeDefinitions(n)
	for i := 0; i < n; i += 50 {
		if _, err := c.ReplaceListing(fmt.Sprintf("server-%d", i/50), all[i:min(i+50, n)], ""); err != nil {
			return nil, err
		}
	}
	return c.Toolset(), nil
}

func (b *benchRun) typeCheck(ctx context.Context) error {
	tools, err := makeToolset(usualToolCount)
	if err != nil {
		return err
	}
	processes := process.New(process.Options{Warm: -1})
	defer processes.Close()
	g := check.New(
		check.Options{Start: func() (io.ReadWriteCloser, error) { return processes.StartHelper([]string{b.Self, "compiler"}, 1<<30) }},
	)
	defer g.Close()
	var code strings.Builder
	for i := range 5 {
		t := tools.Servers[i].Tools[i]
		fmt.Fprintf(&code, "const r%d = await %s({id: 'x'});\n", i, tools.QualifiedName(t))
	}
	code.WriteString("return [r0, r1, r2, r3, r4].length;")
	runs := 0
	return b.timeRuns("type-check of a program with five of 451 tools, warm", 50, 10, func() error {
		runs++ // a changed program, so that nothing of it is cached
		_, refusal := g.Check(
			ctx,
			core.ExecutionRequest{Language: core.TypeScript, Code: fmt.Sprintf("const n = %d;\n%s", runs, code.String())},
			tools, nil,
		)
		if refusal != nil {
			return refusal
		}
		return nil
	})
}

func (b *benchRun) measureWrappers(context.Context) error {
	tools, err := makeToolset(usualToolCount)
	if err != nil {
		return err
	}
	return b.timeRuns("wrappers of 451 tools", 20, 50, func() error {
		for _, text := range bindings.WrapperFiles(tools, core.TypeScript) {
			if text == "" {
				return fmt.Errorf("an empty wrapper")
			}
		}
		return nil
	})
}

func (b *benchRun) measureSearch(context.Context) error {
	queries := []string{
		"list open issues of a repository", "cancel payment", "calendar events in a time range", "merge pull request",
		"publish dashboard for team", "delet webhok",
	}
	for _, size := range []struct {
		n      int
		target float64
	}{{2000, 1}, {100_000, 10}} {
		tools, err := makeToolset(size.n)
		if err != nil {
			return err
		}
		idx := index.New()
		begin := time.Now()
		idx.UpdateTools(tools)
		b.rows = append(b.rows, ResultRow{
			Name: fmt.Sprintf("search index of %d tools built", size.n), Median: time.Since(begin).Seconds() * 1000,
			Unit: "ms",
		})
		i := 0
		err = b.timeRuns(fmt.Sprintf("search over %d tools", size.n), 60, size.target, func() error {
			i++
			if hits, _ := idx.Search(queries[i%len(queries)], index.SearchFilter{}, 10); len(hits) == 0 {
				return fmt.Errorf("%q found nothing", queries[i%len(queries)])
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// measureMemory measures the memory of an engine process with a server of 451 tools: idle after a search, and again
// after programs have run.
func (b *benchRun) measureMemory(ctx context.Context) error {
	file := filepath.Join(b.home, "memory.json")
	text, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"bench": map[string]any{"command": b.Self, "args": []string{"bench", "--upstream", strconv.Itoa(usualToolCount)}},
	}})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	c, err := startClient(ctx, b.Self, "--config", file, "--home", filepath.Join(b.home, "memory"), "serve")
	if err != nil {
		return err
	}
	defer c.closeClient()
	if _, err := c.sendRequest("tools/call", map[string]any{
		"name": "search_tools", "arguments": map[string]string{"query": "list issues"},
	}); err != nil {
		return err
	}
	if err := c.executeProgram("return 1", core.TypeScript); err != nil {
		return err
	}
	time.Sleep(2 * time.Second) // idle is what is measured
	idle, err := residentMB(c.cmd.Process.Pid)
	if err != nil {
		return nil // this system does not tell
	}
	b.rows = append(b.rows, ResultRow{Name: "resident memory of an idle engine with 451 tools", Median: idle, Unit: "MB", Target: 90})
	return b.measureOneExecution(c, idle)
}

// measureOneExecution measures how much memory one execution needs while its program waits: the growth of the
// engine, plus the memory of the sandbox process. The argument idle is the memory of the engine before, in MB.
func (b *benchRun) measureOneExecution(c *mcpClient, idle float64) error {
	done := make(chan error, 1)
	go func() { done <- c.executeProgram("await sleep(1500); return 1", core.TypeScript) }()
	time.Sleep(time.Second)
	with, err := residentMB(c.cmd.Process.Pid)
	guests := 0.0
	for _, child := range childPIDs(c.cmd.Process.Pid) {
		if m, err := uniqueMB(child); err == nil {
			guests = max(guests, m)
		}
	}
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	b.rows = append(b.rows, ResultRow{Name: "memory of one execution above that", Median: max(0, with-idle) + guests, Unit: "MB", Target: 15})
	return nil
}
