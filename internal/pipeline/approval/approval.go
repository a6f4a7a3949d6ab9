// Package approval implements the table of approval questions that wait for a person. Code that needs approval puts a
// question into the table and waits. Channels (a client's elicitation, a terminal, the command line) read the table
// and answer. Only the first answer counts, and only for exactly what was shown: a question has a digest of the code,
// the arguments, the tool's definition and the policy, and an answer must repeat it. Nothing that runs in a sandbox
// can reach the table.
package approval

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// ApprovalTable holds the approval questions that wait for a person. It is safe for concurrent use.
type ApprovalTable struct {
	timeout  time.Duration
	rules    RuleStore
	recorder core.EventRecorder // nil: nothing is recorded
	bounds   QuestionBounds     // complete

	mu        sync.Mutex
	waiting   map[string]*tableEntry
	granted   map[runGrant]*runApproval   // for the rest of a run
	histories map[string]*questionHistory // by execution
	windows   map[sessionKey]*questionWindow
	denials   map[denialKey]*denialCount
	turns     map[turnKey]*channelTurns
	attend    func()
	also      []core.ApprovalChannel
}

// RuleStore stores the approvals that a person has given with the scope "always".
type RuleStore interface {
	IsAllowed(AlwaysRule) bool
	AllowRule(AlwaysRule) error
}

// AlwaysRule describes the calls that an approval with the scope always covers: calls of one tool with the same
// argument names and types.
type AlwaysRule struct {
	Server string `json:"server"`
	Tool   string `json:"tool"`
	Pin    string `json:"pin"`
	Policy string `json:"policy"`
	Shape  string `json:"shape"`
	// Crosses describes the personal data that the approved calls take to a destination other than its origin. An
	// approval of calls without such data does not cover calls with it.
	Crosses string `json:"crosses,omitempty"`
	// Principal is the principal for whom the calls were approved. Other principals are not covered.
	Principal string `json:"principal,omitempty"`
	// Entries names the entries of groups that restricted the principal. If others restrict the principal now, such
	// as after a change of groups, the calls are not covered.
	Entries string `json:"entries,omitempty"`
}

// runGrant describes the calls that are covered by a person's approval for the rest of an execution.
type runGrant struct{ execution, server, tool, pin, policy, crosses, repeats string }

// runApproval is an approval for the rest of an execution. Its field left is the number of calls that it still covers,
// or negative if it covers all.
type runApproval struct {
	answer core.ApprovalAnswer
	left   int
}

// useGrant counts a call that an approval for the rest of an execution covers. The caller must hold mu.
func (t *ApprovalTable) useGrant(q core.Question) {
	if given := t.granted[grantOf(q)]; given != nil && given.left > 0 {
		given.left--
	}
}

type tableEntry struct {
	core.Approval
	answer  core.ApprovalAnswer
	decided chan struct{} // closed with the first answer, or when no caller waits any more
	settled bool
	expired bool // there was no answer
	counted bool // towards the bounds on questions; see countQuestion
	shared  bool // the answer decides different calls, all of which its digest covers
}

// New returns an empty table. A question expires if it is not answered within timeout; 0 means 10 minutes. If rules
// is nil, no approval outlasts its execution.
func New(timeout time.Duration, rules RuleStore) *ApprovalTable {
	return &ApprovalTable{
		timeout: cmp.Or(timeout, core.DefaultApprovalTimeout), rules: rules, bounds: QuestionBounds{}.WithDefaults(),
		waiting: map[string]*tableEntry{}, granted: map[runGrant]*runApproval{}, histories: map[string]*questionHistory{},
		windows: map[sessionKey]*questionWindow{}, denials: map[denialKey]*denialCount{},
		turns: map[turnKey]*channelTurns{},
	}
}

// RecordTo sets the recorder of audit log entries about questions and answers. It must be called before the first
// question.
func (t *ApprovalTable) RecordTo(to core.EventRecorder) { t.recorder = to }

