package jobs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// RunFunc runs a job and returns its Outcome. It must return soon after ctx is done.
type RunFunc func(ctx context.Context, t *JobTurn) core.Outcome

// JobTurn gives a RunFunc access to the job that it runs.
type JobTurn struct {
	Task    core.JobState
	Payload json.RawMessage
	queue   *Queue
	entry   *jobEntry
	waits   bool
}

// SetProgress reports the progress of the job. It does not block.
func (t *JobTurn) SetProgress(p core.TaskProgress) {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	p.At = time.Now()
	t.entry.Progress = &p
	t.queue.wakeWaiters()
}

// SetWaiting records whether the job waits for a person's decision. While it waits, another job can use its slot.
func (t *JobTurn) SetWaiting(waits bool) {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if waits == t.waits {
		return
	}
	t.waits = waits
	if waits {
		q.turns.releaseSlot(t.Task.Principal)
		t.entry.Status = core.TaskPending
	} else {
		q.turns.takeSlot(t.Task.Principal)
		t.entry.Status = core.TaskRunning
	}
	q.wakeWaiters()
}

// WorkOnAll makes this engine run all queued jobs with run. If another engine already runs them, this engine begins
// when that one ends.
func (q *Queue) WorkOnAll(run RunFunc) { q.WorkOn("", run) }

// WorkOn makes this engine run the job with this id. Otherwise it works like WorkOnAll. Each further call adds a job.
// All jobs are run by the run function of the first call.
func (q *Queue) WorkOn(id string, run RunFunc) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return
	}
	if q.run == nil {
		q.run = run
		q.keeper.Go(q.attendLoop)
	}
	q.all = q.all || id == ""
	if !q.all {
		q.only[id] = true
	}
	q.wakeWaiters()
}

// attendLoop runs the queue until it is closed. It reads changes, ends overdue jobs, starts waiting jobs and removes
// expired jobs.
func (q *Queue) attendLoop() {
	const housekeeping = time.Minute
	var swept time.Time
	for {
		q.mu.Lock()
		pause := pollIdle
		if q.release != nil || q.takeOwnership() {
			if err := q.readFolder(); err != nil {
				q.o.Log.Warn("the queue cannot be read", "error", err)
			}
			if time.Since(swept) > housekeeping {
				q.removeExpired(time.Now())
				swept = time.Now()
			}
			q.endOverdue(time.Now())
			q.saveUnsaved()
			q.startJobs()
			if len(q.turns.running) > 0 {
				pause = pollBusy
			}
		}
		q.mu.Unlock()
		tick := time.NewTimer(pause)
		select {
		case <-q.ctx.Done():
			tick.Stop()
			return
		case <-q.wake:
		case <-tick.C:
		}
		tick.Stop()
	}
}

// takeOwnership tries to make this engine the one that runs the jobs. It returns false if another engine already runs
// them. It ends the jobs that were running when the previous engine died. The caller must hold mu.
func (q *Queue) takeOwnership() bool {
	release, err := seal.Lock(q.lockPath(), 0)
	if errors.Is(err, seal.ErrIrregular) && !q.warned {
		q.warned = true
		q.o.Log.Warn("no engine can work on the queue; move away the file in the place of its lock", "error", err)
	}
	if err != nil {
		return false
	}
	if err := q.readFolder(); err != nil {
		release()
		return false
	}
	q.release = release
	for _, e := range sortBySubmission(slices.Collect(maps.Values(q.tasks))) {
		if !e.Status.HasEnded() && e.cancel == nil && (e.Status != core.TaskQueued || q.shelf.hasBegun(e.ID)) {
			q.endJob(e, q.lostOutcome(e.JobState))
		}
	}
	return true
}

func (q *Queue) releaseOwnership() {
	q.saveUnsaved()
	q.release()
	q.release = nil
}

