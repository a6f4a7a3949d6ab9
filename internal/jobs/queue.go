// Package jobs stores jobs, which are programs and agent tasks (tasks in natural language) that run in the background.
// It keeps them until they run, and their results afterwards. Each job belongs to a principal: the user who submitted
// it, or "" for the user at this machine. Queued jobs continue after a restart. A job that was running when its engine
// (a running instance of Retort) died is never run a second time, because it is unknown how far it got. If several
// engines share a data directory, one of them runs the jobs and the others only submit jobs.
package jobs

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/base/seal"
	"retort/internal/core"
)

// Options configures a Queue. A number that is zero means the default, never "unlimited".
type Options struct {
	Dir string // directory in which the jobs are stored
	// Marks is the directory of the files that mark jobs as begun. Others must not be able to write to it. If it is
	// empty, a folder below Dir is used.
	Marks string
	Key   func() ([]byte, error) // key with which jobs are encrypted
	Slots int                    // maximum number of jobs that run at the same time; 4 if zero
	// Waiting bounds how many jobs of one principal can wait or run; 1000 if zero. All principals together can have
	// four times as many.
	Waiting int
	Keep    time.Duration // how long an ended job is kept, by default and at most; a day if zero
	// Record writes an event of a job to the audit log. If it fails, the job is neither queued nor started. If Record
	// is nil, no events are written.
	Record func(e core.AuditEvent, durable bool) *core.Error
	// Lost returns the Outcome of a job that was running when its engine died. If Lost is nil, the Outcome only
	// states that the result is unknown.
	Lost func(t core.JobState) core.Outcome
	Log  *slog.Logger // log for warnings; nil discards them
}

// Limits that apply to every job.
const (
	maxDeadline     = 7 * 24 * time.Hour
	defaultDeadline = 24 * time.Hour
	minResultAge    = 5 * time.Minute // minimum time for which an ended job is kept
	maxPriority     = 10
	maxPayload      = 1 << 20
	maxLine         = 256 << 20 // maximum total size of the payloads of all waiting jobs, in bytes
	maxEnded        = 1000      // maximum number of ended jobs of one principal; the oldest are removed first
)

// Queue manages the jobs of a data directory. It is safe for concurrent use.
type Queue struct {
	o     Options
	shelf *fileStore

	mu      sync.Mutex
	tasks   map[string]*jobEntry
	damaged map[string]damagedJob
	turns   turnScheduler
	spent   time.Duration // average running time of recent jobs; 0 until a job has ended
	news    chan struct{} // closed and replaced whenever a job changes, to wake waiting goroutines
	bytes   int64         // total size of the payloads of waiting jobs, in bytes
	closed  bool

	run     RunFunc         // function that runs a job; nil if this queue only submits jobs
	all     bool            // whether this queue runs every job
	only    map[string]bool // ids of the jobs to run if all is false
	release func()          // releases the queue's lock; nil if another engine may hold it
	warned  bool            // whether the log already says that the lock can never be taken
	wake    chan struct{}   // wakes attendLoop; buffers one signal
	ctx     context.Context
	stop    context.CancelFunc
	working sync.WaitGroup
	keeper  sync.WaitGroup
}

// jobEntry holds what this process knows about a job. The job's payload is only on disk.
type jobEntry struct {
	core.JobState
	size      int64
	stamp     seal.FileStamp
	cancel    context.CancelCauseFunc // cancels the job; nil unless the job runs in this process
	cancelled bool                    // whether a cancel was requested; the job may still be running
	held      bool                    // whether the job must not begin yet
	unsaved   bool                    // whether the job has ended, but its end is not on disk yet
	with      func(context.Context) context.Context
}

