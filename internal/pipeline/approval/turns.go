package approval

import (
	"context"
	"time"
)

// GatherTime is how long a question waits before it is shown to a person, so that questions that are asked at the same
// time are shown together.
const GatherTime = 20 * time.Millisecond

// channelTurns lets a channel, such as a webhook, show one question at a time for each tool of an execution. Questions
// that are asked meanwhile wait, and are shown together when the shown one is decided.
type channelTurns struct {
	asked map[string]bool // ids that were shown
	turn  chan struct{}   // holds one token
}

// turnKey names the questions that take turns with each other.
type turnKey struct {
	execution string
	toolKey
	channel int // in also
}

func (t *ApprovalTable) turnsOf(key turnKey) *channelTurns {
	t.mu.Lock()
	defer t.mu.Unlock()
	turns := t.turns[key]
	if turns == nil {
		turns = &channelTurns{asked: map[string]bool{}, turn: make(chan struct{}, 1)}
		turns.turn <- struct{}{}
		t.turns[key] = turns
	}
	return turns
}

// askInTurn asks a question through one of the channels for all questions, together with those that a person can
// decide with it. It does not ask again what was already shown together with another question.
func (t *ApprovalTable) askInTurn(ctx context.Context, channel int, e *tableEntry) {
	turns := t.turnsOf(turnKey{e.Execution, toolOf(e.Question), channel})
	select {
	case <-turns.turn:
	case <-e.decided:
		return
	case <-ctx.Done():
		return
	}
	defer func() { turns.turn <- struct{}{} }()
	if turns.asked[e.ID] || !e.gather(ctx) {
		return
	}
	shown, waits := t.FindGroup(e.ID)
	if !waits {
		return
	}
	ids := append([]string{shown.ID}, shown.Same...)
	for _, id := range ids {
		turns.asked[id] = true
	}
	if t.askThrough(ctx, t.also[channel], e, shown) {
		return
	}
	for _, id := range ids { // those that still wait are shown again
		delete(turns.asked, id)
	}
}

// gather waits for GatherTime. It returns false if the question was decided or ctx has ended.
func (e *tableEntry) gather(ctx context.Context) bool {
	timer := time.NewTimer(GatherTime)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-e.decided:
	case <-ctx.Done():
	}
	return false
}
