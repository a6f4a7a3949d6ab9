package bench

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/pipeline/search/index"
)

// Workload holds the measured costs of one task, for each way of doing it.
type Workload struct {
	Name  string         `json:"name"`
	Task  string         `json:"task"` // in the words of a user
	Costs []WorkloadCost `json:"ways"`
}

// workloadTask describes a task. It has a function that does it by direct calls, and programs that do it with code
// execution.
type workloadTask struct {
	name, task string
	servers    []string // servers whose tools the task needs
	queries    []string // queries of the tool search, each in one turn
	direct     func(*directAgent) (any, error)
	programs   []string                           // files in workloads/; all but the last fail
	call       *agentCall                         // call that does the task without a program, or nil
	pick       func(json.RawMessage) (any, error) // extracts the answer from the call's result
}

//go:embed workloads/*.ts
var workloadFiles embed.FS

// callsPerTurn sets the number of calls that an agent makes in one turn.
const callsPerTurn = 20

// agentCall holds one tool call of a simulated model.
type agentCall struct {
	tool      string // such as "crm__search_records"
	arguments map[string]any
}

func (c agentCall) requestText() string {
	text, _ := json.Marshal(map[string]any{"name": c.tool, "arguments": c.arguments})
	return string(text)
}

// directAgent does a task by direct calls, as a model would. Go code makes the model's decisions. The conversation
// counts everything that the model would read and write.
type directAgent struct {
	*modelConversation
	servers *bundledServers
	loaded  map[string]bool // tools whose definitions the model has; nil: all
}

// callAll makes calls concurrently, at most callsPerTurn in one turn, and returns their answers. A tool error counts
// as an answer that the model reads.
func (a *directAgent) callAll(calls ...agentCall) ([]toolAnswer, error) {
	answers := make([]toolAnswer, len(calls))
	for i := 0; i < len(calls); i += callsPerTurn {
		a.countTurn()
		for j := i; j < min(i+callsPerTurn, len(calls)); j++ {
			if a.loaded != nil && !a.loaded[calls[j].tool] {
				return nil, fmt.Errorf("the search has not found %s", calls[j].tool)
			}
			a.addOutput(calls[j].requestText())
			var err error
			server, tool, _ := strings.Cut(calls[j].tool, "__")
			if a.servers.servers[server] == nil {
				return nil, fmt.Errorf("the task names no server %s", server)
			}
			answers[j], err = a.servers.servers[server].callTool(tool, calls[j].arguments)
			a.cost.Calls++
			a.addInput(answers[j].text)
			if err != nil && answers[j].text == "" {
				return nil, err
			}
		}
	}
	return answers, nil
}

// callOne makes one call in a separate turn and decodes its result into out.
func (a *directAgent) callOne(out any, tool string, arguments map[string]any) error {
	answers, err := a.callAll(agentCall{tool, arguments})
	if err != nil {
		return err
	}
	return answers[0].decodeInto(out)
}

func (a toolAnswer) decodeInto(out any) error {
	if err := json.Unmarshal(a.value, out); err != nil {
		return fmt.Errorf("%w: %.200s", err, a.text)
	}
	return nil
}

// workloadRunner performs a workload in each of the compared ways: by direct calls, with a tool search of the client,
// and by programs.
type workloadRunner struct {
	Options
	office *bundledConfig
	finder *toolFinder
}

// WorkloadNames returns the names of the measured tasks, in order.
func WorkloadNames() []string {
	names := make([]string, len(workloads))
	for i, one := range workloads {
		names[i] = one.name
	}
	return names
}

// MeasureWorkloads does nine tasks, or those that o.Only names, in four ways against the bundled servers and returns
// the costs. All ways must produce the same answer. Its errors are *core.Error.
func MeasureWorkloads(ctx context.Context, o Options) ([]Workload, error) {
	for _, name := range o.Only {
		if !slices.Contains(WorkloadNames(), name) {
			return nil, core.Errorf(
				core.KindInvalidArguments, "bench.tokens", "there is no job %q", name,
			).WithHint("tasks: %s", strings.Join(WorkloadNames(), "; "))
		}
	}
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	done, err := doWorkloads(ctx, o)
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "bench.tokens", "%w", err)
	}
	return done, nil
}

