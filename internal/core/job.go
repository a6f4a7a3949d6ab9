package core

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// TaskStatus says how far a job has got. It is one of the constants of this type or, after the job has ended, the
// status of the job's Outcome.
type TaskStatus string

// The states of a job that has not ended.
const (
	TaskQueued  TaskStatus = "queued"
	TaskRunning TaskStatus = "running"
	TaskPending TaskStatus = TaskStatus(StatusPendingApproval) // it waits for a person
)

// HasEnded reports whether the job has ended.
func (s TaskStatus) HasEnded() bool { return s != TaskQueued && s != TaskRunning && s != TaskPending }

// Job describes work that is done at once or when its turn in the queue comes.
type Job struct {
	Kind     string          // what performs it: "program", …
	Name     string          // TraceID chosen by the submitter; empty if none. No two unfinished jobs of a principal share one
	Title    string          // for lists; may be empty
	Session  string          // "default" if empty
	Client   string          // name and version of the MCP client, if any
	Priority int             // among the tasks of the same principal; -10 to 10, higher is sooner
	Deadline time.Duration   // from now, after which it does not begin any more and is cancelled; 0 is a day
	Keep     time.Duration   // how long it is stored from now on, at least until a while after its end; 0 is as the settings say
	Payload  json.RawMessage // what to do, in the form its kind requires
	// Credential refers to the access token with which the job was submitted. If that token is revoked, the job does
	// not run.
	Credential Credential
	Groups     []string // of which the principal was a member then; their rules apply to the job
}

// Values of Job.Kind.
const (
	JobProgram = "program" // runs a program
	JobTask    = "task"    // performs an agent task
	JobPass    = "pass"    // passes a client's call on to a server
)

// PassJob returns a job that forwards a client's tool call to a server.
func PassJob(r ExecutionRequest, what PassthroughRequest) (Job, error) {
	payload, err := json.Marshal(struct {
		Request ExecutionRequest
		Passed  PassthroughRequest
	}{r, what})
	if err != nil {
		return Job{}, Errorf(KindInvalidArguments, "run.job", "%w", err)
	}
	return Job{Kind: JobPass, Title: what.Server + "." + what.Tool, Session: r.Session, Client: r.Client, Payload: payload}, nil
}

// TaskJob returns a job that performs an agent task.
func TaskJob(t AgentTask) (Job, error) {
	payload, err := json.Marshal(t)
	if err != nil {
		return Job{}, Errorf(KindInvalidArguments, "run.job", "%w", err)
	}
	return Job{Kind: JobTask, Name: t.ID, Title: titleOf(t.Description), Session: t.Session, Client: t.Client, Payload: payload}, nil
}

// titleOf returns a job's title: the first 60 characters of the job's description, on one line.
func titleOf(text string) string {
	const most = 60
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= most {
		return string(runes)
	}
	return string(runes[:most]) + "…"
}

// programOf separates the two parts of the execution id of an agent task's program: the id of the job, and the number
// of the program. Job ids do not contain this separator.
const programOf = "0"

// ProgramOf returns the execution id of the program that an agent task's job wrote at its n-th attempt.
func ProgramOf(task string, n int) string { return task + programOf + strconv.Itoa(n) }

// IsProgramOf reports whether an execution id belongs to a program of this job.
func IsProgramOf(execution, task string) bool {
	n, ok := strings.CutPrefix(execution, task+programOf)
	return ok && n != "" && strings.Trim(n, "0123456789") == ""
}

// ProgramJob returns a job that executes a request.
func ProgramJob(r ExecutionRequest) (Job, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return Job{}, Errorf(KindInvalidArguments, "run.job", "%w", err)
	}
	return Job{Kind: JobProgram, Title: r.Name, Session: r.Session, Client: r.Client, Payload: payload}, nil
}

// JobState holds the data of a Job with its progress and result.
type JobState struct {
	ID        string        `json:"id"`             // also of its execution
	Name      string        `json:"name,omitempty"` // that of the Job
	Kind      string        `json:"kind"`
	Title     string        `json:"title,omitempty"`
	Status    TaskStatus    `json:"status"`
	Principal string        `json:"principal,omitempty"`
	Session   string        `json:"session"`
	Client    string        `json:"client,omitempty"`
	Priority  int           `json:"priority,omitempty"`
	Position  int           `json:"position,omitempty"` // among those of its principal that wait; 1 is next
	Submitted time.Time     `json:"submitted"`
	Begun     time.Time     `json:"begun,omitzero"`
	Ended     time.Time     `json:"ended,omitzero"`
	Deadline  time.Time     `json:"deadline"`
	Expires   time.Time     `json:"expires"` // when it may be forgotten, if it has ended
	Progress  *TaskProgress `json:"progress,omitempty"`
	Outcome   *Outcome      `json:"outcome,omitempty"` // once it has ended
	// Credential refers to the access token with which the job was submitted.
	Credential Credential `json:"credential,omitzero"`
	// Groups lists the groups of which the principal was a member when the job was submitted. It is nil if that is not
	// known: the job was submitted without an OAuth token, or http.oauth.groups was not set.
	Groups []string `json:"groups,omitzero"`
}

// LastUpdate returns the latest time recorded in the state.
func (t JobState) LastUpdate() time.Time {
	last := t.Submitted
	for _, at := range []time.Time{t.Begun, t.Ended} {
		if at.After(last) {
			last = at
		}
	}
	if t.Progress != nil && t.Progress.At.After(last) && t.Ended.IsZero() {
		last = t.Progress.At
	}
	return last
}

// TaskProgress says how much of a running job is done.
type TaskProgress struct {
	Done    int       `json:"done"`
	Total   int       `json:"total,omitempty"` // 0: unknown
	Message string    `json:"message,omitempty"`
	At      time.Time `json:"at"`
}

// TaskCounts counts jobs by status.
type TaskCounts struct {
	Queued  int `json:"queued"`
	Running int `json:"running"`
	Pending int `json:"pending_approval,omitempty"`
	Ended   int `json:"ended"`
}