func (q *Queue) lostOutcome(t core.JobState) core.Outcome {
	if q.o.Lost != nil {
		return q.o.Lost(t)
	}
	return core.Outcome{ExecutionID: t.ID, Status: core.StatusOutcomeUnknown, Error: core.Errorf(
		core.KindInternal, "queue", "the engine ended while the job was running",
	).
		WithHint("check its effects before you submit it again; Retort did not repeat anything")}
}

// ensureCurrent reads the changes that other engines have made to the queue's files. It does nothing if this engine
// runs the jobs, because attendLoop then reads the changes regularly. The caller must hold mu.
func (q *Queue) ensureCurrent() error {
	if q.release != nil {
		return nil // attend reads new jobs soon
	}
	return q.readFolder()
}

// readFolder reads the changes that other engines have made to the queue's files. The caller must hold mu.
func (q *Queue) readFolder() error {
	ids, cancelled, err := q.shelf.listJobs()
	if err != nil {
		return core.Errorf(core.KindInternal, "queue", "the queue cannot be read: %w", err)
	}
	there := make(map[string]bool, len(ids))
	for _, id := range ids {
		there[id] = true
		if e := q.tasks[id]; e == nil || q.release == nil && e.cancel == nil && !e.stamp.IsSame(q.shelf.stampOfJob(id)) {
			q.loadJob(id)
		}
	}
	for id, e := range q.tasks {
		if !there[id] && e.stamp.FileExists() && e.cancel == nil && !e.unsaved {
			q.dropJob(id) // it expired, or its file was removed
		}
	}
	for id := range q.damaged {
		if !there[id] {
			delete(q.damaged, id)
		}
	}
	if q.release != nil {
		q.applyCancels(cancelled)
	}
	return nil
}

// loadJob loads a job that another engine has written. The caller must hold mu.
func (q *Queue) loadJob(id string) {
	stamp := q.shelf.stampOfJob(id)
	if bad, is := q.damaged[id]; is && bad.stamp.IsSame(stamp) {
		return
	}
	r, err := q.shelf.readJob(id)
	if err == nil && r.ID != id {
		err = errors.New("it is the file of another job")
	}
	if err != nil {
		q.markDamaged(id, err, stamp)
		return
	}
	delete(q.damaged, id)
	q.dropJob(id)
	e := &jobEntry{JobState: r.JobState, size: int64(len(r.Payload)), stamp: stamp}
	q.tasks[id] = e
	if !e.Status.HasEnded() {
		q.bytes += e.size
	}
	q.wakeWaiters()
}

// markDamaged records that a file's content is not a valid job. It leaves the file unchanged. The caller must hold mu.
func (q *Queue) markDamaged(id string, why error, stamp seal.FileStamp) {
	q.o.Log.Error("a job cannot be read, so it does not run", "task", id, "error", why)
	q.damaged[id] = damagedJob{why, stamp}
	q.dropJob(id)
}

// applyCancels cancels the jobs that other processes have requested to cancel. The caller must hold mu.
func (q *Queue) applyCancels(ids []string) {
	for _, id := range ids {
		e := q.tasks[id]
		if asked := q.shelf.isAsked(id); asked && e != nil && !e.Status.HasEnded() {
			_ = q.cancelEntry(e)
		}
	}
}

// endOverdue ends the waiting jobs whose deadline has passed. The caller must hold mu.
func (q *Queue) endOverdue(now time.Time) {
	for _, e := range q.tasks {
		if e.Status == core.TaskQueued && e.cancel == nil && !e.held && now.After(e.Deadline) {
			q.endJob(e, deadlineOutcome(e.ID, "before it started"))
		}
	}
}

func deadlineOutcome(id, when string) core.Outcome {
	return core.Outcome{
		ExecutionID: id, Status: core.StatusTimeout,
		Error: core.Errorf(core.KindLimit, "queue", "%w %s", errDeadline, when).WithHint("submit it with a later deadline"),
	}
}

