package pipeline

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

// Bounds on the ids that an Outcome lists for the calls of one tool.
const (
	maxIDs      = 20
	maxIDLength = 40 // bytes; longer values are left out
)

// madeCalls counts the calls with effects that servers have answered without an error, and the approvals that people
// gave for calls. It is safe for concurrent use.
type madeCalls struct {
	mu        sync.Mutex
	calls     []core.SentCall
	approvals []core.Approval
}

// addCall counts a call. The argument shown holds the call's arguments as a model may see them.
func (m *madeCalls) addCall(c core.ToolCall, effect core.EffectKind, shown json.RawMessage) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.calls, func(o core.SentCall) bool { return o.Server == c.Server && o.Tool == c.Tool })
	if i < 0 {
		i = len(m.calls)
		m.calls = append(m.calls, core.SentCall{Server: c.Server, Tool: c.Tool})
	}
	one := &m.calls[i]
	one.Count++
	if name := effect.String(); one.Effect != core.EffectIrreversible.String() {
		one.Effect = name
	}
	for _, id := range shortIDs(shown) {
		if len(one.IDs) < maxIDs && !slices.Contains(one.IDs, id) {
			one.IDs = append(one.IDs, id)
		}
	}
}

// addApproval counts a call, or a program, that a person approved. The answer says how.
func (m *madeCalls) addApproval(about core.Question, answer core.ApprovalAnswer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i := slices.IndexFunc(m.approvals, func(a core.Approval) bool {
		return a.Server == about.Server && a.Tool == about.Tool && a.By == answer.By && a.Scope == answer.Scope
	})
	if i < 0 {
		i = len(m.approvals)
		m.approvals = append(m.approvals, core.Approval{By: answer.By, Scope: answer.Scope, Question: about})
	}
	m.approvals[i].Count++
}

// addTo adds what was counted to the Outcome of an execution. It adds the approvals unless the Outcome is pending. It
// adds the calls unless the status is ok, because the summary then has their number.
func (m *madeCalls) addTo(o core.Outcome) core.Outcome {
	m.mu.Lock()
	defer m.mu.Unlock()
	if o.Status != core.StatusOK {
		for _, c := range m.calls {
			c.IDs = slices.Clone(c.IDs)
			o.Calls = append(o.Calls, c)
		}
	}
	if o.Status != core.StatusPendingApproval {
		o.Approvals = append(o.Approvals, m.approvals...)
	}
	return o
}

// shortIDs returns the short ids in the arguments of a call: strings and whole numbers whose name says that they
// identify something.
func shortIDs(arguments json.RawMessage) (ids []string) {
	var members map[string]json.RawMessage
	if json.Unmarshal(arguments, &members) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !core.IsIDName(name) {
			continue
		}
		var several []json.RawMessage
		if json.Unmarshal(members[name], &several) != nil {
			several = []json.RawMessage{members[name]}
		}
		for _, raw := range several[:min(len(several), maxIDs)] {
			if id, ok := shortID(raw); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// shortID returns a value as an id. ok is false unless it is a string or a whole number of at most maxIDLength bytes.
func shortID(raw json.RawMessage) (id string, ok bool) {
	if json.Unmarshal(raw, &id) != nil {
		if id = string(bytes.TrimSpace(raw)); strings.Trim(id, "0123456789") != "" {
			return "", false
		}
	}
	return core.LegibleLine(id), id != "" && len(id) <= maxIDLength
}
