package anomaly

import (
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
)

// Watch describes what stands beside the record: it is told of every event, and asked before calls with effects
// leave. It is safe for concurrent use.
type Watch struct {
	tell func(Finding)

	mu        sync.Mutex
	d         *detector
	held      map[string][]held         // by principal
	questions *lru[string, question]    // by id: what a yes lifts
	said      *lru[string, []string]    // by execution: what its Outcome warns of
	stopped   *lru[string, *core.Error] // by execution
}

// held describes what is done about a finding for a while.
type held struct {
	kind  Kind
	words string
	until time.Time
}

type question struct {
	principal string
	kinds     []string
}

// New watches. tell is given each finding that is not Off, one after the other or
// concurrently; it may be nil.
func New(o Options, tell func(Finding)) *Watch {
	d := newDetector(o)
	if tell == nil {
		tell = func(Finding) {}
	}
	n := d.o.Limits.Executions
	return &Watch{
		tell: tell, d: d, held: map[string][]held{},
		questions: newLRU[string, question](n), said: newLRU[string, []string](n), stopped: newLRU[string, *core.Error](n),
	}
}

// Judgement describes what becomes of a call.
type Judgement struct {
	Refused *core.Error // it must not leave
	// Kinds are those of the findings for which a person is asked, with commas; "" if nobody
	// is. Rule is why, in words.
	Kinds, Rule string
}

// Judge is about a call with effects that is about to leave: an event of the kind EventCall
// with the time, and the fact "arguments_bytes". The call counts from now on; that it has left is not told again.
func (w *Watch) Judge(e core.Event) Judgement {
	w.mu.Lock()
	w.d.judge(e)
	found := w.settle()
	j := w.judgement(e)
	w.mu.Unlock()
	w.each(found)
	return j
}

// Seen is told of everything that happens.
func (w *Watch) Seen(e core.Event) {
	w.mu.Lock()
	w.observe(e)
	found := w.settle()
	w.mu.Unlock()
	w.each(found)
}

// Replay is told of what happened before, in order. Nobody is told of what is found, but what was done
// about it is done again.
func (w *Watch) Replay(e core.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.Kind == core.EventCall && e.Effect != core.EffectRead.String() {
		w.d.judge(e)
	} else {
		w.observe(e)
	}
	w.settle()
	w.said.remove(e.Execution)
	if e.Kind == core.EventAnomaly {
		w.recall(e)
	}
}

// recall does again what was done about a finding that the record tells of: that a call was
// about to leave may be told by nothing else.
func (w *Watch) recall(e core.Event) {
	f := Finding{Kind: Kind(e.Status), At: e.At, Principal: e.Principal, Server: e.Server, Tool: e.Tool}
	f.Words = "found at " + e.At.In(w.d.o.Zone).Format(time.DateTime) + ", before the engine was started anew"
	f.Skill, _ = e.Facts["skill"].(string)
	now := number(e.Facts["now"])
	if t := w.d.toldOf(f); t.at < seconds(e) || t.measure < now {
		t.at, t.measure = seconds(e), now
	}
	action, _ := e.Facts["action"].(string)
	known := slices.ContainsFunc(w.held[f.Principal], func(h held) bool { return h.kind == f.Kind && h.until.After(f.At) })
	if !known && (Action(action) == Approve || Action(action) == Stop) {
		w.hold(f)
	}
}

func (w *Watch) observe(e core.Event) {
	w.d.event(e)
	id, _ := e.Facts["question"].(string)
	switch e.Kind {
	case core.EventQuestion:
		if kinds, _ := e.Facts["anomaly"].(string); kinds != "" {
			w.questions.remove(id)
			w.questions.put(id, question{e.Principal, strings.Split(kinds, ",")})
		}
	case core.EventDecision:
		if q, ok := w.questions.get(id); ok {
			w.questions.remove(id)
			if e.Status == "approved" {
				w.lift(q)
			}
		}
	case core.EventEnd:
		w.stopped.remove(e.Execution)
	}
}

func (w *Watch) each(found []Finding) {
	for _, f := range found {
		w.tell(f)
	}
}

// settle does what is to be done about what was found. The lock is held.
func (w *Watch) settle() []Finding {
	found := w.d.take()
	for _, f := range found {
		w.warn(f)
		if f.Action == Approve || f.Action == Stop {
			w.hold(f)
		}
		if f.Action == Stop && !f.ended && f.Execution != "" {
			w.stopped.remove(f.Execution)
			w.stopped.put(f.Execution, core.Errorf(core.KindPolicy, "anomaly", "this execution was stopped, since it does something unusual: %s (anomalies.%s: stop)", f.Words, f.Kind).
				WithHint("do not try it another way; tell the person what it is needed for. Further calls with effects need a person's yes"))
		}
	}
	return found
}

// maxSaid bounds the warnings of one Outcome.
const maxSaid = 5

func (w *Watch) warn(f Finding) {
	if f.Execution == "" {
		return
	}
	said, _ := w.said.get(f.Execution)
	if len(said) < maxSaid {
		w.said.remove(f.Execution)
		w.said.put(f.Execution, append(said, "unusual ("+string(f.Kind)+"): "+f.Words))
	}
}

// hold has calls of a principal wait for a person. As many principals are held as are known.
func (w *Watch) hold(f Finding) {
	w.sweep(f.At)
	all := slices.DeleteFunc(w.held[f.Principal], func(h held) bool { return h.kind == f.Kind })
	w.held[f.Principal] = append(all, held{f.Kind, f.Words, f.At.Add(Cooldown)})
}

// sweep forgets what is over, once there is much.
func (w *Watch) sweep(now time.Time) {
	if len(w.held) < 2*w.d.o.Limits.Principals {
		return
	}
	for name, all := range w.held {
		if !slices.ContainsFunc(all, func(h held) bool { return h.until.After(now) }) {
			delete(w.held, name)
		}
	}
}

func (w *Watch) lift(q question) {
	all := slices.DeleteFunc(w.held[q.principal], func(h held) bool { return slices.Contains(q.kinds, string(h.kind)) })
	if w.held[q.principal] = all; len(all) == 0 {
		delete(w.held, q.principal)
	}
}

func (w *Watch) judgement(e core.Event) (j Judgement) {
	if refused, ok := w.stopped.get(e.Execution); ok {
		return Judgement{Refused: refused.At(e.Server, e.Tool)}
	}
	var kinds, rules []string
	for _, h := range w.held[e.Principal] {
		if h.until.After(e.At) {
			kinds, rules = append(kinds, string(h.kind)), append(rules, "anomalies."+string(h.kind)+": "+h.words)
		}
	}
	return Judgement{Kinds: strings.Join(kinds, ","), Rule: strings.Join(rules, "; ")}
}

// Stopped is why an execution may not call anything any more, nil if it may.
func (w *Watch) Stopped(execution string) *core.Error {
	w.mu.Lock()
	defer w.mu.Unlock()
	refused, _ := w.stopped.get(execution)
	return refused
}

// Warnings returns what the Outcome of an execution warns of, each once.
func (w *Watch) Warnings(execution string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	said, _ := w.said.get(execution)
	w.said.remove(execution)
	return said
}