func doWorkloads(ctx context.Context, o Options) ([]Workload, error) {
	dir, err := os.MkdirTemp("", "retort-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	w := &workloadRunner{Options: o}
	o.Progress("starting the servers")
	if w.office, err = openBundled(ctx, o.Self, dir); err != nil {
		return nil, err
	}
	if w.finder, err = openFinder(ctx, o.Self); err != nil {
		return nil, err
	}
	var done []Workload
	for _, one := range workloads {
		if len(o.Only) > 0 && !slices.Contains(o.Only, one.name) {
			continue
		}
		o.Progress(one.name)
		costs, err := w.runWorkload(ctx, one)
		if err != nil {
			return nil, fmt.Errorf("%s, %w", one.name, err)
		}
		done = append(done, Workload{one.name, one.task, costs})
	}
	return done, nil
}

func (w *workloadRunner) runWorkload(ctx context.Context, one workloadTask) ([]WorkloadCost, error) {
	var costs []WorkloadCost
	for _, way := range []struct {
		name string
		do   func(context.Context, string, workloadTask) (WorkloadCost, error)
	}{{WayDirect, w.runDirectly}, {WaySearch, w.runDirectly}, {WayFull, w.runWithCode}, {WayLean, w.runWithCode}} {
		cost, err := way.do(ctx, way.name, one)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
		if len(costs) > 0 && cost.Answer != costs[0].Answer {
			return nil, fmt.Errorf("%s: the answer is %s, and %s of %s", way.name, cost.Answer, costs[0].Answer, costs[0].Way)
		}
		costs = append(costs, cost)
	}
	return costs, nil
}

// runDirectly lets an agent do the task by direct calls, on its own instances of the servers.
func (w *workloadRunner) runDirectly(ctx context.Context, way string, one workloadTask) (WorkloadCost, error) {
	servers, err := startServers(ctx, w.Self, one.servers...)
	if err != nil {
		return WorkloadCost{}, err
	}
	defer servers.closeServers()
	a := &directAgent{modelConversation: beginConversation(way, one.task), servers: servers}
	began := time.Now()
	if way == WayDirect {
		for _, d := range w.finder.tools {
			a.addDefinitions(d.definitionText())
		}
	} else {
		w.finder.searchTools(a, one.queries)
	}
	answer, err := one.direct(a)
	if err != nil {
		return WorkloadCost{}, err
	}
	return a.finishTask(answer, time.Since(began))
}

// toolFinder implements a tool search as clients provide it. It returns whole definitions.
type toolFinder struct {
	tools []offeredTool
	index *index.ToolIndex
}

// loadedDefinitions sets the number of tool definitions that one tool search loads into the model's context.
const loadedDefinitions = 5

// searchTool is the definition of the search tool, the only definition in the model's context at the beginning.
var searchTool = offeredTool{
	Name:        "tool_search",
	Description: "Search for tools by what they do. The definitions of the tools found are loaded and can be called from then on.",
	InputSchema: json.RawMessage(
		`{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"}},"required":["query"]}`,
	),
}

func openFinder(ctx context.Context, self string) (*toolFinder, error) {
	e, err := startServers(ctx, self, demo.ServerNames()...)
	if err != nil {
		return nil, err
	}
	e.closeServers()
	servers := map[string]*core.ToolServer{}
	for _, d := range e.tools {
		server, tool, _ := strings.Cut(d.Name, "__")
		s := cmp.Or(servers[server], &core.ToolServer{Name: server, TypeScript: server, Python: server})
		s.Tools = append(s.Tools, &core.Tool{
			Server: server, Name: tool, TypeScript: tool, Python: tool, Description: d.Description,
			InputSchema: d.InputSchema,
		})
		servers[server] = s
	}
	f := &toolFinder{e.tools, index.New()}
	f.index.UpdateTools(
		core.NewToolset(slices.SortedFunc(maps.Values(servers), func(a, b *core.ToolServer) int { return strings.Compare(a.Name, b.Name) })),
	)
	return f, nil
}

// searchTools runs the searches, one query in each turn.
func (f *toolFinder) searchTools(a *directAgent, queries []string) {
	a.loaded = map[string]bool{}
	a.addDefinitions(searchTool.definitionText())
	for _, query := range queries {
		a.countTurn()
		a.addOutput(agentCall{searchTool.Name, map[string]any{"query": query}}.requestText())
		hits, _ := f.index.Search(query, index.SearchFilter{}, loadedDefinitions)
		for _, d := range f.tools {
			if !a.loaded[d.Name] && slices.ContainsFunc(hits, func(h index.SearchHit) bool { return h.Tool.Server+"__"+h.Tool.Name == d.Name }) {
				a.loaded[d.Name] = true
				a.addDefinitions(d.definitionText())
			}
		}
	}
}

// runWithCode lets a client of Retort do the task with a program.
func (w *workloadRunner) runWithCode(ctx context.Context, way string, one workloadTask) (WorkloadCost, error) {
	c, err := w.office.startSession(ctx, map[string]string{WayFull: "full", WayLean: "lean"}[way])
	if err != nil {
		return WorkloadCost{}, err
	}
	defer c.closeClient()
	p := &codeClient{modelConversation: beginConversation(way, one.task), client: c}
	if err := p.startSession(); err != nil {
		return WorkloadCost{}, err
	}
	began := time.Now()
	for _, query := range one.queries {
		if err := p.searchTools(query); err != nil {
			return WorkloadCost{}, err
		}
	}
	answer, err := p.answerWorkload(one)
	if err != nil {
		return WorkloadCost{}, err
	}
	return p.finishTask(answer, time.Since(began))
}

// codeClient implements a client that is connected only to Retort.
type codeClient struct {
	*modelConversation
	client *mcpClient
}

func (p *codeClient) startSession() error {
	tools, err := p.client.listTools("")
	for _, d := range tools {
		p.addDefinitions(d.definitionText())
	}
	p.addDefinitions(p.client.instructions)
	return err
}

// searchTools searches for tools and loads their typed definitions.
func (p *codeClient) searchTools(query string) error {
	c := agentCall{"search_tools", map[string]any{"query": query, "detail_level": "full", "limit": loadedDefinitions}}
	p.countTurn()
	p.addOutput(c.requestText())
	a, err := p.client.callTool(c.tool, c.arguments)
	p.addDefinitions(a.text)
	return err
}

// answerWorkload makes the calls with which a model would do the task, and returns the model's final answer.
func (p *codeClient) answerWorkload(one workloadTask) (any, error) {
	calls := []agentCall{}
	if one.call != nil {
		server, tool, _ := strings.Cut(one.call.tool, "__")
		calls = append(calls, agentCall{"call_tool", map[string]any{"name": server + "." + tool, "arguments": one.call.arguments}})
	}
	for _, name := range one.programs {
		source, err := workloadFiles.ReadFile("workloads/" + name + ".ts")
		if err != nil {
			return nil, err
		}
		calls = append(calls, agentCall{"execute_code", map[string]any{"code": string(source), "language": "typescript"}})
	}
	for i, c := range calls {
		o, err := p.runCall(c)
		if err != nil {
			return nil, err
		}
		if i == len(calls)-1 {
			return one.parseAnswer(o)
		}
		if o.Status == core.StatusOK {
			return nil, fmt.Errorf("a program that is wrong ended well")
		}
	}
	return nil, fmt.Errorf("there is no program")
}

func (p *codeClient) runCall(c agentCall) (core.Outcome, error) {
	p.countTurn()
	p.addOutput(c.requestText())
	a, err := p.client.callTool(c.tool, c.arguments)
	p.addInput(a.text)
	if a.value == nil {
		return core.Outcome{}, err
	}
	var o core.Outcome
	if err := a.decodeInto(&o); err != nil {
		return o, err
	}
	p.cost.Calls += o.Stats.ToolCalls
	return o, nil
}

// parseAnswer extracts the answer from an Outcome.
func (one workloadTask) parseAnswer(o core.Outcome) (any, error) {
	if err := outcomeError(o); err != nil {
		return nil, err
	}
	if one.call != nil {
		return one.pick(o.Result)
	}
	return o.Result, nil
}
