package approval

import (
	"cmp"
	"fmt"
	"time"

	"retort/internal/core"
)

// QuestionBounds limits how often a person is asked. For a field with the value 0, a default applies.
type QuestionBounds struct {
	Questions int // of one execution; 50 if 0
	Declined  int // denied questions of one execution in a row, after which it may not ask again; 5 if 0
}

// WithDefaults returns b with defaults for its zero fields.
func (b QuestionBounds) WithDefaults() QuestionBounds {
	return QuestionBounds{cmp.Or(b.Questions, core.DefaultQuestions), cmp.Or(b.Declined, core.DefaultDeclined)}
}

// Multiples of the bound on questions. Within an hour, a session may ask sessionShare times as many questions as one
// execution. A principal may ask twice as many as a session, because programs choose the names of their sessions.
const (
	sessionShare  = 10
	ownerShare    = 2 * sessionShare
	sessionWindow = time.Hour
	declinedShare = 3      // times the denials in a row after which one program may not ask: for one tool in all programs of a user
	maxSessions   = 10_000 // whose questions are counted at the same time
)

// SetBounds sets the bounds on questions. It must be called before the first question.
func (t *ApprovalTable) SetBounds(b QuestionBounds) { t.bounds = b.WithDefaults() }

// questionHistory counts the questions and denials of one execution.
type questionHistory struct {
	asked    int
	declined int             // in a row
	denied   map[string]bool // by the digest of the question
	ofTool   map[toolKey]int // denials of a tool in a row, whatever was approved of other tools
}

// toolKey names the tool that a question is about. It is empty if the question is about a program.
type toolKey struct{ server, tool string }

func toolOf(q core.Question) toolKey { return toolKey{q.Server, q.Tool} }

// denialKey names a principal and a tool whose denied questions are counted together.
type denialKey struct {
	principal string
	toolKey
}

// denialCount counts the denials that a person has given one after the other, in all executions of a principal. Its
// field since is the time of the first denial.
type denialCount struct {
	since    time.Time
	declined int
}

// questionWindow counts the questions that a session has asked in a limited time, which began at since.
type questionWindow struct {
	since time.Time
	asked int
}

// sessionKey says which questions are counted together: the questions of one session, or the questions of all
// sessions of a principal.
type sessionKey struct {
	principal, name string
	all             bool // all sessions of the principal
}

// groupWindow is the time after a question in which others that are shown together with it do not count.
const groupWindow = time.Second

// joinsGroup reports whether a new question will be shown together with an earlier one. The earlier question counts
// towards the bounds, was asked less than groupWindow ago, and has no answer yet. The caller must hold mu.
func (t *ApprovalTable) joinsGroup(q core.Question, now time.Time) bool {
	for _, other := range t.waiting {
		if other.counted && !other.settled && other.Execution == q.Execution && other.Tool == q.Tool &&
			now.Sub(other.Created) < groupWindow && other.IsAlike(q) {
			return true
		}
	}
	return false
}

