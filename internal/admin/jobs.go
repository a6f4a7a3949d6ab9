package admin

import (
	"cmp"
	"context"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/jobs"
)

// JobList holds the jobs of a configuration, and warnings about job files that cannot be read.
type JobList struct {
	Tasks    []core.JobState `json:"tasks"`
	Attended bool            `json:"attended"` // whether a running engine works on the queue
	Warnings []string        `json:"warnings,omitempty"`
}

// openQueue opens the job queue of a configuration. It runs no jobs.
func openQueue(c engine.Config) (*jobs.Queue, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	if s.LoadedConfig().Home == "" {
		return nil, core.Errorf(
			core.KindInvalidArguments, "retort.tasks", "without a data directory there is no queue",
		).WithHint("choose a data directory with --home")
	}
	record := func(e core.AuditEvent, _ bool) *core.Error { return core.AsError(s.RecordEvent(e)) }
	return s.OpenQueue(s.DataDir(), record, engine.LostJob)
}

// ListJobs returns the jobs of all principals. It is for the user of this machine, who may see all of them.
func ListJobs(c engine.Config) (l JobList, err error) {
	q, err := openQueue(c)
	if err != nil {
		return l, err
	}
	defer q.Close()
	l.Attended = q.IsAttended()
	l.Tasks, l.Warnings, err = q.ListJobs("")
	return l, err
}

// FindJob returns the job with an id, of any principal.
func FindJob(c engine.Config, id string) (core.JobState, error) {
	q, err := openQueue(c)
	if err != nil {
		return core.JobState{}, err
	}
	defer q.Close()
	return q.Get("", id)
}

// SubmitJob puts a job into the queue of a configuration. An engine that is running now runs the job, otherwise the
// next engine that starts. The result attended says whether an engine is running now.
func SubmitJob(c engine.Config, j core.Job) (t core.JobState, attended bool, err error) {
	q, err := openQueue(c)
	if err != nil {
		return t, false, err
	}
	defer q.Close()
	t, err = q.SubmitJob("", j, nil)
	return t, err == nil && q.IsAttended(), err
}

// CancelJob cancels a job, whichever engine of the configuration runs it.
func CancelJob(ctx context.Context, c engine.Config, id string) (core.JobState, error) {
	q, err := openQueue(c)
	if err != nil {
		return core.JobState{}, err
	}
	defer q.Close()
	t, err := q.CancelJob(ctx, "", id)
	if err == nil && t.Ended.IsZero() {
		t.Status = cmp.Or(t.Status, core.TaskQueued)
	}
	return t, err
}
