// Package recommend suggests changes to the configuration. It reads the audit log and the list of servers and returns
// advice as text. It changes nothing, and it fetches nothing except a server registry that the user names.
package recommend

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"retort/internal/audit"
	"retort/internal/core"
)

// Kind says what a piece of advice is about. New versions may add kinds, but do not change or remove any.
type Kind string

// The kinds of advice.
const (
	Unused   Kind = "unused_server" // a server that no program has called
	Failing  Kind = "failing_tool"  // a tool whose calls often fail
	Cache    Kind = "cache"         // a tool whose results could be cached
	Skill    Kind = "skill"         // a program that was run repeatedly and could be saved as a skill
	Registry Kind = "registry"      // servers that match searches without results
	Search   Kind = "search"        // searches without results for which the registry has no server
)

// Advice describes one suggested change.
type Advice struct {
	Kind    Kind             `json:"kind"`
	Subject string           `json:"subject"` // name of a server or tool, ID of an execution, or a search query
	Says    string           `json:"says"`    // what was observed
	Do      string           `json:"do"`      // suggested command or setting
	Count   int64            `json:"count"`   // how often it was observed
	Servers []RegistryServer `json:"servers,omitempty"`
}

// KnownState holds facts that advice needs and the audit log does not contain.
type KnownState struct {
	Servers []string               // configured servers that are not disabled
	Cached  func(tool string) bool // reports whether results of a tool SERVER.TOOL are cached; nil: none are
	List    *RegistryList          // servers of a registry; nil: no list was fetched
}

// Thresholds above which a fact leads to advice, and bounds on the collected data.
const (
	leastExecutions = 20               // executions after which a server without calls counts as unused
	leastCalls      = 5                // calls from which a tool may count as failing
	failingShare    = 0.2              // share of failed calls
	cacheWindow     = 10 * time.Minute // time within which an equal call counts as repeated
	leastRepeats    = 10
	steadyShare     = 0.95 // share of repeated calls with an unchanged result
	leastRuns       = 3    // executions of the same program
	leastAlike      = 5    // programs that use the same tools
	maxKeys         = 50_000
	maxQueries      = 200
	maxQuery        = 200 // bytes of a query
	maxOffered      = 3   // servers suggested for one query
)

// EventTally collects the facts on which advice is based from audit log entries, which must be added oldest first.
// The zero value is ready for use.
type EventTally struct {
	executions int64
	servers    map[string]int64
	tools      map[string]*toolTally
	calls      map[string]seenTool       // calls that only read, by tool, arguments, principal and session
	programs   map[string]*seenPrograms  // by digest of the code or by the tools
	running    map[string]*openExecution // executions that have not ended
	queries    map[string]int64          // number of searches without results, by query
}

type toolTally struct {
	calls, errors    int64
	statuses         map[string]int64
	same, changed    int64
	bytes            int64
	millis           float64
	server, toolName string
}

type seenTool struct {
	at     time.Time
	result string
}

type seenPrograms struct {
	count   int64
	last    string // ID of the last execution
	tools   []string
	byTools bool
}

type openExecution struct {
	code  string
	tools []string
}

// entryFacts holds those members of an audit log entry's additional JSON data ("facts") that advice is based on.
type entryFacts struct {
	Code      string   `json:"code_sha256"`
	Tools     []string `json:"tools"`
	Effect    string   `json:"effect"`
	Arguments string   `json:"arguments"`
	Result    string   `json:"result"`
	Found     *int     `json:"found"`
}

// EventKinds returns the kinds of audit log entries that Add uses.
func EventKinds() []string {
	return []string{
		string(core.EventRequest), string(core.EventVerdict), string(core.EventCall), string(core.EventAnswer),
		string(core.EventEnd), string(core.EventSearch),
	}
}