// NotifyWaiting sets a function that is called whenever a question is added. It must not block.
func (t *ApprovalTable) NotifyWaiting(f func()) { t.attend = f }

// AddChannel adds a channel through which every question is asked. It must be called before the first question.
func (t *ApprovalTable) AddChannel(c core.ApprovalChannel) { t.also = append(t.also, c) }

// AskQuestion waits for approval of q. It returns nil if q is approved, either now or by an earlier approval that covers q.
// Otherwise it returns an error of kind policy, or cancelled if ctx ends. If the bounds on questions are reached,
// nobody is asked and the error has kind policy. Before acting, the caller must check that the approved thing has not
// changed.
func (t *ApprovalTable) AskQuestion(ctx context.Context, q core.Question) *core.Error {
	_, _, refused := t.askQuestion(ctx, q)
	return refused
}

// AskBy works like AskQuestion and also returns the channel that approved, such as "client" for a form of an MCP
// client. It returns "" if an earlier approval covers the question.
func (t *ApprovalTable) AskBy(ctx context.Context, q core.Question) (by string, _ *core.Error) {
	answer, _, refused := t.askQuestion(ctx, q)
	return answer.By, refused
}

// PutQuestion works like AskQuestion and also returns the answer, and whether a person was asked. Nobody is asked if
// an earlier approval covers the question or the bounds are reached. The answer is then the earlier one, or zero.
func (t *ApprovalTable) PutQuestion(ctx context.Context, q core.Question) (_ core.ApprovalAnswer, put bool, _ *core.Error) {
	return t.askQuestion(ctx, q)
}

// askQuestion works like PutQuestion and also returns the answer.
func (t *ApprovalTable) askQuestion(ctx context.Context, q core.Question) (_ core.ApprovalAnswer, put bool, _ *core.Error) {
	e, earlier, refused := t.openEntry(q)
	switch {
	case refused != nil:
		return core.ApprovalAnswer{}, false, refused
	case e == nil:
		return earlier, false, t.recordEvent(q, core.EventDecision, "covered", nil)
	}
	if refused := t.recordEvent(q, core.EventQuestion, "", map[string]any{"question": e.ID, "digest": e.Digest}); refused != nil {
		_ = t.finishEntry(ctx, e)
		return core.ApprovalAnswer{}, true, refused
	}
	if t.attend != nil {
		t.attend()
	}
	timer := time.NewTimer(time.Until(e.Expires))
	defer timer.Stop()
	resume := core.PauseClock(ctx)
	defer resume()
	if ask := core.ChannelOf(ctx); ask != nil {
		go t.askThrough(ctx, ask, e, e.Approval)
	}
	for i := range t.also {
		if q.Login == "" { // only the person at this machine can log in
			go t.askInTurn(ctx, i, e)
		}
	}
	select {
	case <-e.decided:
	case <-timer.C:
	case <-ctx.Done():
	}
	refused = t.finishEntry(ctx, e)
	facts := map[string]any{"question": e.ID}
	if e.answer.By != "" {
		facts["by"] = e.answer.By
	}
	if refused == nil && e.answer.Scope != "" {
		facts["scope"] = e.answer.Scope
	}
	if unrecorded := t.recordEvent(q, core.EventDecision, e.outcomeName(ctx), facts); refused == nil {
		return e.answer, true, unrecorded
	}
	return e.answer, true, refused
}

// outcomeName returns the text with which the audit log states how a question ended, such as "approved" or "expired".
func (e *tableEntry) outcomeName(ctx context.Context) string {
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case e.answer.Approve:
		return "approved"
	case e.expired:
		return "expired"
	}
	return "denied"
}

