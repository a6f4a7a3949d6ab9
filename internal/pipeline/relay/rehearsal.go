package relay

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"time"

	"retort/internal/base/canonjson"
	"retort/internal/base/jsonschema"
	"retort/internal/core"
)

// Bounds on the answers that a rehearsal keeps for the real run of the program.
const (
	maxAnswerAge   = time.Minute // when it is reused
	maxAnswerBytes = 2 << 20     // of all together; they do not count towards the engine's memory budget
)

// Rehearsal carries the answers of calls that only read from the rehearsal of a program to its real run, so that servers
// are not asked twice. The rehearsal records these answers. In the real run, a call of the same tool with the same
// arguments gets the recorded answer. Repeated calls get their answers in the order in which they were recorded.
// Recording and reuse end at the first call with effects of their run, because later answers can depend on that call. It
// is safe for concurrent use.
type Rehearsal struct {
	mark *jsonschema.PlaceholderMark

	mu       sync.Mutex
	real     bool                    // the program really runs
	changed  bool                    // a call with effects was made in this run, or recorded
	nulls    bool                    // the first of these calls has null in its arguments
	recorded int                     // number of calls with effects that the rehearsal has recorded
	answers  map[string][]keptAnswer // by call
	size     int                     // of all answers, in bytes
}

// keptAnswer is the answer of a call in a rehearsal.
type keptAnswer struct {
	value json.RawMessage
	at    time.Time
}

// NewRehearsal returns a Rehearsal that begins with the run in which the program has no effects.
func NewRehearsal() *Rehearsal {
	return &Rehearsal{mark: jsonschema.NewPlaceholderMark(rand.Uint64()), answers: map[string][]keptAnswer{}}
}

// BeginRealRun notes that the program now really runs.
func (h *Rehearsal) BeginRealRun() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.real, h.changed = true, false
}

// guesses matches what programs make from a placeholder that lacks a value: null from a computation, and two texts.
var guesses = regexp.MustCompile(`[:\[,]\s*null\b|undefined|\[object Object\]|\bNaN\b`)

// DependsOnEffects reports whether the arguments of a call with effects seem to depend on the result of a call that the
// rehearsal did not make: they contain a mark, or were probably computed from a missing value. They are not known before
// the real run.
func (h *Rehearsal) DependsOnEffects(arguments json.RawMessage) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	guessed := guesses.Match(arguments)
	if h.recorded <= 1 {
		h.nulls = guessed
		guessed = false
	}
	return h.mark.IsIn(arguments) || guessed && !h.nulls
}

// placeholderFor returns the value that a program gets in place of the result of a call that was not made.
func (h *Rehearsal) placeholderFor(t *core.Tool) json.RawMessage {
	if h == nil {
		return jsonschema.PlaceholderFor(t.AnswerSchema())
	}
	return h.mark.PlaceholderFor(t.AnswerSchema())
}

// readOrReuse makes a call that only reads. In the real run, it returns the answer recorded in the rehearsal instead, if
// there is one. In a rehearsal, it does not send a call whose arguments contain a placeholder, and returns a placeholder as
// the answer. If fresh is true, no answer is recorded or reused.
func (h *Rehearsal) readOrReuse(t *core.Tool, c core.ToolCall, fresh bool, send func() (core.CallResult, error)) (core.CallResult, error) {
	if h == nil {
		return send()
	}
	key, real := callKey(t, c), h.isReal()
	switch {
	case !real && h.mark.IsIn(c.Arguments):
		return core.CallResult{Value: h.placeholderFor(t), Provisional: true}, nil
	case fresh:
		return send()
	case real:
		if value, ok := h.takeAnswer(key, time.Now()); ok {
			return core.CallResult{Value: value, Provisional: true}, nil
		}
		return send()
	}
	result, err := send()
	if err == nil && !result.SavedFiles {
		h.keepAnswer(key, keptAnswer{result.Value, time.Now()})
	}
	return result, err
}

func (h *Rehearsal) isReal() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.real
}

// callKey identifies calls that are equal: the same tool with the same definition and the same arguments.
func callKey(t *core.Tool, c core.ToolCall) string {
	return strings.Join([]string{c.Server, c.Tool, t.Pin, string(canonjson.MarshalOrKeep(c.Arguments))}, "\x00")
}

func (h *Rehearsal) keepAnswer(key string, a keptAnswer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.changed && h.answers != nil && h.size+len(a.value) <= maxAnswerBytes {
		h.size += len(a.value)
		h.answers[key] = append(h.answers[key], a)
	}
}

// takeAnswer returns the next kept answer of a call, and removes it. ok is false if there is no answer that is recent
// enough.
func (h *Rehearsal) takeAnswer(key string, now time.Time) (value json.RawMessage, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.answers[key]) == 0 {
		return nil, false
	}
	next := h.answers[key][0]
	h.answers[key] = h.answers[key][1:]
	age := now.Sub(next.at)
	return next.value, age >= 0 && age <= maxAnswerAge
}

// End removes the kept answers, because the program has ended. h may be nil.
func (h *Rehearsal) End() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answers = nil
}

// endReuse removes the kept answers and keeps no more, because a call with effects has been recorded or is about to be
// sent. Later answers can depend on it.
func (h *Rehearsal) endReuse() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.real {
		h.answers = nil
	}
	h.changed = true
	h.recorded++
}