// countQuestion counts a question that is about to be asked, or returns the reason why it must not be asked. A
// question that is shown together with another one is not counted. The caller must hold mu.
func (t *ApprovalTable) countQuestion(e *tableEntry, now time.Time) *core.Error {
	q, digest := e.Question, e.Digest
	h := t.histories[q.Execution]
	if h == nil {
		h = &questionHistory{denied: map[string]bool{}, ofTool: map[toolKey]int{}}
		t.histories[q.Execution] = h
	}
	owner, w := t.windowOf(sessionKey{principal: q.Principal, all: true}, now), t.windowOf(
		sessionKey{principal: q.Principal, name: q.Session}, now,
	)
	switch {
	case h.denied[digest]:
		return unaskedError(q, "a person has already denied exactly this request")
	case h.declined >= t.bounds.Declined:
		return unaskedError(q, "a person has denied %d requests in a row, and is not asked about this program any more", h.declined)
	case h.ofTool[toolOf(q)] >= t.bounds.Declined:
		return unaskedError(q, "a person has denied this tool %d times in a row, and is not asked about it any more", h.ofTool[toolOf(q)])
	case t.denialsOf(q, now) >= declinedShare*t.bounds.Declined:
		return unaskedError(
			q,
			"a person has denied this %d times in a row within an hour, in several programs, and is not asked again before the hour is over (three times approval.declined)",
			t.denialsOf(q, now),
		)
	case t.joinsGroup(q, now):
		return nil
	case h.asked >= t.bounds.Questions:
		return unaskedError(q, "a person was already asked %d times about this program, which is the maximum (approval.questions)", h.asked)
	case w.asked >= sessionShare*t.bounds.Questions:
		return unaskedError(
			q,
			"a person was already asked %d times about this session within an hour, which is the maximum (ten times approval.questions)",
			w.asked,
		)
	case owner.asked >= ownerShare*t.bounds.Questions:
		return unaskedError(
			q,
			"a person was already asked %d times within an hour about sessions of the same user, which is the maximum (twenty times approval.questions)",
			owner.asked,
		)
	}
	e.counted = true
	h.asked++
	w.asked++
	owner.asked++
	return nil
}

// windowOf returns the counts of a session in the current hour. The caller must hold mu.
func (t *ApprovalTable) windowOf(s sessionKey, now time.Time) *questionWindow {
	w := t.windows[s]
	if w != nil && now.Sub(w.since) < sessionWindow {
		return w
	}
	if len(t.windows) >= maxSessions {
		for other, w := range t.windows {
			if now.Sub(w.since) >= sessionWindow || len(t.windows) >= maxSessions && !other.all {
				delete(t.windows, other)
			}
		}
	}
	w = &questionWindow{since: now}
	t.windows[s] = w
	return w
}

func unaskedError(q core.Question, format string, args ...any) *core.Error {
	e := tableEntry{Approval: core.Approval{Question: q}}
	return refusalError(&e, "%s", fmt.Sprintf(format, args...))
}

// denialsOf returns how often the tool of a question was denied in a row within the last hour. The caller must hold mu.
func (t *ApprovalTable) denialsOf(q core.Question, now time.Time) int {
	d := t.denials[denialKey{q.Principal, toolOf(q)}]
	if d == nil || now.Sub(d.since) >= sessionWindow {
		return 0
	}
	return d.declined
}

// countDenial counts a person's denial of a question about a tool, across all executions of a principal. If the
// person has approved instead, it resets the count. The caller must hold mu.
func (t *ApprovalTable) countDenial(q core.Question, approved bool, now time.Time) {
	key := denialKey{q.Principal, toolOf(q)}
	if approved {
		delete(t.denials, key)
		return
	}
	if t.denialsOf(q, now) == 0 {
		for other, d := range t.denials {
			if now.Sub(d.since) >= sessionWindow {
				delete(t.denials, other)
			}
		}
		t.denials[key] = &denialCount{since: now}
	}
	t.denials[key].declined++
}

// noteDecision counts a person's decision. A denial also denies all equal waiting questions of the same execution.
// After several denials in a row, all waiting questions of the execution are denied. The caller must hold mu.
func (t *ApprovalTable) noteDecision(e *tableEntry) {
	h := t.histories[e.Execution]
	if h == nil {
		return
	}
	if e.answer.Approve {
		h.declined = 0
		delete(h.ofTool, toolOf(e.Question))
		return
	}
	h.declined++
	h.ofTool[toolOf(e.Question)]++
	h.denied[e.Digest] = true
	enough, ofTool := h.declined >= t.bounds.Declined, h.ofTool[toolOf(e.Question)] >= t.bounds.Declined
	for _, other := range t.waiting {
		same := other.Digest == e.Digest || ofTool && toolOf(other.Question) == toolOf(e.Question)
		if other.Execution == e.Execution && !other.settled && (enough || same) {
			other.setAnswer(core.ApprovalAnswer{Note: e.answer.Note, By: e.answer.By})
		}
	}
}