// Open opens a queue. No job runs before WorkOnAll or WorkOn is called.
func Open(o Options) (*Queue, error) {
	o.Slots, o.Waiting, o.Keep = cmp.Or(o.Slots, core.DefaultJobSlots), cmp.Or(
		o.Waiting, core.DefaultWaitingJobs,
	), cmp.Or(o.Keep, core.DefaultJobExpiry)
	o.Marks = cmp.Or(o.Marks, filepath.Join(o.Dir, "begun"))
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	key, err := o.Key()
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "queue.open", "the queue has no key: %w", err)
	}
	s, err := newShelf(o.Dir, o.Marks, key)
	if err != nil {
		return nil, core.Errorf(core.KindInternal, "queue.open", "%w", err)
	}
	q := &Queue{
		o: o, shelf: s, tasks: map[string]*jobEntry{}, damaged: map[string]damagedJob{}, turns: newTurns(o.Slots),
		news: make(chan struct{}), wake: make(chan struct{}, 1), only: map[string]bool{},
	}
	q.ctx, q.stop = context.WithCancel(context.Background())
	return q, nil
}

// Close cancels the jobs that run in this process and waits for them to end. Queued jobs stay.
func (q *Queue) Close() error {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.stop()
	q.keeper.Wait()
	q.working.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	var errs []error
	for _, e := range q.tasks {
		if e.unsaved {
			errs = append(errs, q.shelf.writeJob(storedJob{JobState: e.JobState}))
		}
	}
	if q.release != nil {
		q.release()
		q.release = nil
	}
	return errors.Join(errs...)
}

// SubmitJob durably adds a job to the queue. The argument with adds values to the context in which the job runs, such
// as the connection of the client. Such values exist only in this process, so with is called only if the job runs in
// this process. It may be nil.
func (q *Queue) SubmitJob(principal string, j core.Job, with func(context.Context) context.Context) (core.JobState, error) {
	if err := checkJob(j); err != nil {
		return core.JobState{}, err
	}
	free, err := q.reserveName(j.Name)
	if err != nil {
		return core.JobState{}, err
	}
	defer free()
	now := time.Now()
	deadline := min(cmp.Or(j.Deadline, defaultDeadline), maxDeadline)
	t := core.JobState{
		ID: strings.ToLower(rand.Text()), Name: j.Name, Kind: j.Kind, Title: j.Title, Status: core.TaskQueued,
		Principal: principal, Groups: j.Groups, Session: cmp.Or(j.Session, "default"),
		Client: j.Client, Priority: j.Priority, Credential: j.Credential, Submitted: now, Deadline: now.Add(deadline),
		Expires: now.Add(min(cmp.Or(j.Keep, q.o.Keep), q.o.Keep)),
	}
	size := int64(len(j.Payload))
	if err := q.admitJob(t, size); err != nil {
		return core.JobState{}, err
	}
	err = q.addJob(storedJob{t, j.Payload})
	q.mu.Lock()
	defer q.mu.Unlock()
	if err != nil {
		q.dropJob(t.ID)
		return core.JobState{}, err
	}
	e := q.tasks[t.ID] // it may have been read from disk meanwhile, and begun
	if e == nil {
		return t, nil
	}
	if e.held {
		e.held, e.stamp = false, q.shelf.stampOfJob(t.ID)
	}
	e.with = with
	q.wakeWaiters()
	return q.viewJob(e), nil
}

func checkJob(j core.Job) error {
	switch {
	case j.Name != "" && core.CheckTaskID(j.Name) != nil:
		return core.CheckTaskID(j.Name)
	case j.Kind == "":
		return core.Errorf(core.KindInvalidArguments, "queue.submit", "the job has no kind")
	case len(j.Payload) > maxPayload:
		return core.Errorf(
			core.KindLimit, "queue.submit", "the job has %d bytes; at most %d are allowed", len(j.Payload), maxPayload,
		).WithHint("put large values into a file of the workspace")
	case j.Priority < -maxPriority || j.Priority > maxPriority:
		return core.Errorf(
			core.KindInvalidArguments, "queue.submit", "the priority %d is not between -%d and %d", j.Priority, maxPriority,
			maxPriority,
		)
	case j.Deadline < 0 || j.Keep < 0:
		return core.Errorf(core.KindInvalidArguments, "queue.submit", "a duration is negative")
	}
	return nil
}

