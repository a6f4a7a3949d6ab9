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

// Workload represents a task with its costs in each way.
type Workload struct {
	Name  string `json:"name"`
	Task  string `json:"task"` // as a person would put it
	Costs []Cost `json:"ways"`
}

// workload represents a task with an agent that does it by direct calls, and with a program.
type workload struct {
	name, task string
	servers    []string // the servers whose tools the task needs
	queries    []string // queries of the tool search, each in one turn
	direct     func(*agent) (any, error)
	programs   []string                           // in workloads/; all but the last are wrong
	call       *call                              // instead of a program, if one call is enough
	pick       func(json.RawMessage) (any, error) // extracts the answer from the call's result
}

//go:embed workloads/*.ts
var workloadFiles embed.FS

// atOnce sets the number of calls that an agent makes in one turn.
const atOnce = 20

// call represents one call of an agent.
type call struct {
	tool      string // "crm__search_records"
	arguments map[string]any
}

func (c call) text() string {
	text, _ := json.Marshal(map[string]any{"name": c.tool, "arguments": c.arguments})
	return string(text)
}

// agent does a task by direct calls. What a model would read and write is counted in its conversation; Go code does
// the thinking.
type agent struct {
	*conversation
	servers *everyday
	may     map[string]bool // tools whose definitions it has; nil means all
}

// calls makes the calls of one turn concurrently and returns their answers. The model sees an answer that is an error
// like any other.
func (a *agent) calls(calls ...call) ([]answered, error) {
	answers := make([]answered, len(calls))
	for i := 0; i < len(calls); i += atOnce {
		a.turn()
		for j := i; j < min(i+atOnce, len(calls)); j++ {
			if a.may != nil && !a.may[calls[j].tool] {
				return nil, fmt.Errorf("the search has not found %s", calls[j].tool)
			}
			a.write(calls[j].text())
			var err error
			server, tool, _ := strings.Cut(calls[j].tool, "__")
			if a.servers.servers[server] == nil {
				return nil, fmt.Errorf("the task names no server %s", server)
			}
			answers[j], err = a.servers.servers[server].tool(tool, calls[j].arguments)
			a.cost.Calls++
			a.read(answers[j].text)
			if err != nil && answers[j].text == "" {
				return nil, err
			}
		}
	}
	return answers, nil
}

// ask makes a single call in a turn of its own and decodes its answer into out.
func (a *agent) ask(out any, tool string, arguments map[string]any) error {
	answers, err := a.calls(call{tool, arguments})
	if err != nil {
		return err
	}
	return answers[0].into(out)
}

func (a answered) into(out any) error {
	if err := json.Unmarshal(a.value, out); err != nil {
		return fmt.Errorf("%w: %.200s", err, a.text)
	}
	return nil
}

// ways runs a workload in every way.
type ways struct {
	Options
	office *office
	finder *finder
}

// WorkloadNames returns the names of the tasks, in order.
func WorkloadNames() []string {
	names := make([]string, len(workloads))
	for i, one := range workloads {
		names[i] = one.name
	}
	return names
}

