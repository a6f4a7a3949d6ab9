package pipeline

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/relay"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// maxRehearsal bounds the time that a program may run to find out which calls it will make.
const maxRehearsal = 10 * time.Second

// approveExpectedCalls asks a person, before a program starts, to approve those of its calls that need approval. It
// finds out which calls to expect with a rehearsal. This is a run in which calls that only read are sent to the
// servers, and calls with effects are not. An approval covers only the listed calls: if the real run makes other calls,
// a person is asked about each of them. If the person says no, approveExpectedCalls returns an error, and the program
// must not start.
//
// It asks nothing if the settings disable it, if the program cannot be rehearsed, or if the program makes a single call
// with effects. A person is asked about that call when the program makes it.
func (x *programExecution) approveExpectedCalls(ctx context.Context, v check.Verdict, spec sandbox.SandboxSpec) *core.Error {
	if !x.shouldRehearse(v.Risk) {
		return nil
	}
	calls := &expectedCalls{real: x, rehearsal: relay.NewRehearsal(), other: map[otherCalls]int{}}
	x.rehearse(ctx, calls, v, spec)
	x.execution.run.Store(x)
	calls.rehearsal.BeginRealRun()
	x.rehearsal = calls.rehearsal
	x.setTools(x.tools)
	if calls.dropped || len(calls.batch.effects) == 0 || calls.total < 2 {
		return nil
	}
	q := x.batchQuestion(calls.batch)
	q.Start, q.Reasons = true, append(q.Reasons, calls.describeOthers()...)
	answer, refused := x.askApproval(ctx, q)
	switch {
	case refused != nil:
		x.rehearsal.End()
	case answer.Scope != core.ScopeEach:
		x.granted.addApproved(q.Effects, answer)
	}
	return refused
}

// shouldRehearse reports whether a program may make several calls with effects, at least one of which needs approval. It
// returns false for programs that use the network or run commands, because a rehearsal could not hold back their effects,
// and for programs that call the function approve, because they ask for approval themselves.
func (x *programExecution) shouldRehearse(r rules.ProgramRisk) bool {
	if !x.pipeline.Approvals.AskFirst || x.plan != nil || x.req.Code == "" || r.UsesNetwork() || r.UsesCommands() ||
		strings.Contains(x.req.Code, "approve(") {
		return false
	}
	several, asks := 0, false
	for _, u := range r.Uses {
		t, ok := x.tools.FindTool(u.Tool)
		if !ok {
			continue
		}
		d := x.pipeline.Policy.DecideTool(t)
		if d.Verdict == policy.Deny || d.Effect.Kind == core.EffectRead {
			continue
		}
		if several++; u.Loop {
			several++
		}
		asks = asks || x.pipeline.aboutCall(d) != ""
	}
	return asks && several > 1
}

// isRehearsing reports whether this is the run that finds out what a person has to be asked about.
func (x *programExecution) isRehearsing() bool { return x.plan != nil && x.plan.expected != nil }

// rehearse runs the program without sending calls with effects, and collects these calls. Errors in this run do no harm:
// a person is asked about calls that were not found when the real run makes them.
func (x *programExecution) rehearse(ctx context.Context, calls *expectedCalls, v check.Verdict, spec sandbox.SandboxSpec) {
	limited := min(x.req.Limits.Timeout, maxRehearsal)
	run, err := x.execution.openProgram(&effectPlan{
		rehearsal: true, touched: map[string]bool{}, mask: x.maskJSON, expected: calls,
	})
	defer run.closeRehearsal()
	if err != nil {
		calls.drop()
		return
	}
	run.risk, run.skills = x.risk, x.skills
	run.setTools(x.tools)
	box, err := x.pipeline.Sandboxes.Prepare(ctx, x.req.Sandbox, spec)
	if err != nil {
		calls.drop()
		return
	}
	defer box.Close()
	program := v.Program
	program.ID, program.Limits = x.req.ID, x.req.Limits
	program.Limits.Timeout = limited
	result, err := run.runInSandbox(ctx, box, program)
	if result.Status != core.StatusOK {
		calls.notePartial()
	}
	if err != nil || run.halt.why() != nil || len(run.commands.planned) > 0 {
		calls.drop()
	}
}