// admitJob adds a job to memory, but does not let it start yet. If the queue is full, it returns an error that says
// when to try again.
func (q *Queue) admitJob(t core.JobState, size int64) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return core.Errorf(core.KindCancelled, "queue.submit", "the engine is closed")
	}
	if err := q.ensureCurrent(); err != nil {
		return err
	}
	if err := q.checkNameFree(t.Principal, t.Name); err != nil {
		return err
	}
	var mine, all int
	for _, e := range q.tasks {
		if !e.Status.HasEnded() {
			all++
			if e.Principal == t.Principal {
				mine++
			}
		}
	}
	switch wait := q.estimateWait(all); {
	case mine >= q.o.Waiting:
		return queueFullError("%d of your jobs are already waiting or running, which is the maximum", mine, wait)
	case all >= 4*q.o.Waiting || q.bytes+size > maxLine:
		return queueFullError("%d jobs are already waiting or running, and the queue is full", all, wait)
	}
	q.bytes += size
	q.tasks[t.ID] = &jobEntry{JobState: t, size: size, held: true}
	return nil
}

func queueFullError(format string, n int, wait time.Duration) error {
	return core.Errorf(core.KindLimit, "queue.submit", format, n).WithHint(
		"submit it again in about %s; retort tasks list shows the waiting jobs", wait,
	)
}

// estimateWait estimates after what time a client should submit a job again that was refused because the queue is
// full. n is the number of jobs that wait or run.
func (q *Queue) estimateWait(n int) time.Duration {
	each := cmp.Or(q.spent, 10*time.Second)
	return max(time.Second, (each * time.Duration(max(1, n/4/q.o.Slots))).Round(time.Second))
}

// addJob writes a new job to the audit log, and then stores it durably. If either fails, the job is not queued.
func (q *Queue) addJob(r storedJob) error {
	if err := seal.CheckRegular(q.lockPath()); err != nil { // no engine can take the lock and work
		return core.Errorf(core.KindInternal, "queue.submit", "the job was not accepted, because no engine can work on the queue: %w", err)
	}
	if err := q.recordJob(r.JobState, string(core.TaskQueued), true); err != nil {
		return err
	}
	if err := q.shelf.writeJob(r); err != nil {
		return core.Errorf(core.KindInternal, "queue.submit", "the job could not be stored and will not run: %w", err)
	}
	return nil
}

// recordJob writes an event of a job to the audit log.
func (q *Queue) recordJob(t core.JobState, status string, durable bool) error {
	if q.o.Record == nil {
		return nil
	}
	e := core.AuditEvent{
		Kind: core.EventTask, Execution: "", Session: t.Session, Principal: t.Principal, Client: t.Client, Status: status,
		Facts: map[string]any{"task": t.ID, "kind": t.Kind},
	}
	if t.Priority != 0 {
		e.Facts["priority"] = t.Priority
	}
	if refused := q.o.Record(e, durable); refused != nil {
		return refused
	}
	return nil
}

// dropJob removes a job from memory. The caller must hold mu.
func (q *Queue) dropJob(id string) {
	if e := q.tasks[id]; e != nil && !e.Status.HasEnded() {
		q.bytes -= e.size
	}
	delete(q.tasks, id)
}

