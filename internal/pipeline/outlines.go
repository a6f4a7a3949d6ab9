package pipeline

import (
	"encoding/json"
	"slices"
	"sync"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	ledger "retort/internal/tokens"
)

const (
	outlineTokens = 150    // of all outlines in one Outcome
	maxToldTools  = 10_000 // that are remembered; then all are forgotten
	maxOutlines   = 20     // that one execution collects
)

// ToldOutlines keeps which sessions have got an outline of which tool's results. It is safe for concurrent use.
type ToldOutlines struct {
	mu   sync.Mutex
	told map[toldTool]bool
}

// toldTool names a tool of a session, in one definition.
type toldTool struct{ session, server, tool, pin string }

// NewToldOutlines returns a ToldOutlines that has no tool yet.
func NewToldOutlines() *ToldOutlines { return &ToldOutlines{told: map[toldTool]bool{}} }

func (o *ToldOutlines) isTold(t toldTool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told[t]
}

// addTold adds a tool. It returns false if the tool was there already.
func (o *ToldOutlines) addTold(t toldTool) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.told[t] {
		return false
	}
	if len(o.told) >= maxToldTools {
		clear(o.told)
	}
	o.told[t] = true
	return true
}

// answerOutlines collects the outlines of one execution. Calls that are under way at once may add to it.
type answerOutlines struct {
	mu   sync.Mutex
	list []answerOutline
}

type answerOutline struct {
	tool *core.Tool
	text string
}

func (a *answerOutlines) hasTool(t *core.Tool) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.list) >= maxOutlines || slices.ContainsFunc(a.list, func(o answerOutline) bool { return o.tool == t })
}

func (a *answerOutlines) addOutline(t *core.Tool, text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !slices.ContainsFunc(a.list, func(o answerOutline) bool { return o.tool == t }) {
		a.list = append(a.list, answerOutline{t, text})
	}
}

// learnAnswer learns types from an answer that the program gets. It also makes the answer's outline, if the session
// has none of the tool yet.
func (x *programExecution) learnAnswer(t *core.Tool, answer json.RawMessage) {
	p := x.pipeline
	p.Learner.Learn(t, answer, x.personalKeys())
	if p.Outlines == nil || x.risk == nil || len(t.OutputSchema) > 0 { // a call without a program returns the answer itself
		return
	}
	if x.outlines.hasTool(t) || p.Outlines.isTold(x.toldTool(t)) {
		return
	}
	text := p.Learner.Outline(t, answer, x.personalKeys())
	if text == "" {
		return
	}
	if _, flagged := p.cleanProse(text); len(flagged) == 0 {
		x.outlines.addOutline(t, text)
	}
}

func (x *programExecution) toldTool(t *core.Tool) toldTool {
	return toldTool{x.pipeline.AccountName(x.req.Session), t.Server, t.Name, t.Pin}
}

// newOutlines returns the outlines that the session has not got yet, as many as fit into outlineTokens. The others are
// left to a later execution.
func (x *programExecution) newOutlines() (lines []string) {
	x.outlines.mu.Lock()
	defer x.outlines.mu.Unlock()
	room := outlineTokens
	for _, o := range x.outlines.list {
		line := bindings.RenderStub(x.tools, o.tool, x.req.Language, bindings.Name) + " → " + o.text
		n, fits := ledger.FitsLimit(line, room-1) // and what separates it from the next
		if !fits || !x.pipeline.Outlines.addTold(x.toldTool(o.tool)) {
			continue
		}
		room -= n + 1
		lines = append(lines, line)
	}
	return lines
}
