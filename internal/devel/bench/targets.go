package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"retort/internal/base/seal"
	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/tokens"
)

// PromisedTarget compares a figure that was promised for code execution with the measured figure.
type PromisedTarget struct {
	Name     string `json:"name"`
	Promised string `json:"promised"`
	Measured string `json:"measured"`         // "not measured here" if this machine lacks a requirement
	Met      *bool  `json:"met,omitempty"`    // nil if it was not measured or nothing was promised
	Command  string `json:"command"`          // command that repeats the measurement
	Losses   string `json:"losses,omitempty"` // what the figure omits, or in which respect it is worse
}

// TargetParts returns the parts of the benchmark whose rows CompareTargets needs.
func TargetParts() []string {
	return []string{"command", "runtimes", "docker", "gvisor", "vm", "type-check", "validation", "wrappers"}
}

// unmeasured is printed in place of a figure that cannot be measured on this machine.
const unmeasured = "not measured here"

// CompareTargets compares rows with the promised figures. It also measures tokens and the detection of personal data.
func CompareTargets(ctx context.Context, o Options, rows []ResultRow) ([]PromisedTarget, error) {
	all, err := tokenTargets(ctx, o)
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "bench", "targets: %w", err)
	}
	all = append(all,
		rowTarget(rows, "generation of wrappers", "< 50 ms", 50, "wrappers", "of 451 tools at once", "wrappers of"),
		rowTarget(
			rows, "start of a sandbox: process", "< 50 ms", 50, "runtimes",
			"QuickJS, which is built in; Node, Bun and Deno take as long as they take by themselves",
			"quickjs: smallest program, from nothing",
		),
		rowTarget(rows, "start of a sandbox: process, Python", "< 50 ms", 50, "runtimes", "", "python: smallest program, from nothing"),
		rowTarget(
			rows, "start of a sandbox: container", "100 to 200 ms", 200, "docker",
			"needs Docker or Podman; the next ones come from a pool",
			"docker, runc, quickjs: smallest program, from nothing",
		),
		rowTarget(
			rows, "start of a sandbox: gVisor", "< 500 ms", 500, "gvisor", "needs runsc",
			"gvisor, quickjs: smallest program, from nothing",
		),
		rowTarget(
			rows, "start of a sandbox: virtual machine", "1 to 2 s", 2000, "vm",
			"needs QEMU, and retort vm setup once; each program gets a copy", "vm, quickjs: smallest program, from nothing",
			"vm: ",
		),
		rowTarget(rows, "validation of a program", "< 50 ms", 50, "validation", "of 20 lines", "validation with risk: median program"),
		rowTarget(rows, "validation of 2,000 lines", "< 50 ms", 50, "validation", "", "validation with risk: 2,000-line program"),
		rowTarget(
			rows, "total, from the command to the result", "< 3 s", 3000, "command",
			"without the time of a model and of servers", "retort run -e",
		),
	)
	accuracy, err := personalTargets()
	return append(all, accuracy...), err
}

// rowTarget compares a row of the benchmark with the upper bound most, in milliseconds. It uses the first row
// whose name begins with the first of the prefixes. If there is no such row, it tries the next prefix, and so on.
func rowTarget(rows []ResultRow, name, promised string, most float64, part, losses string, prefixes ...string) PromisedTarget {
	t := PromisedTarget{Name: name, Promised: promised, Measured: unmeasured, Command: "retort bench --only '" + part + "'", Losses: losses}
	for _, prefix := range prefixes {
		at := slices.IndexFunc(rows, func(r ResultRow) bool { return strings.HasPrefix(r.Name, prefix) && r.Unit == "ms" })
		if at < 0 {
			continue
		}
		r := rows[at]
		met := r.Median < most
		t.Measured, t.Met = fmt.Sprintf("%.1f ms, worst %.1f", r.Median, r.Worst), &met
		return t
	}
	return t
}

// Token counts of the example session for which savings were promised, and prices in dollars.
const (
	sessionSystem       = 2_000
	sessionConversation = 30_000
	sessionResults      = 18_000
	sessionProgram      = 500
	sessionSummary      = 200
	sessionPrice        = 90.0 // in dollars: $18 for 200,000 tokens
	promisedReduction   = 98.7
	promisedCost        = 0.30 // in dollars
	maxCatalogue        = 32 << 20
)

