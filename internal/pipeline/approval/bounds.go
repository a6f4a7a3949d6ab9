package approval

import (
	"cmp"
	"fmt"
	"time"

	"retort/internal/core"
)

// Bounds limits how often a person is asked. The zero value stands for small defaults.
type Bounds struct {
	Questions int // of one execution; 50 if 0
	Declined  int // denied questions of one execution in a row, after which it may not ask again; 5 if 0
}

// Complete returns b with defaults for its zero fields.
func (b Bounds) Complete() Bounds {
	return Bounds{cmp.Or(b.Questions, 50), cmp.Or(b.Declined, 5)}
}

// A session may ask sessionShare times as many questions within an hour as one execution may. A principal may ask twice
// as many as a session, because programs choose the names of their sessions.
const (
	sessionShare  = 10
	ownerShare    = 2 * sessionShare
	sessionWindow = time.Hour
	maxSessions   = 10_000 // whose questions are counted at the same time
)

// Bound sets the bounds on questions. It must be called before the first question.
func (t *Table) Bound(b Bounds) { t.bounds = b.Complete() }

// history counts the questions of one execution.
type history struct {
	asked    int
	declined int             // in a row
	denied   map[string]bool // by the digest of the question
}

// window counts a session's questions since a time.
type window struct {
	since time.Time
	asked int
}

// session identifies the session whose questions are counted together.
type session struct {
	principal, name string
	all             bool // all sessions of the principal
}

// count counts a question that is about to be asked, or returns why it must not be asked. The caller holds mu.
func (t *Table) count(q core.Question, digest string, now time.Time) *core.Error {
	h := t.histories[q.Execution]
	if h == nil {
		h = &history{denied: map[string]bool{}}
		t.histories[q.Execution] = h
	}
	owner, w := t.windowOf(session{principal: q.Principal, all: true}, now), t.windowOf(session{principal: q.Principal, name: q.Session}, now)
	switch {
	case h.denied[digest]:
		return unasked(q, "a person has said no to exactly this before")
	case h.declined >= t.bounds.Declined:
		return unasked(q, "a person has said no %d times in a row, and is not asked about this program any more", h.declined)
	case h.asked >= t.bounds.Questions:
		return unasked(q, "a person was asked %d times about this program, and is not asked more often (approval.questions)", h.asked)
	case w.asked >= sessionShare*t.bounds.Questions:
		return unasked(q, "a person was asked %d times about this session within an hour, and is not asked more often (ten times approval.questions)", w.asked)
	case owner.asked >= ownerShare*t.bounds.Questions:
		return unasked(q, "a person was asked %d times within an hour about sessions of the same user, and is not asked more often (twenty times approval.questions)", owner.asked)
	}
	h.asked++
	w.asked++
	owner.asked++
	return nil
}

// windowOf returns the counts of a session. The caller holds mu.
func (t *Table) windowOf(s session, now time.Time) *window {
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
	w = &window{since: now}
	t.windows[s] = w
	return w
}

func unasked(q core.Question, format string, args ...any) *core.Error {
	e := entry{Approval: core.Approval{Question: q}}
	return refusal(&e, "%s", fmt.Sprintf(format, args...))
}

// judged notes a person's decision. A denial also denies all equal questions of the execution that wait. After
// several denials in a row, everything that waits is denied. The caller holds mu.
func (t *Table) judged(e *entry) {
	h := t.histories[e.Execution]
	if h == nil {
		return
	}
	if e.answer.Approve {
		h.declined = 0
		return
	}
	h.declined++
	h.denied[e.Digest] = true
	enough := h.declined >= t.bounds.Declined
	for _, other := range t.waiting {
		if other.Execution == e.Execution && !other.settled && (enough || other.Digest == e.Digest) {
			other.settle(core.Answer{Note: e.answer.Note, By: e.answer.By})
		}
	}
}