// Add collects the facts in an audit log entry.
func (t *EventTally) Add(e *audit.Entry) {
	if t.servers == nil {
		t.servers, t.tools, t.calls = map[string]int64{}, map[string]*toolTally{}, map[string]seenTool{}
		t.programs, t.running, t.queries = map[string]*seenPrograms{}, map[string]*openExecution{}, map[string]int64{}
	}
	var f entryFacts
	if len(e.Facts) > 0 {
		_ = json.Unmarshal(e.Facts, &f) // what is not of its type is left out
	}
	switch e.Kind {
	case core.EventRequest:
		makeRoom(t.running)[e.Execution] = &openExecution{code: f.Code}
	case core.EventVerdict:
		if x := t.running[e.Execution]; x != nil {
			x.tools = f.Tools
		}
	case core.EventCall, core.EventAnswer:
		t.addCall(e, f)
	case core.EventEnd:
		t.addEnd(e)
	case core.EventSearch:
		if e.Status == "search" && f.Found != nil && *f.Found == 0 {
			t.addSearch(e)
		}
	}
}

// makeRoom returns the map m with room for one more key. If m is full, it is cleared first.
func makeRoom[T any](m map[string]T) map[string]T {
	if len(m) >= maxKeys {
		clear(m)
	}
	return m
}

func (t *EventTally) addCall(e *audit.Entry, f entryFacts) {
	if e.Server == "" || e.Tool == "" {
		return
	}
	name := e.Server + "." + e.Tool
	tool := t.tools[name]
	if tool == nil {
		tool = &toolTally{statuses: map[string]int64{}, server: e.Server, toolName: e.Tool}
		makeRoom(t.tools)[name] = tool
	}
	if e.Kind == core.EventCall {
		tool.calls++
		t.servers[e.Server]++
	}
	if e.Status != "" && e.Status != "ok" {
		tool.errors++
		tool.statuses[e.Status]++
		return
	}
	if e.Kind == core.EventCall && f.Effect == core.EffectRead.String() && f.Arguments != "" && f.Result != "" {
		tool.countRepeated(t, e, f, name)
	}
}

// countRepeated counts a call that only reads as repeated, if the same principal and session made an equal call
// shortly before. Repeated calls with the same result are counted separately from those with a changed result.
func (tool *toolTally) countRepeated(t *EventTally, e *audit.Entry, f entryFacts, name string) {
	key := strings.Join([]string{name, e.Principal, e.Session, f.Arguments}, "\x00")
	before, known := t.calls[key]
	makeRoom(t.calls)[key] = seenTool{e.At, f.Result}
	switch {
	case !known || e.At.Sub(before.at) > cacheWindow:
	case before.result == f.Result:
		tool.same++
		tool.bytes, tool.millis = tool.bytes+e.Bytes, tool.millis+e.Millis
	default:
		tool.changed++
	}
}

func (t *EventTally) addEnd(e *audit.Entry) {
	t.executions++
	x := t.running[e.Execution]
	delete(t.running, e.Execution)
	if x == nil || e.Status != "ok" || x.code == "" {
		return
	}
	count := func(key string, byTools bool) {
		p := t.programs[key]
		if p == nil {
			p = &seenPrograms{tools: x.tools, byTools: byTools}
			makeRoom(t.programs)[key] = p
		}
		p.count++
		p.last = e.Execution
	}
	count("code "+x.code, false)
	if len(x.tools) > 1 {
		count("tools "+strings.Join(slices.Sorted(slices.Values(x.tools)), " "), true)
	}
}

// addSearch counts a search for tools that found nothing. It does nothing if the reader of the audit log cannot
// decrypt the entry's body, which contains the query.
func (t *EventTally) addSearch(e *audit.Entry) {
	var body struct {
		Name string `json:"name"`
	}
	if json.Unmarshal(e.Body, &body) != nil {
		return
	}
	query := strings.ToLower(strings.Join(strings.Fields(body.Name), " "))
	if _, known := t.queries[query]; query != "" && len(query) <= maxQuery && (known || len(t.queries) < maxQueries) {
		t.queries[query]++
	}
}

// ListAdvice returns the suggested changes, grouped by kind. In each group, the most frequent come first.
func (t *EventTally) ListAdvice(s KnownState) []Advice {
	all := slices.Concat(t.adviseUnused(s), t.adviseFailing(), t.adviseCaches(s), t.adviseSkills(), t.adviseFailedSearches(s))
	if all == nil {
		all = []Advice{}
	}
	return all
}

func firstAdvice(list []Advice) []Advice {
	slices.SortStableFunc(list, func(a, b Advice) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Subject, b.Subject))
	})
	return list
}

