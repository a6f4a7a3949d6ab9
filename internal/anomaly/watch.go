package anomaly

import (
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// AnomalyWatcher detects anomalies in the events of the audit log. It observes every event and judges calls with
// effects before they are sent. It is safe for concurrent use.
type AnomalyWatcher struct {
	onFinding func(AnomalyFinding)

	mu        sync.Mutex
	d         *anomalyDetector
	held      map[string][]activeHold         // by principal
	questions *lruCache[string, holdQuestion] // by ID of the question: what an approval ends
	warnings  *lruCache[string, []string]     // warnings for the Outcome, by execution
	stopped   *lruCache[string, *core.Error]  // by execution
}

// activeHold says why the calls of a principal need a person's approval, and until when.
type activeHold struct {
	kind  Kind
	words string
	until time.Time
}

type holdQuestion struct {
	principal string
	kinds     []string
}

// New returns an AnomalyWatcher. It calls tell with each finding whose action is not Off, possibly concurrently. tell
// may be nil.
func New(o Options, tell func(AnomalyFinding)) *AnomalyWatcher {
	d := newDetector(o)
	if tell == nil {
		tell = func(AnomalyFinding) {}
	}
	n := d.o.Limits.Executions
	return &AnomalyWatcher{
		onFinding: tell, d: d, held: map[string][]activeHold{},
		questions: newLRU[string, holdQuestion](n), warnings: newLRU[string, []string](n), stopped: newLRU[string, *core.Error](n),
	}
}

// Judgement is the decision about a call.
type Judgement struct {
	Refused *core.Error // if not nil, the call must not be sent
	// Kinds lists, separated by commas, the kinds of the findings because of which the call needs approval. It is
	// empty if the call needs none. Rule gives the reason as text.
	Kinds, Rule string
}

// Judge decides about a call with effects before it is sent. The event must have the kind EventCall, the time and the
// fact "arguments_bytes". Judge counts the call as sent, so the caller must not pass the event to ObserveEvent.
func (w *AnomalyWatcher) Judge(e core.AuditEvent) Judgement {
	w.mu.Lock()
	w.d.judgeCall(e)
	found := w.applyActions()
	j := w.judgementFor(e)
	w.mu.Unlock()
	w.reportFindings(found)
	return j
}

// ObserveEvent learns from an event, reports what is unusual about it, and carries out the actions.
func (w *AnomalyWatcher) ObserveEvent(e core.AuditEvent) {
	w.mu.Lock()
	w.observeEvent(e)
	found := w.applyActions()
	w.mu.Unlock()
	w.reportFindings(found)
}

// ReplayEvent processes an event from the audit log after a restart. Events must be passed in order. It restores the
// actions that followed findings but does not report the findings again.
func (w *AnomalyWatcher) ReplayEvent(e core.AuditEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == core.EventCall && e.Effect != core.EffectRead.String() {
		w.d.judgeCall(e)
	} else {
		w.observeEvent(e)
	}
	w.applyActions()
	w.warnings.removeKey(e.Execution)
	if e.Kind == core.EventAnomaly {
		w.restoreAction(e)
	}
}

// restoreAction restores the action that followed a finding in the audit log. Replaying the other events is not
// enough, because a call that was judged but not sent may have no entry.
func (w *AnomalyWatcher) restoreAction(e core.AuditEvent) {
	f := AnomalyFinding{Kind: Kind(e.Status), At: e.At, Principal: e.Principal, Server: e.Server, Tool: e.Tool}
	f.Words = "found at " + e.At.In(w.d.o.Zone).Format(time.DateTime) + ", before the engine was restarted"
	f.Skill, _ = e.Facts["skill"].(string)
	now := numberFrom(e.Facts["now"])
	if t := w.d.reportFor(f); t.at < unixSeconds(e) || t.measure < now {
		t.at, t.measure = unixSeconds(e), now
	}
	action, _ := e.Facts["action"].(string)
	known := slices.ContainsFunc(w.held[f.Principal], func(h activeHold) bool { return h.kind == f.Kind && h.until.After(f.At) })
	if !known && (AnomalyAction(action) == Approve || AnomalyAction(action) == Stop) {
		w.holdPrincipal(f)
	}
}

func (w *AnomalyWatcher) observeEvent(e core.AuditEvent) {
	w.d.handleEvent(e)
	id, _ := e.Facts["question"].(string)
	switch e.Kind {
	case core.EventQuestion:
		if kinds, _ := e.Facts["anomaly"].(string); kinds != "" {
			w.questions.removeKey(id)
			w.questions.putValue(id, holdQuestion{e.Principal, strings.Split(kinds, ",")})
		}
	case core.EventDecision:
		if q, ok := w.questions.getValue(id); ok {
			w.questions.removeKey(id)
			if e.Status == "approved" {
				w.liftHold(q)
			}
		}
	case core.EventEnd:
		w.stopped.removeKey(e.Execution)
	}
}

func (w *AnomalyWatcher) reportFindings(found []AnomalyFinding) {
	for _, f := range found {
		w.onFinding(f)
	}
}

// applyActions carries out the configured actions for new findings. The caller must hold the lock.
func (w *AnomalyWatcher) applyActions() []AnomalyFinding {
	found := w.d.takeFindings()
	for _, f := range found {
		w.addWarning(f)
		if f.Action == Approve || f.Action == Stop {
			w.holdPrincipal(f)
		}
		if f.Action == Stop && !f.ended && f.Execution != "" {
			w.stopped.removeKey(f.Execution)
			w.stopped.putValue(f.Execution, core.Errorf(
				core.KindPolicy, "anomaly",
				"this execution was stopped because of unusual behaviour: %s (anomalies.%s: stop)", f.Words, f.Kind,
			).
				WithHint("do not try it another way; tell the person what it is needed for. Further calls with effects need a person's approval"))
		}
	}
	return found
}

// maxWarnings bounds the number of anomaly warnings that are stored for the Outcome of one execution.
const maxWarnings = 5

func (w *AnomalyWatcher) addWarning(f AnomalyFinding) {
	if f.Execution == "" {
		return
	}
	said, _ := w.warnings.getValue(f.Execution)
	if len(said) < maxWarnings {
		w.warnings.removeKey(f.Execution)
		w.warnings.putValue(f.Execution, append(said, "unusual ("+string(f.Kind)+"): "+f.Words))
	}
}

// holdPrincipal makes the calls of a principal require a person's approval for a while. The number of principals to
// which this applies is bounded.
func (w *AnomalyWatcher) holdPrincipal(f AnomalyFinding) {
	w.removeExpired(f.At)
	all := slices.DeleteFunc(w.held[f.Principal], func(h activeHold) bool { return h.kind == f.Kind })
	w.held[f.Principal] = append(all, activeHold{f.Kind, f.Words, f.At.Add(Cooldown)})
}

// removeExpired removes the principals whose calls no longer need approval from the map held, if the map is large.
func (w *AnomalyWatcher) removeExpired(now time.Time) {
	if len(w.held) < 2*w.d.o.Limits.Principals {
		return
	}
	for name, all := range w.held {
		if !slices.ContainsFunc(all, func(h activeHold) bool { return h.until.After(now) }) {
			delete(w.held, name)
		}
	}
}

func (w *AnomalyWatcher) liftHold(q holdQuestion) {
	all := slices.DeleteFunc(w.held[q.principal], func(h activeHold) bool { return slices.Contains(q.kinds, string(h.kind)) })
	if w.held[q.principal] = all; len(all) == 0 {
		delete(w.held, q.principal)
	}
}

func (w *AnomalyWatcher) judgementFor(e core.AuditEvent) (j Judgement) {
	if refused, ok := w.stopped.getValue(e.Execution); ok {
		return Judgement{Refused: refused.AtTool(e.Server, e.Tool)}
	}
	var kinds, rules []string
	for _, h := range w.held[e.Principal] {
		if h.until.After(e.At) {
			kinds, rules = append(kinds, string(h.kind)), append(rules, "anomalies."+string(h.kind)+": "+h.words)
		}
	}
	return Judgement{Kinds: strings.Join(kinds, ","), Rule: strings.Join(rules, "; ")}
}

// Stopped returns an error if the execution was stopped because of a finding and may make no further calls. Otherwise
// it returns nil.
func (w *AnomalyWatcher) Stopped(execution string) *core.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	refused, _ := w.stopped.getValue(execution)
	return refused
}

// Warnings returns the warnings for the Outcome of an execution. Each is returned only once.
func (w *AnomalyWatcher) Warnings(execution string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, _ := w.warnings.getValue(execution)
	w.warnings.removeKey(execution)
	return said
}