// wakeWaiters wakes all goroutines that wait for a change. The caller must hold mu.
func (q *Queue) wakeWaiters() {
	close(q.news)
	q.news = make(chan struct{})
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// Get returns the job with this id or name. A principal sees only its own jobs, and other jobs are reported as
// unknown. The principal "", the user at this machine, sees all jobs.
func (q *Queue) Get(principal, id string) (core.JobState, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	e, err := q.findJob(principal, id)
	if err != nil {
		return core.JobState{}, err
	}
	return q.viewJob(e), nil
}

// findJob returns the job of a principal with this id or name. The caller must hold mu.
func (q *Queue) findJob(principal, id string) (*jobEntry, error) {
	if err := q.ensureCurrent(); err != nil {
		return nil, err
	}
	if bad, is := q.damaged[id]; is && principal == "" {
		return nil, bad.errorFor(id)
	}
	e := q.tasks[id]
	if e == nil {
		e = q.findNamed(principal, id)
	}
	if e == nil || principal != "" && e.Principal != principal {
		return nil, core.Errorf(core.KindInvalidArguments, "queue", "there is no job %q", id).WithHint(
			"run retort tasks list to see all jobs; ended jobs are kept only for a limited time",
		)
	}
	return e, nil
}

// damagedJob records why the content of a job's file is not a valid job.
type damagedJob struct {
	why   error
	stamp seal.FileStamp
}

func (d damagedJob) errorFor(id string) *core.Error {
	return core.Errorf(
		core.KindInternal, "queue", "the job %s cannot be read: %w", id, d.why,
	).WithHint("its file is kept but does not run; remove it if you know the cause")
}

// ListJobs returns the jobs of a principal in the order of their submission. The principal "" sees all jobs. The
// warnings name files that cannot be read.
func (q *Queue) ListJobs(principal string) (tasks []core.JobState, warnings []string, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.ensureCurrent(); err != nil {
		return nil, nil, err
	}
	for _, e := range sortBySubmission(slices.Collect(maps.Values(q.tasks))) {
		if principal == "" || e.Principal == principal {
			tasks = append(tasks, q.viewJob(e))
		}
	}
	if principal == "" {
		for _, id := range slices.Sorted(maps.Keys(q.damaged)) {
			d := q.damaged[id].errorFor(id)
			warnings = append(warnings, d.Message+"; "+d.Hint)
		}
	}
	return tasks, warnings, nil
}

// viewJob returns the state of a job for callers. The caller must hold mu.
func (q *Queue) viewJob(e *jobEntry) core.JobState {
	t := e.JobState
	if e.Progress != nil {
		p := *e.Progress
		t.Progress = &p
	}
	switch {
	case e.cancelled && e.cancel != nil && !t.Status.HasEnded():
		t.Status = core.TaskStatus(core.StatusCancelled) // it stays so, whatever its end is
	case t.Status == core.TaskQueued:
		t.Position = 1
		for _, o := range q.tasks {
			if o.Status == core.TaskQueued && o.Principal == e.Principal && isAhead(o, e) {
				t.Position++
			}
		}
	}
	return t
}

// CountJobs returns the number of jobs of a principal by status. For the principal "" it counts all jobs.
func (q *Queue) CountJobs(principal string) (c core.TaskCounts) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range q.tasks {
		if principal != "" && e.Principal != principal {
			continue
		}
		switch e.Status {
		case core.TaskQueued:
			c.Queued++
		case core.TaskRunning:
			c.Running++
		case core.TaskPending:
			c.Pending++
		default:
			c.Ended++
		}
	}
	return c
}

// Intervals between checks for changes that other engines have made to the queue's files.
const (
	pollBusy = 200 * time.Millisecond
	pollIdle = 500 * time.Millisecond // interval while no job runs in this process
)

// WaitEnd waits until a job has ended or ctx is done. It returns the state of the job at that time.
func (q *Queue) WaitEnd(ctx context.Context, principal, id string) (core.JobState, error) {
	return q.waitUntil(ctx, principal, id, func(t core.JobState) bool { return !t.Ended.IsZero() })
}

// WaitChange waits until the state of a job differs from seen, or until ctx is done. seen is the state that the caller
// has seen last. WaitChange returns the state of the job at that time.
func (q *Queue) WaitChange(ctx context.Context, principal, id string, seen core.JobState) (core.JobState, error) {
	return q.waitUntil(ctx, principal, id, func(t core.JobState) bool {
		return t.Status != seen.Status || !t.LastUpdate().Equal(seen.LastUpdate())
	})
}

func (q *Queue) waitUntil(ctx context.Context, principal, id string, done func(core.JobState) bool) (core.JobState, error) {
	for {
		q.mu.Lock()
		e, err := q.findJob(principal, id)
		if err != nil {
			q.mu.Unlock()
			return core.JobState{}, err
		}
		t, news := q.viewJob(e), q.news
		q.mu.Unlock()
		id = t.ID // a later task may be given the same one
		if done(t) || ctx.Err() != nil {
			return t, nil
		}
		pause := time.NewTimer(pollBusy)
		select {
		case <-news:
		case <-pause.C:
		case <-ctx.Done():
		}
		pause.Stop()
	}
}