func (t *EventTally) adviseUnused(s KnownState) (list []Advice) {
	if t.executions < leastExecutions {
		return nil
	}
	for _, name := range s.Servers {
		if t.servers[name] == 0 {
			list = append(list, Advice{
				Kind: Unused, Subject: name, Says: fmt.Sprintf("none of %d executions has called it", t.executions),
				Do: fmt.Sprintf("set servers: {%s: {disabled: true}} in retort.yaml to remove its tools from searches", quoteText(name)),
			})
		}
	}
	return firstAdvice(list)
}

func quoteText(s string) string {
	text, _ := json.Marshal(s) // a string always is JSON
	return string(text)
}

func (t *EventTally) adviseFailing() (list []Advice) {
	for _, name := range slices.Sorted(maps.Keys(t.tools)) {
		tool := t.tools[name]
		if tool.calls < leastCalls || float64(tool.errors) < failingShare*float64(tool.calls) {
			continue
		}
		kinds := slices.SortedFunc(maps.Keys(tool.statuses), func(a, b string) int {
			return cmp.Or(cmp.Compare(tool.statuses[b], tool.statuses[a]), strings.Compare(a, b))
		})
		list = append(list, Advice{Kind: Failing, Subject: name, Count: tool.errors, Says: fmt.Sprintf(
			"%d of %d calls failed, mostly with the status %s", tool.errors, tool.calls, kinds[0],
		),
			Do: fmt.Sprintf(
				"retort audit query --server %s --tool %s --status %s shows them; retort doctor checks the server",
				tool.server, tool.toolName, kinds[0],
			)})
	}
	return firstAdvice(list)
}

func (t *EventTally) adviseCaches(s KnownState) (list []Advice) {
	for _, name := range slices.Sorted(maps.Keys(t.tools)) {
		tool := t.tools[name]
		repeats := tool.same + tool.changed
		if tool.same < leastRepeats || float64(tool.same) < steadyShare*float64(repeats) || s.Cached != nil && s.Cached(name) {
			continue
		}
		list = append(list, Advice{Kind: Cache, Subject: name, Count: tool.same,
			Says: fmt.Sprintf(
				"%d of %d calls that were repeated within %s had the same result: %d bytes and %.1f s could be saved", tool.same,
				repeats, cacheWindow, tool.bytes, tool.millis/1000,
			),
			Do: fmt.Sprintf("set cache: {ttl: 10m, tools: [%s]} in retort.yaml to reuse the results, if the tool only reads", quoteText(name))})
	}
	return firstAdvice(list)
}

func (t *EventTally) adviseSkills() (list []Advice) {
	told := map[string]bool{}
	for _, byTools := range []bool{false, true} { // the same program first
		for _, key := range slices.Sorted(maps.Keys(t.programs)) {
			p := t.programs[key]
			least := int64(leastRuns)
			says := fmt.Sprintf("the same program was run %d times", p.count)
			if byTools {
				least, says = leastAlike, fmt.Sprintf(
					"%d successful programs called the same tools: %s", p.count,
					strings.Join(p.tools[:min(len(p.tools), 5)], ", "),
				)
			}
			if p.byTools != byTools || p.count < least || told[p.last] {
				continue
			}
			told[p.last] = true
			list = append(list, Advice{
				Kind: Skill, Subject: p.last, Count: p.count, Says: says,
				Do: fmt.Sprintf("save the last one as a skill: retort skills save --from %s --name NAME --description '…'", p.last),
			})
		}
	}
	return firstAdvice(list)
}

func (t *EventTally) adviseFailedSearches(s KnownState) (list []Advice) {
	find := s.List.newFinder()
	for _, query := range slices.Sorted(maps.Keys(t.queries)) {
		n := t.queries[query]
		a := Advice{
			Kind: Search, Subject: query, Count: n, Says: fmt.Sprintf("searched for %d times without finding a tool", n),
			Do: "add a server that offers it; retort recommend --update fetches the list of a registry",
		}
		if servers := find(query); len(servers) > 0 {
			a.Kind, a.Servers, a.Do = Registry, servers, "review these servers in the registry, and add one that you trust"
		} else if s.List != nil {
			a.Do = "no server in the registry seems to offer it"
		}
		list = append(list, a)
	}
	return firstAdvice(list)
}