// startJobs starts waiting jobs as long as slots are free. The caller must hold mu.
func (q *Queue) startJobs() {
	for !q.closed {
		e := q.turns.nextEntry(q.listStartable())
		if e == nil {
			return
		}
		ctx, cancel := context.WithCancelCause(q.ctx)
		e.cancel, e.Status, e.Begun = cancel, core.TaskRunning, time.Now()
		q.turns.takeSlot(e.Principal)
		q.working.Go(func() { q.runEntry(ctx, e) })
		q.wakeWaiters()
	}
}

// listStartable returns the jobs that may begin. The caller must hold mu.
func (q *Queue) listStartable() (all []*jobEntry) {
	waits := map[string]int{}
	for _, e := range q.tasks {
		if e.Status == core.TaskQueued && !e.held && e.cancel == nil && (q.all || q.only[e.ID]) {
			all = append(all, e)
			waits[e.Principal]++
		}
	}
	q.turns.trimServed(waits)
	return all
}

// runEntry runs a job after marking it durably as begun.
func (q *Queue) runEntry(ctx context.Context, e *jobEntry) {
	ctx, done := context.WithDeadlineCause(ctx, e.Deadline, errDeadline)
	defer done()
	turn := &JobTurn{queue: q, entry: e}
	o, err := q.prepareJob(ctx, turn)
	if err == nil && o == nil {
		if e.with != nil {
			ctx = e.with(ctx)
		}
		made := q.run(ctx, turn)
		o = &made
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	e.cancel(nil)
	e.cancel = nil
	if !turn.waits {
		q.turns.releaseSlot(e.Principal)
	}
	if err != nil {
		q.postponeJob(e, err)
		return
	}
	q.spent = movingAverage(q.spent, time.Since(e.Begun))
	q.endJob(e, q.adjustOutcome(ctx, e, *o))
}

// postponeJob puts a job that could not begin back into the queue. It is tried again after a second. The caller must
// hold mu.
func (q *Queue) postponeJob(e *jobEntry, why error) {
	const pause = time.Second
	e.Status, e.Begun = core.TaskQueued, time.Time{}
	switch {
	case errors.Is(why, errForeign):
		q.markDamaged(e.ID, why, q.shelf.stampOfJob(e.ID))
		return
	case e.cancelled:
		_ = q.cancelEntry(e)
		return
	}
	q.o.Log.Warn("a job could not start and waits", "task", e.ID, "error", why)
	e.held = true
	time.AfterFunc(pause, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		e.held = false
		q.wakeWaiters()
	})
}

func movingAverage(before, now time.Duration) time.Duration {
	if before == 0 {
		return now
	}
	return (7*before + now) / 8
}

// prepareJob durably records that a job begins. If it returns an error, the job cannot begin now. If it returns an
// Outcome, the job has ended without running.
func (q *Queue) prepareJob(ctx context.Context, t *JobTurn) (*core.Outcome, error) {
	id := t.entry.ID
	r, err := q.shelf.readJob(id)
	if err == nil {
		err = q.ctx.Err() // it stays queued for the next engine
	}
	if err != nil {
		return nil, err
	}
	switch err := q.shelf.markBegun(id); {
	case errors.Is(err, errBegun), err == nil && r.Status != core.TaskQueued:
		o := q.lostOutcome(r.JobState)
		return &o, nil
	case err != nil:
		return nil, err
	}
	begun := r
	begun.Status, begun.Begun, begun.Payload = core.TaskRunning, t.entry.Begun, nil
	t.Task, t.Payload = begun.JobState, r.Payload
	if err = q.recordJob(begun.JobState, "begun", false); err == nil {
		err = q.shelf.writeJob(begun)
	}
	if err == nil && q.ctx.Err() != nil {
		if err = q.shelf.writeJob(r); err == nil {
			err = q.ctx.Err()
		}
	}
	if err != nil {
		q.shelf.removeMark(id) // it has not begun
		return nil, err
	}
	if cause := context.Cause(ctx); cause != nil {
		return &core.Outcome{
			ExecutionID: id, Status: core.StatusCancelled,
			Error: core.Errorf(core.KindCancelled, "queue", "%w before it started", cause),
		}, nil
	}
	return nil, nil
}

