package pipeline

import (
	"slices"
	"strings"
	"time"

	"retort/internal/core"
)

// describeWaiting returns the Outcome of an execution that waits for a person. It says what has happened so far, what
// waits, until when, and how to go on. If the same questions were already described, it says only until when they
// wait.
func (x *execution) describeWaiting(waiting []core.Approval) core.Outcome {
	o := core.Outcome{ExecutionID: x.req.ID, Status: core.StatusPendingApproval}
	if run := x.run.Load(); run != nil {
		o = run.describeProgress(o)
	}
	until := lastExpiry(waiting)
	if x.wereShown(waiting) {
		o.Calls = nil
		o.Error = core.Errorf(core.KindPolicy, "approval", "still waiting for a person until %s", until).
			WithHint("call resume_execution again after the person has answered, or with cancel: true to give up")
		return o
	}
	o.Approvals = withoutSeen(core.GroupAlike(waiting))
	o.Error = core.Errorf(core.KindPolicy, "approval", "a person must approve it: %s", actionsOf(waiting)).
		WithHint(
			"ask the person to run this command in a terminal: retort approvals approve %s. Then call resume_execution with the execution_id, which waits for the answer. Do not send the program again: it is paused, and continues in the same place. If nobody answers by %s, the program ends and the waiting calls are not made. To give up, call resume_execution with cancel: true",
			waiting[0].ID, until,
		)
	return o
}

// actionsOf describes what waits for approval, each action once.
func actionsOf(waiting []core.Approval) string {
	var actions []string
	for _, a := range core.GroupAlike(waiting) {
		if action := a.ActionLine(); !slices.Contains(actions, action) {
			actions = append(actions, action)
		}
	}
	return strings.Join(actions, "; ")
}

// lastExpiry returns when the last of the waiting questions expires, as text.
func lastExpiry(waiting []core.Approval) string {
	last := slices.MaxFunc(waiting, func(a, b core.Approval) int { return a.Expires.Compare(b.Expires) })
	return last.Expires.UTC().Format("15:04 MST")
}

// wereShown reports whether the last pending Outcome has already listed exactly these questions, and notes them as
// listed.
func (x *execution) wereShown(waiting []core.Approval) bool {
	var ids []string
	for _, a := range waiting {
		ids = append(ids, a.ID)
	}
	slices.Sort(ids)
	now := strings.Join(ids, " ")
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.shown
	x.shown = now
	return before == now
}

// describeProgress adds to a pending Outcome what the program has done so far.
func (x *programExecution) describeProgress(o core.Outcome) core.Outcome {
	if x.tally != nil {
		o.Stats.ToolCalls, o.Stats.Tools = x.tally.CallCounts()
	}
	o.Stats.DurationMS = float64(time.Since(x.began).Microseconds()) / 1e3
	return x.made.addTo(o)
}

// withoutSeen returns the waiting approvals in the form that the model gets: without the parts that the model has
// already seen, such as the program, and without the parts that only a person may see.
func withoutSeen(waiting []core.Approval) []core.Approval {
	list := make([]core.Approval, len(waiting))
	for i, a := range waiting {
		a = a.ForModel()
		a.Code, a.Skills, a.Effects, a.Change = "", nil, nil, "" // nor what it must not see yet
		a.Login, a.Impact = "", nil                              // they are for a person
		list[i] = a
	}
	return list
}