// tokenTargets compares two numbers of tokens: those of all tool definitions, and those that a session through Retort
// needs in their place. The session needs Retort's four initial tools, the answer to one search, and two definitions.
func tokenTargets(ctx context.Context, o Options) ([]PromisedTarget, error) {
	home, err := os.MkdirTemp("", "retort-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(home)
	e, source, command, err := o.openCatalogues(ctx, home)
	if err != nil {
		return nil, err
	}
	defer e.Close()
	definitions, servers := 0, 0
	for _, s := range e.Toolset().Servers {
		servers++
		for _, t := range s.Tools {
			definitions += tokens.CountTokens(string(t.Raw))
		}
	}
	found, err := leanTokens(ctx, o)
	if err != nil {
		return nil, err
	}
	looked, err := lookupTokens(ctx, e)
	if err != nil {
		return nil, err
	}
	code := found + looked
	reduction := percentSaved(definitions, code)
	met := reduction >= promisedReduction
	about := fmt.Sprintf(
		"%s: %d servers, %d tools; %d tokens of definitions against %d (%d of Retort's tools, %d of a search and two definitions)",
		source, servers, e.Toolset().CountTools(), definitions, code, found, looked,
	)
	before, after := sessionSystem+definitions+sessionConversation+sessionResults, sessionSystem+code+sessionConversation+sessionProgram+
		sessionSummary
	cost := inputDollars(code + sessionProgram + sessionSummary)
	cheap := cost <= promisedCost
	return []PromisedTarget{
		{Name: "reduction of tokens", Promised: fmt.Sprintf(
			"%.1f %%", promisedReduction,
		), Measured: fmt.Sprintf("%.2f %%", reduction), Met: &met, Command: command,
			Losses: about + fmt.Sprintf(
				". A whole session, with %d tokens of conversation in both, goes from %d to %d, which is %.1f %% less. A task that needs one call of one tool costs more than a direct call: retort bench tokens",
				sessionConversation, before, after, percentSaved(before, after),
			)},
		{Name: "cost of a session", Promised: fmt.Sprintf("$18.00 to $%.2f", promisedCost), Measured: fmt.Sprintf(
			"$%.2f to $%.2f", inputDollars(definitions+sessionResults), cost,
		), Met: &cheap, Command: command,
			Losses: fmt.Sprintf(
				"tools, programs and results alone, at the $%.0f per million tokens of the promise; with system prompt and conversation it goes from $%.2f to $%.2f",
				sessionPrice, inputDollars(before), inputDollars(after),
			)},
	}, nil
}

func inputDollars(tokens int) float64 { return float64(tokens) * sessionPrice / 1e6 }

func percentSaved(before, after int) float64 {
	if before == 0 {
		return 0
	}
	return 100 * float64(before-after) / float64(before)
}

// openCatalogues opens an engine whose servers have the tools to measure: the connected servers, servers that list
// the tools in a folder, or servers with generated tools. The engine stores its data in home, unless servers are
// connected.
func (o Options) openCatalogues(ctx context.Context, home string) (e *engine.Engine, source, command string, err error) {
	c := engine.Config{NoFiles: true, Home: home, Keys: home, Reserve: engine.ReserveNone, Guest: []string{o.Self, "guest"}}
	source, command = fmt.Sprintf("%d made-up tools", usualToolCount), "retort bench targets"
	switch {
	case o.Connected != nil:
		c, source, command = *o.Connected, "the servers that are connected", "retort bench targets --connected"
		c.Reserve = engine.ReserveNone
	case o.Catalogs != "":
		source, command = "the catalogues of "+filepath.Base(o.Catalogs), "retort bench targets --catalogs "+o.Catalogs
		c.Servers, err = loadReplayServers(o.Catalogs)
	default:
		c.Servers = []engine.Server{{Name: "bench", Dial: fakeUpstream{tools: makeDefinitions(usualToolCount)}.dialPipe}}
	}
	if err != nil {
		return nil, "", "", err
	}
	if e, err = engine.Open(ctx, c); err == nil {
		e.WaitForServers(ctx)
	}
	return e, source, command, err
}

// loadReplayServers returns servers that list the tools in a folder's files, which have the form {"name": …, "tools":
// […]}.
func loadReplayServers(folder string) (servers []engine.Server, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := seal.ReadFile(file, maxCatalogue)
		if err != nil {
			return nil, err
		}
		var list struct {
			Tools []json.RawMessage `json:"tools"`
		}
		if err := json.Unmarshal(text, &list); err != nil {
			return nil, fmt.Errorf("%s is not a list of tools: %w", file, err)
		}
		if len(list.Tools) > 0 {
			servers = append(servers, engine.Server{
				Name: strings.TrimSuffix(filepath.Base(file), ".json"), Dial: fakeUpstream{tools: list.Tools}.dialPipe,
			})
		}
	}
	if len(servers) == 0 {
		return nil, fmt.Errorf("%s has no file NAME.json with a list of tools", folder)
	}
	return servers, nil
}

// leanTokens returns the number of tokens of Retort's lean set of tools and its instructions, as a client gets them.
func leanTokens(ctx context.Context, o Options) (int, error) {
	home, err := os.MkdirTemp("", "retort-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(home)
	file := filepath.Join(home, "mcp.json")
	if err := os.WriteFile(file, []byte(`{"mcpServers":{}}`), 0o600); err != nil {
		return 0, err
	}
	c, err := startClient(ctx, o.Self, "--config", file, "--home", home, "serve", "--surface", "lean")
	if err != nil {
		return 0, err
	}
	defer c.closeClient()
	list, err := c.sendRequest("tools/list", map[string]any{})
	return tokens.CountTokens(string(list)) + tokens.CountTokens(c.instructions), err
}

// lookupTokens returns how many tokens it costs a model to look up tools: those of the response to a search and of
// the definitions of its two best tools. The result is the median of ten searches with words from existing tools.
func lookupTokens(ctx context.Context, e *engine.Engine) (int, error) {
	var all []*core.Tool
	for _, s := range e.Toolset().Servers {
		all = append(all, s.Tools...)
	}
	if len(all) == 0 {
		return 0, fmt.Errorf("no server lists a tool")
	}
	var counts []int
	for i := range 10 {
		t := all[i*len(all)/10]
		words := strings.Fields(t.Description + " " + t.Name)
		found, err := e.Search(ctx, engine.Query{Text: strings.Join(words[:min(len(words), 8)], " ")})
		if err != nil {
			return 0, err
		}
		names := []string{}
		for _, f := range found.Tools[:min(len(found.Tools), 2)] {
			names = append(names, f.Name)
		}
		described, err := e.Describe(ctx, names, core.TypeScript)
		if err != nil {
			return 0, err
		}
		text, err := json.Marshal([]any{found, described})
		if err != nil {
			return 0, err
		}
		counts = append(counts, tokens.CountTokens(string(text)))
	}
	slices.Sort(counts)
	return counts[len(counts)/2], nil
}