// recordEvent records in the audit log that a question was asked, or how it ended.
func (t *ApprovalTable) recordEvent(q core.Question, kind core.EventKind, status string, facts map[string]any) *core.Error {
	if t.recorder == nil {
		return nil
	}
	e := core.AuditEvent{
		Kind: kind, Execution: q.Execution, Session: q.Session, Principal: q.Principal, Client: q.Client,
		Server: q.Server, Tool: q.Tool, Effect: q.Effect, Status: status, Facts: facts,
	}
	if q.Level != "" {
		e.Risk = &q.Risk
	}
	if kind == core.EventQuestion && q.Rule != "" {
		e.Facts["rule"] = q.Rule
	}
	if kind == core.EventQuestion && q.Unusual != "" {
		e.Facts["anomaly"] = q.Unusual
	}
	return t.recorder.Record(e, false)
}

// earlierApproval is the value of ApprovalAnswer.By if a person has approved a call in an earlier execution.
const earlierApproval = "earlier approval"

// findCovering returns the earlier approval that covers q. No earlier approval covers a critical or unusual call, or
// a call that an earlier program of the agent task has made with the same arguments.
func (t *ApprovalTable) findCovering(q core.Question) (_ core.ApprovalAnswer, ok bool) {
	if !q.HasScopes() || q.Unusual != "" || q.Repeats == core.RepeatsSame {
		return core.ApprovalAnswer{}, false
	}
	if given := t.granted[grantOf(q)]; given != nil && given.left != 0 {
		return given.answer, true
	}
	allowed := q.Repeats == "" && t.rules != nil && t.rules.IsAllowed(ruleOf(q))
	return core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways, By: earlierApproval}, allowed
}

func grantOf(q core.Question) runGrant {
	return runGrant{q.Execution, q.Server, q.Tool, q.Pin, q.Policy, q.Crosses, string(q.Repeats)}
}

func ruleOf(q core.Question) AlwaysRule {
	return AlwaysRule{q.Server, q.Tool, q.Pin, q.Policy, ArgumentShape(q.Arguments), q.Crosses, q.Principal, q.Entries}
}

// openEntry adds a question to the table. If q is already approved, it returns no entry but the earlier approval. It
// returns an error if the question must not be asked.
func (t *ApprovalTable) openEntry(q core.Question) (_ *tableEntry, earlier core.ApprovalAnswer, _ *core.Error) {
	now := time.Now()
	e := &tableEntry{
		Approval: core.Approval{
			ID: strings.ToLower(rand.Text()[:10]), Digest: q.ApprovalDigest(), Created: now, Expires: now.Add(t.timeout),
			Question: q,
		},
		decided: make(chan struct{}),
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if earlier, ok := t.findCovering(q); ok {
		t.useGrant(q)
		return nil, earlier, nil
	}
	if refused := t.countQuestion(e, now); refused != nil {
		return nil, earlier, refused
	}
	t.waiting[e.ID] = e
	return e, earlier, nil
}

// askThrough asks a question through one channel, as shown. It stops when the question of e is answered through another
// channel. It returns false if what was shown could not be decided so: it was withdrawn, or the answer came too late.
func (t *ApprovalTable) askThrough(ctx context.Context, ask core.ApprovalChannel, e *tableEntry, shown core.Approval) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.decided:
			cancel()
		case <-ctx.Done():
		}
	}()
	answer, ok := ask(ctx, shown)
	if !ok {
		return ctx.Err() == nil // the question has arrived and is answered elsewhere
	}
	answer.Also = shown.Same
	return t.AnswerApproval(shown.ID, shown.Digest, answer) == nil
}

// finishEntry removes a question from the table, so that later answers to it are rejected. It returns nil if the
// question was approved, otherwise the error for the program.
func (t *ApprovalTable) finishEntry(ctx context.Context, e *tableEntry) *core.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.waiting, e.ID)
	answered := e.settled
	if !answered {
		e.expired = true
		e.setAnswer(core.ApprovalAnswer{})
	}
	switch {
	case ctx.Err() != nil: // also if it was approved: nothing runs after its end
		return core.Errorf(core.KindCancelled, "approval", "the execution was cancelled while %s waited for a person", e.subjectText())
	case !answered:
		expired := refusalError(e, "no person answered within %v", t.timeout)
		expired.Err = core.ErrUnanswered
		return expired
	case !e.answer.Approve:
		if e.answer.Note != "" {
			return refusalError(e, "a person denied it: %s", e.answer.Note)
		}
		return refusalError(e, "a person denied it")
	}
	return nil
}