// adjustOutcome changes the Outcome of a job that was ended early, so that the Outcome states the reason. The reason
// is the job's deadline, a request to cancel the job, or the end of the engine.
func (q *Queue) adjustOutcome(ctx context.Context, e *jobEntry, o core.Outcome) core.Outcome {
	ended := o.Status == core.StatusCancelled || o.Status == core.StatusPendingApproval
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errDeadline) && ended:
		o.Status, o.Error = core.StatusTimeout, deadlineOutcome(e.ID, "while it ran").Error
	case e.cancelled && o.Status == core.StatusPendingApproval:
		o.Status, o.Error, o.Approvals = core.StatusCancelled, core.Errorf(
			core.KindCancelled, "queue", "%w while it waited for a person", errCancelled,
		), nil
	case q.closed && (ended || o.Status == core.StatusRejected): // the checks may have been closed before
		o.Status = core.StatusCancelled
		o.Warnings = append(o.Warnings, "the engine was closed while it ran")
	}
	return o
}

// endJob sets the Outcome of a job, records it in the audit log and stores it. The caller must hold mu.
func (q *Queue) endJob(e *jobEntry, o core.Outcome) {
	if !e.Status.HasEnded() {
		q.bytes -= e.size
	}
	e.Ended, e.Outcome, e.Progress = time.Now(), &o, nil
	e.Status = core.TaskStatus(o.Status)
	if e.cancelled && o.Status != core.StatusOutcomeUnknown {
		e.Status = core.TaskStatus(core.StatusCancelled)
	}
	if least := e.Ended.Add(minResultAge); e.Expires.Before(least) {
		e.Expires = least
	}
	e.with, e.unsaved = nil, true
	delete(q.only, e.ID)
	_ = q.recordJob(e.JobState, string(e.Status), false) // it has happened
	q.writeResult(e)
	q.wakeWaiters()
}

// writeResult durably stores the end of a job. If that fails, saveUnsaved tries again later. The caller must hold mu.
func (q *Queue) writeResult(e *jobEntry) {
	if err := q.shelf.writeJob(storedJob{JobState: e.JobState}); err != nil {
		q.o.Log.Warn("the result of a job could not be stored yet", "task", e.ID, "error", err)
		return
	}
	e.unsaved, e.stamp = false, q.shelf.stampOfJob(e.ID)
}

// saveUnsaved stores the ended jobs that could not be stored before. The caller must hold mu.
func (q *Queue) saveUnsaved() {
	for _, e := range q.tasks {
		if e.unsaved {
			q.writeResult(e)
		}
	}
}

// removeExpired removes expired jobs. For principals with more than maxEnded ended jobs, it also removes the oldest.
// It does nothing if the clock has jumped. The caller must hold mu.
func (q *Queue) removeExpired(now time.Time) {
	if !seal.IsClockSteady(filepath.Join(q.o.Dir, "clock"), now) {
		return
	}
	q.shelf.removeOldMarks(now)
	ended := map[string][]*jobEntry{}
	for _, e := range sortBySubmission(slices.Collect(maps.Values(q.tasks))) {
		if e.Status.HasEnded() && !e.unsaved {
			ended[e.Principal] = append(ended[e.Principal], e)
		}
	}
	for _, all := range ended {
		for i, e := range all {
			if now.After(e.Expires) || len(all)-i > maxEnded {
				if err := q.shelf.removeJob(e.ID); err != nil {
					q.o.Log.Warn("an old job could not be removed", "task", e.ID, "error", err)
					continue
				}
				q.dropJob(e.ID)
			}
		}
	}
}

func outcomeText(t core.JobState) []byte {
	text, err := json.Marshal(t)
	if err != nil {
		return []byte(fmt.Sprint(t.Outcome))
	}
	return text
}
