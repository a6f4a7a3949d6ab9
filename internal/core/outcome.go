package core

import "encoding/json"

// Status says how an execution ended. The set is closed and append-only.
type Status string

// Ways in which an execution ends.
const (
	StatusOK              Status = "ok"
	StatusError           Status = "error"
	StatusRejected        Status = "rejected" // did not pass the gate; nothing ran
	StatusDenied          Status = "denied"   // a person or policy said no
	StatusPendingApproval Status = "pending_approval"
	StatusTimeout         Status = "timeout"
	StatusMemoryLimit     Status = "memory_limit"
	StatusOutputLimit     Status = "output_limit"
	StatusCallLimit       Status = "call_limit"
	StatusCancelled       Status = "cancelled"
	StatusOutcomeUnknown  Status = "outcome_unknown"
)

// Outcome holds the result of an execution.
type Outcome struct {
	ExecutionID string          `json:"execution_id"`
	Status      Status          `json:"status"`
	Result      json.RawMessage `json:"result,omitempty"`
	Output      string          `json:"output,omitempty"`
	Error       *Error          `json:"error,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Artifacts   []Artifact      `json:"artifacts,omitempty"`
	Approvals   []Approval      `json:"approvals,omitempty"` // what waits for a person, without the program
	DryRun      bool            `json:"dry_run,omitempty"`   // calls that may have effects were recorded and not made
	Effects     []Intended      `json:"effects,omitempty"`   // these calls
	Calls       []SentCall      `json:"calls,omitempty"`     // of a lost execution, or of failed attempts of a task: calls that were sent and may have had effects
	Task        string          `json:"task_id,omitempty"`   // that it was done for
	Program     string          `json:"program,omitempty"`   // that a model has written for the task
	Attempts    int             `json:"attempts,omitempty"`  // programs that were written for it
	*Pack                       // of a task for which there is no model
	// Summary describes in one sentence what ran, what it changed and how much it returned. Text written by a model
	// is marked as such: it is data, never an instruction.
	Summary string `json:"summary,omitempty"`
	// PIITokenized means that tokens replace personal data in this execution: in answers of servers, in the program
	// or in the Outcome.
	PIITokenized bool   `json:"pii_tokenized,omitempty"`
	Stats        Stats  `json:"stats"`
	Trace        string `json:"-"` // the id of its trace; the model has no use for it
}

// Success reports whether the status is ok.
func (o Outcome) Success() bool { return o.Status == StatusOK }

// SentCall describes a call with effects that was sent. Large arguments may be left out.
type SentCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// Artifact describes a file that an execution wrote to the workspace.
type Artifact struct {
	Path    string `json:"path"` // relative to the workspace
	Bytes   int64  `json:"bytes"`
	Preview string `json:"preview,omitempty"`
}

// Stats counts what one execution used.
type Stats struct {
	DurationMS  float64        `json:"duration_ms"`
	Sandbox     string         `json:"sandbox,omitempty"`
	SandboxWhy  string         `json:"sandbox_why,omitempty"` // where it was chosen by risk
	Isolation   string         `json:"isolation,omitempty"`   // the boundary between program and machine: "weak process", "process", "container", "kernel", "machine"
	Runtime     string         `json:"runtime,omitempty"`
	MemoryBytes int64          `json:"memory_bytes,omitempty"`
	Bounds      string         `json:"bounds,omitempty"` // what holds the limits: "cgroup v2", "rlimits, watcher"
	ToolCalls   int            `json:"tool_calls"`
	Tools       map[string]int `json:"tools,omitempty"`      // "github.listIssues" → calls
	CacheHits   int            `json:"cache_hits,omitempty"` // answers that were given again; no calls
	Tokens      *Tokens        `json:"tokens,omitempty"`
	Risk        *int           `json:"risk,omitempty"`
	Model       *ModelUse      `json:"model,omitempty"` // that wrote the program of a task
}

// Tokens counts o200k_base tokens. Avoided is AvoidedDefinitions + AvoidedData: the tokens that a client without
// Retort would have had in its context.
type Tokens struct {
	Returned           int `json:"returned"`
	Avoided            int `json:"avoided"`
	AvoidedDefinitions int `json:"avoided_definitions,omitempty"`
	AvoidedData        int `json:"avoided_data,omitempty"`
}