// grantScope stores an approval that covers more than one call. It also approves the waiting questions that the
// approval covers.
func (t *ApprovalTable) grantScope(e *tableEntry) {
	if e.Unusual != "" {
		t.relieveUnusual(e)
		return
	}
	if e.Start {
		t.grantWiderScope(e)
		return
	}
	if !e.HasScopes() || !e.answer.Approve || e.answer.Scope == core.ScopeOnce && !e.Spans {
		return
	}
	t.granted[grantOf(e.Question)] = newRunApproval(e.answer)
	if e.answer.Scope == core.ScopeAlways && t.rules != nil && e.Repeats == "" {
		// What could not be stored is asked again next time; this call was approved all the same.
		_ = t.rules.AllowRule(ruleOf(e.Question))
	}
	for _, other := range t.waiting {
		if _, covered := t.findCovering(other.Question); covered && !other.settled && time.Now().Before(other.Expires) {
			t.useGrant(other.Question)
			other.setAnswer(core.ApprovalAnswer{Approve: true, Scope: e.answer.Scope, By: e.answer.By})
		}
	}
}

// newRunApproval returns an approval that is valid for the rest of an execution, from a person's answer. If the answer
// limits the number of calls, the calls in the question that was answered count towards that limit.
func newRunApproval(a core.ApprovalAnswer) *runApproval {
	if a.Calls == 0 || a.Scope != core.ScopeRun {
		return &runApproval{a, -1}
	}
	return &runApproval{a, max(0, a.Calls-1-len(a.Also))}
}

// relieveUnusual approves the waiting questions whose only reason is the same anomaly that was just approved.
func (t *ApprovalTable) relieveUnusual(e *tableEntry) {
	for _, other := range t.waiting {
		same := other.Merely && other.Principal == e.Principal && other.Unusual == e.Unusual
		if e.answer.Approve && same && !other.settled && time.Now().Before(other.Expires) {
			other.setAnswer(core.ApprovalAnswer{Approve: true, Scope: core.ScopeOnce, By: e.answer.By})
		}
	}
}

func (e *tableEntry) setAnswer(a core.ApprovalAnswer) {
	e.answer, e.settled = a, true
	close(e.decided)
}

func refusalError(e *tableEntry, format string, args ...any) *core.Error {
	err := core.Errorf(core.KindPolicy, "approval", e.subjectText()+" was not approved: "+format, args...)
	return err.WithHint("do not try it again unless you are asked to; tell the person what it is needed for").AtTool(e.Server, e.Tool)
}

func (e *tableEntry) subjectText() string {
	if e.IsCall() {
		return "the call"
	}
	return "the program"
}

// EndExecution removes the approvals that were limited to an execution, and the counts of its questions.
func (t *ApprovalTable) EndExecution(execution string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.histories, execution)
	for key := range t.turns {
		if key.execution == execution {
			delete(t.turns, key)
		}
	}
	for g := range t.granted {
		if g.execution == execution {
			delete(t.granted, g)
		}
	}
}

// ListWaiting lists the questions that wait, oldest first: those of one execution, or all if execution is empty.
func (t *ApprovalTable) ListWaiting(execution string) []core.Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := []core.Approval{}
	for _, e := range t.waiting {
		if !e.settled && (execution == "" || e.Execution == execution) {
			list = append(list, e.Approval)
		}
	}
	slices.SortFunc(list, func(a, b core.Approval) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return list
}

// IsWaiting reports whether the question still waits for an answer.
func (t *ApprovalTable) IsWaiting(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.waiting[id]
	return ok && !e.settled
}