// Reasons why the context of a running job is cancelled. A request to cancel the job gives errCancelled; the other
// reason is that the job's deadline has passed.
var (
	errCancelled = errors.New("the job was cancelled")
	errDeadline  = errors.New("the deadline of the job has passed")
)

// CancelJob ends a running job, or removes a queued job before it starts. It waits up to five seconds for the end. A
// job that another process runs may end later. If the job has already ended, CancelJob changes nothing and returns an
// error.
func (q *Queue) CancelJob(ctx context.Context, principal, id string) (core.JobState, error) {
	const patience = 5 * time.Second
	q.mu.Lock()
	e, err := q.findJob(principal, id)
	if err == nil {
		id = e.ID // as it may have been given another one
	}
	switch {
	case err != nil:
	case e.Status.HasEnded():
		defer q.mu.Unlock()
		return q.viewJob(e), core.Errorf(core.KindInvalidArguments, "queue.cancel", "the job has already ended: %s", e.Status)
	case q.release != nil:
		err = q.cancelEntry(e)
	default:
		err = q.askOwner(e)
	}
	q.mu.Unlock()
	if err != nil {
		return core.JobState{}, err
	}
	ctx, done := context.WithTimeout(ctx, patience)
	defer done()
	return q.WaitEnd(ctx, principal, id)
}

// askOwner asks the engine that runs the jobs to cancel a job. If no engine runs jobs, it cancels the job itself. The
// caller must hold mu.
func (q *Queue) askOwner(e *jobEntry) error {
	id := e.ID
	if q.takeOwnership() {
		defer q.releaseOwnership()
		if e = q.tasks[id]; e == nil || e.Status.HasEnded() {
			return nil
		}
		return q.cancelEntry(e)
	}
	if err := q.shelf.requestCancel(id); err != nil {
		return core.Errorf(core.KindInternal, "queue.cancel", "%w", err)
	}
	return nil
}

// cancelEntry cancels a job. Only the engine that runs the jobs may call it. The caller must hold mu.
func (q *Queue) cancelEntry(e *jobEntry) error {
	if e.cancel == nil {
		q.endJob(e, core.Outcome{
			ExecutionID: e.ID, Status: core.StatusCancelled,
			Error: core.Errorf(core.KindCancelled, "queue", "%w before it started", errCancelled),
		})
		return nil
	}
	e.cancelled = true
	e.cancel(errCancelled)
	q.wakeWaiters()
	return nil
}

// IsOwner reports whether this engine runs the jobs.
func (q *Queue) IsOwner() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.release != nil
}

// TryOwn makes this engine run the jobs, unless another engine already does. It reports whether this engine now runs
// them.
func (q *Queue) TryOwn() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.closed && (q.release != nil || q.takeOwnership())
}

// IsAttended reports whether any engine runs the jobs.
func (q *Queue) IsAttended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.release != nil {
		return true
	}
	release, err := seal.Lock(q.lockPath(), 0)
	if err != nil {
		return true
	}
	release()
	return false
}

func (q *Queue) lockPath() string { return filepath.Join(q.o.Dir, "lock") }

// EraseJobs removes ended jobs and returns their number. If the function mentions is nil, it removes the ended jobs
// in one session of a principal. Otherwise it calls mentions with the Outcome of each ended job of every principal,
// and removes the jobs for which mentions returns true.
func (q *Queue) EraseJobs(principal, session string, mentions func([]byte) bool) (n int, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := q.readFolder(); err != nil {
		return 0, err
	}
	var errs []error
	for _, e := range slices.Collect(maps.Values(q.tasks)) {
		if !e.Status.HasEnded() {
			continue
		}
		if mentions == nil && (e.Session != session || e.Principal != principal) || mentions != nil && !mentions(outcomeText(e.JobState)) {
			continue
		}
		if err := q.shelf.removeJob(e.ID); err != nil && !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
			continue
		}
		q.dropJob(e.ID)
		n++
	}
	return n, errors.Join(errs...)
}
