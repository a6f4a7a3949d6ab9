package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

const (
	callRounds = 9
	callsEach  = 1000
	// callPause is the pause between measurements. It lets background work of the previous measurement end, such as
	// the start of a sandbox.
	callPause = 100 * time.Millisecond
)

// callPath describes one way to make a thousand calls of the same tool on the same server, for example from a
// program.
type callPath struct {
	name string
	make func() error
	took []float64 // microseconds for each call, by round
}

// measureCalls measures calls from programs, and the same calls without the engine. Each round makes calls in every
// way, one way after the other, so that other load on the machine affects all ways alike. The time that the engine
// adds to a call is the difference between both kinds of calls in the same round.
func (b *benchRun) measureCalls(ctx context.Context) error {
	e, up, err := b.openEngine(ctx, "calls", usualToolCount)
	if err != nil {
		return err
	}
	defer e.Close()
	sdk, err := up.connectSDK(ctx)
	if err != nil {
		return err
	}
	defer sdk.Close()
	wire, err := up.dialPipe(ctx)
	if err != nil {
		return err
	}
	defer wire.Close()
	program := func(code string) func() error {
		return func() error { return outcomeError(e.Execute(ctx, core.ExecutionRequest{Code: code})) }
	}
	ways := []*callPath{
		{name: "1,000 tool calls of a program, one after the other, each",
			make: program("for (let i = 0; i < 1000; i++) await bench.listIssue({id: String(i)});")},
		{name: "1,000 tool calls of a program, at once, each",
			make: program("await Promise.all(Array.from({length: 1000}, (_, i) => bench.listIssue({id: String(i)})));")},
		{name: "the same by the MCP SDK's client, one after the other, each", make: func() error { return callViaSDK(ctx, sdk, 1) }},
		{
			name: "the same by the MCP SDK's client, at once, each",
			make: func() error { return callViaSDK(ctx, sdk, core.DefaultLimits().Concurrency) },
		},
		{name: "the same by writing and reading lines, each", make: func() error { return callViaLines(wire) }},
	}
	if err := takeTurns(ways); err != nil {
		return err
	}
	for _, w := range ways {
		b.addRow(w.name, w.took, "µs", 0)
	}
	b.addRow("the engine's share of a call, one after the other", subtractRounds(ways[0].took, ways[4].took), "µs", 100)
	b.addRow("the engine's share of a call, at once", subtractRounds(ways[1].took, ways[4].took), "µs", 100)
	python := func() error {
		return outcomeError(
			e.Execute(ctx, core.ExecutionRequest{Language: core.Python, Code: "for i in range(1000):\n    bench.list_issue(id=str(i))\nresult = 1"}),
		)
	}
	if python() != nil {
		return nil // there is no Python here
	}
	return b.timeRuns("1,000 tool calls one after the other from Python, all of them", 7, 150, python)
}

func takeTurns(ways []*callPath) error {
	for round := range 1 + callRounds {
		for _, w := range ways {
			time.Sleep(callPause)
			runtime.GC()
			start := time.Now()
			if err := w.make(); err != nil {
				return fmt.Errorf("%s: %w", w.name, err)
			}
			if round > 0 { // the first warms up
				w.took = append(w.took, float64(time.Since(start))/float64(time.Microsecond)/callsEach)
			}
		}
	}
	return nil
}

// subtractRounds returns a minus b for each round of a measurement.
func subtractRounds(a, b []float64) []float64 {
	differences := make([]float64, len(a))
	for i := range a {
		differences[i] = a[i] - b[i]
	}
	return differences
}

// callViaSDK makes calls with the client of the MCP SDK, up to atOnce of them concurrently.
func callViaSDK(ctx context.Context, client *mcp.ClientSession, atOnce int) error {
	var next atomic.Int64
	failures := make(chan error, atOnce)
	for range atOnce {
		go func() {
			var err error
			for i := next.Add(1); i <= callsEach && err == nil; i = next.Add(1) {
				_, err = client.CallTool(ctx, &mcp.CallToolParams{Name: "list_issue", Arguments: map[string]any{"id": fmt.Sprint(i)}})
			}
			failures <- err
		}()
	}
	var err error
	for range atOnce {
		err = errors.Join(err, <-failures)
	}
	return err
}

// callViaLines makes calls by writing and reading lines of JSON, which is the least work that the protocol allows.
// The measured time is therefore almost only that of the server.
func callViaLines(wire io.ReadWriter) error {
	in := bufio.NewReader(wire)
	for i := range callsEach {
		if _, err := fmt.Fprintf(
			wire,
			`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"list_issue","arguments":{"id":"%[1]d"}}}`+"\n",
			i,
		); err != nil {
			return err
		}
		if _, err := in.ReadSlice('\n'); err != nil {
			return err
		}
	}
	return nil
}