// FindGroup returns the waiting question with this id, merged with the waiting questions of its execution that a person
// can decide together with it. ok
// is false if the question no longer waits.
func (t *ApprovalTable) FindGroup(id string) (core.Approval, bool) {
	t.mu.Lock()
	e, ok := t.waiting[id]
	t.mu.Unlock()
	if !ok {
		return core.Approval{}, false
	}
	for _, a := range core.GroupAlike(t.ListWaiting(e.Execution)) {
		if a.ID == id || slices.Contains(a.Same, id) {
			return a, true
		}
	}
	return core.Approval{}, false
}

// AnswerApproval answers a question, and the questions shown together with it, which the answer names. The argument
// digest must be the digest of what was shown. AnswerApproval returns an error if the question does not exist, was already answered, or
// has expired.
func (t *ApprovalTable) AnswerApproval(id, digest string, a core.ApprovalAnswer) *core.Error {
	scope, err := core.ParseScope(string(a.Scope))
	if err != nil {
		return err
	}
	a.Scope = scope
	if a.Calls < 0 || a.Calls > 0 && scope != core.ScopeRun {
		return core.Errorf(core.KindInvalidArguments, "approval", "calls: %d is only possible as a positive number with the scope run", a.Calls)
	}
	if a.Calls > 0 && a.Calls <= len(a.Also) {
		return core.Errorf(core.KindInvalidArguments, "approval", "calls: %d is less than the %d calls that were shown", a.Calls, 1+len(a.Also))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	e, ok := t.waiting[id]
	if ok && a.Approve {
		if a, err = fitScope(e.Question, a); err != nil {
			return err
		}
	}
	switch {
	case !ok:
		return core.Errorf(core.KindInvalidArguments, "approval", "no approval request has the id %q: it was answered, expired, or was cancelled", id)
	case e.settled:
		return core.Errorf(core.KindInvalidArguments, "approval", "%s has already been answered", id)
	case digest != e.Digest && !t.coversAll(digest, e, a.Also):
		return core.Errorf(
			core.KindInvalidArguments, "approval", "the answer is not for the approval request that now waits as %s", id,
		).WithHint("review the current request: retort approvals show %s", id)
	case !time.Now().Before(e.Expires):
		return core.Errorf(core.KindInvalidArguments, "approval", "%s has expired", id)
	}
	e.shared = digest != e.Digest
	e.setAnswer(a)
	t.noteDecision(e)
	t.countDenial(e.Question, a.Approve, time.Now()) // once, however many equal questions were shown
	t.answerAlso(e)                                  // first: they are not counted twice
	t.grantScope(e)
	return nil
}

// coversAll reports whether digest is that of a question that shows e together with the questions that have the ids
// also. All of them must still wait. The caller must hold mu.
func (t *ApprovalTable) coversAll(digest string, e *tableEntry, also []string) bool {
	digests := []string{e.Digest}
	for _, id := range also {
		other, ok := t.waiting[id]
		if !ok || other.settled || !other.IsAlike(e.Question) {
			return false
		}
		digests = append(digests, other.Digest)
	}
	return digest == core.JoinDigests(digests)
}

// answerAlso gives the answer of e to the questions that were shown together with e. A scope wider than once
// applies only to the execution of e. The caller must hold mu.
func (t *ApprovalTable) answerAlso(e *tableEntry) {
	for _, id := range e.answer.Also {
		other, ok := t.waiting[id]
		if !ok || other.settled || !other.IsAlike(e.Question) || !e.shared && other.Digest != e.Digest || !time.Now().Before(other.Expires) {
			continue // the person has not seen it
		}
		a := e.answer
		a.Calls, a.Also = 0, nil
		if other.Execution != e.Execution { // else it is one answer to one program
			if a.Scope != core.ScopeEach { // which is narrower
				a.Scope = core.ScopeOnce
			}
			other.setAnswer(a)
			t.noteDecision(other)
			continue
		}
		other.setAnswer(a)
	}
}