// closeRehearsal discards what a rehearsal has written, and closes its files.
func (x *programExecution) closeRehearsal() {
	if x.draft != nil {
		_ = x.draft.Close()
	}
	if x.files != nil {
		_ = x.files.Close()
	}
}

// expectedCalls collects the calls with effects that a rehearsal of a program finds. It is safe for concurrent use.
type expectedCalls struct {
	real      *programExecution // which judges the calls
	rehearsal *relay.Rehearsal

	mu      sync.Mutex
	batch   judgedBatch        // calls that a person must approve
	total   int                // calls with effects
	other   map[otherCalls]int // numbers of the other calls with effects
	partial bool               // the program may make more calls than were found
	dropped bool               // the rehearsal says too little
}

// otherCalls describes calls of one tool that a question does not list.
type otherCalls struct{ tool, reason string }

// connect makes the relay of a rehearsal pass calls with effects to c.
func (c *expectedCalls) connect(r *relay.ExecutionContext) {
	r.Rehearsal, r.Rehearse = c.rehearsal, c.addCall
	if r.Learn != nil {
		r.Learn = c.real.learnAnswer
	}
}

func (c *expectedCalls) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropped = true
}

func (c *expectedCalls) notePartial() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.partial = true
}

// noteApprove notes that the program calls approve, so that it asks for itself.
func (c *expectedCalls) noteApprove() { c.drop() }

// addCall adds a call that the program would make. It returns an error for the program if there are too many calls.
func (c *expectedCalls) addCall(t *core.Tool, call core.ToolCall, d policy.AccessDecision) *core.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.total++; c.total > maxBatch || c.batch.size > maxPlan {
		c.partial = true
		return core.Errorf(core.KindLimit, "pipeline.rehearsal", "the program makes too many calls to ask about them together")
	}
	switch {
	case c.rehearsal.DependsOnEffects(call.Arguments):
		c.addOther(t, "the arguments of these calls are not known yet")
	case t.RequiresApproval() || rules.ReadArguments(call.Tool, call.Arguments).Critical != "" || c.real.findRepeats(t, call).rule != "":
		c.addOther(t, "you are asked about each of these calls when it is made")
	case c.isCovered(t, call, d):
		c.addOther(t, "an earlier approval covers these calls")
	case !c.real.addToBatch(&c.batch, relay.JudgedCall{ToolCall: call, Definition: t, Decision: d}):
		c.addOther(t, "these calls need no approval")
	}
	return nil
}

// addOther counts a call that the question does not list, for the given reason.
func (c *expectedCalls) addOther(t *core.Tool, reason string) {
	c.other[otherCalls{core.LegibleLine(t.Server) + "." + core.LegibleLine(t.Name), reason}]++
}

// isCovered reports whether an earlier approval covers a call, so that nobody would be asked about it.
func (c *expectedCalls) isCovered(t *core.Tool, call core.ToolCall, d policy.AccessDecision) bool {
	x := c.real
	rule := x.whyAsk(t, call, d, false)
	return rule != "" && x.pipeline.Approvals.Table.IsCovered(x.aboutCall(rule, t, call, d))
}

// describeOthers returns a line for each tool whose calls the question does not list, with their number and the reason.
func (c *expectedCalls) describeOthers() (lines []string) {
	for other, n := range c.other {
		times := "once"
		if n > 1 {
			times = fmt.Sprintf("%d times", n)
		}
		lines = append(lines, fmt.Sprintf("the program is also expected to call %s %s; %s", other.tool, times, other.reason))
	}
	slices.Sort(lines)
	if c.partial {
		lines = append(lines, "the list may be incomplete: Retort could try only a part of the program")
	}
	return lines
}