// Workloads does nine tasks, or those that o.Only names, in four ways against the bundled servers and returns the costs.
// All ways must produce the same answer. Its errors are *core.Error.
func Workloads(ctx context.Context, o Options) ([]Workload, error) {
	for _, name := range o.Only {
		if !slices.Contains(WorkloadNames(), name) {
			return nil, core.Errorf(core.KindInvalidArguments, "bench.tokens", "there is no task %q", name).WithHint("tasks: %s", strings.Join(WorkloadNames(), "; "))
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
	w := &ways{Options: o}
	o.Progress("starting the servers")
	if w.office, err = openOffice(ctx, o.Self, dir); err != nil {
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
		costs, err := w.do(ctx, one)
		if err != nil {
			return nil, fmt.Errorf("%s, %w", one.name, err)
		}
		done = append(done, Workload{one.name, one.task, costs})
	}
	return done, nil
}

func (w *ways) do(ctx context.Context, one workload) ([]Cost, error) {
	var costs []Cost
	for _, way := range []struct {
		name string
		do   func(context.Context, string, workload) (Cost, error)
	}{{WayDirect, w.direct}, {WaySearch, w.direct}, {WayFull, w.code}, {WayLean, w.code}} {
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

// direct lets an agent do the task on servers of its own.
func (w *ways) direct(ctx context.Context, way string, one workload) (Cost, error) {
	servers, err := startServers(ctx, w.Self, one.servers...)
	if err != nil {
		return Cost{}, err
	}
	defer servers.close()
	a := &agent{conversation: begin(way, one.task), servers: servers}
	began := time.Now()
	if way == WayDirect {
		for _, d := range w.finder.tools {
			a.define(d.text())
		}
	} else {
		w.finder.equip(a, one.queries)
	}
	answer, err := one.direct(a)
	if err != nil {
		return Cost{}, err
	}
	return a.end(answer, time.Since(began))
}

// finder is a tool search as clients provide it. It returns whole definitions.
type finder struct {
	tools []offered
	index *index.Index
}

// loaded sets the number of definitions that a search loads.
const loaded = 5

// searchTool is the only definition in the context at the beginning.
var searchTool = offered{
	Name: "tool_search", Description: "Search for tools by what they do. The definitions of the tools found are loaded and can be called from then on.",
	InputSchema: json.RawMessage(`{"type":"object","properties":{"query":{"type":"string","description":"What the tool should do"}},"required":["query"]}`),
}

func openFinder(ctx context.Context, self string) (*finder, error) {
	e, err := startServers(ctx, self, demo.Names()...)
	if err != nil {
		return nil, err
	}
	e.close()
	servers := map[string]*core.Server{}
	for _, d := range e.tools {
		server, tool, _ := strings.Cut(d.Name, "__")
		s := cmp.Or(servers[server], &core.Server{Name: server, TypeScript: server, Python: server})
		s.Tools = append(s.Tools, &core.Tool{Server: server, Name: tool, TypeScript: tool, Python: tool, Description: d.Description, InputSchema: d.InputSchema})
		servers[server] = s
	}
	f := &finder{e.tools, index.New()}
	f.index.Update(core.NewToolset(slices.SortedFunc(maps.Values(servers), func(a, b *core.Server) int { return strings.Compare(a.Name, b.Name) })))
	return f, nil
}

// equip runs the searches, one query in each turn.
func (f *finder) equip(a *agent, queries []string) {
	a.may = map[string]bool{}
	a.define(searchTool.text())
	for _, query := range queries {
		a.turn()
		a.write(call{searchTool.Name, map[string]any{"query": query}}.text())
		hits, _ := f.index.Search(query, index.Filter{}, loaded)
		for _, d := range f.tools {
			if !a.may[d.Name] && slices.ContainsFunc(hits, func(h index.Hit) bool { return h.Tool.Server+"__"+h.Tool.Name == d.Name }) {
				a.may[d.Name] = true
				a.define(d.text())
			}
		}
	}
}

// code lets a client of Retort do the task with a program.
func (w *ways) code(ctx context.Context, way string, one workload) (Cost, error) {
	c, err := w.office.start(ctx, map[string]string{WayFull: "full", WayLean: "lean"}[way])
	if err != nil {
		return Cost{}, err
	}
	defer c.close()
	p := &programmer{conversation: begin(way, one.task), client: c}
	if err := p.prepare(); err != nil {
		return Cost{}, err
	}
	began := time.Now()
	for _, query := range one.queries {
		if err := p.search(query); err != nil {
			return Cost{}, err
		}
	}
	answer, err := p.answer(one)
	if err != nil {
		return Cost{}, err
	}
	return p.end(answer, time.Since(began))
}

// programmer is a client that is connected only to Retort.
type programmer struct {
	*conversation
	client *client
}

func (p *programmer) prepare() error {
	tools, err := p.client.offers("")
	for _, d := range tools {
		p.define(d.text())
	}
	p.define(p.client.instructions)
	return err
}

// search loads typed definitions.
func (p *programmer) search(query string) error {
	c := call{"search_tools", map[string]any{"query": query, "detail_level": "full", "limit": loaded}}
	p.turn()
	p.write(c.text())
	a, err := p.client.tool(c.tool, c.arguments)
	p.define(a.text)
	return err
}

// answer returns the model's final answer.
func (p *programmer) answer(one workload) (any, error) {
	calls := []call{}
	if one.call != nil {
		server, tool, _ := strings.Cut(one.call.tool, "__")
		calls = append(calls, call{"call_tool", map[string]any{"name": server + "." + tool, "arguments": one.call.arguments}})
	}
	for _, name := range one.programs {
		source, err := workloadFiles.ReadFile("workloads/" + name + ".ts")
		if err != nil {
			return nil, err
		}
		calls = append(calls, call{"execute_code", map[string]any{"code": string(source), "language": "typescript"}})
	}
	for i, c := range calls {
		o, err := p.run(c)
		if err != nil {
			return nil, err
		}
		if i == len(calls)-1 {
			return one.told(o)
		}
		if o.Status == core.StatusOK {
			return nil, fmt.Errorf("a program that is wrong ended well")
		}
	}
	return nil, fmt.Errorf("there is no program")
}

func (p *programmer) run(c call) (core.Outcome, error) {
	p.turn()
	p.write(c.text())
	a, err := p.client.tool(c.tool, c.arguments)
	p.read(a.text)
	if a.value == nil {
		return core.Outcome{}, err
	}
	var o core.Outcome
	if err := a.into(&o); err != nil {
		return o, err
	}
	p.cost.Calls += o.Stats.ToolCalls
	return o, nil
}

// told extracts the answer from an Outcome.
func (one workload) told(o core.Outcome) (any, error) {
	if err := failed(o); err != nil {
		return nil, err
	}
	if one.call != nil {
		return one.pick(o.Result)
	}
	return o.Result, nil
}
