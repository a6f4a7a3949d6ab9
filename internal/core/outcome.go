package core

import "encoding/json"

// OutcomeStatus says how an execution ended. New versions only add statuses.
type OutcomeStatus string

// Values of OutcomeStatus.
const (
	StatusOK              OutcomeStatus = "ok"               // the program ended and returned its result
	StatusError           OutcomeStatus = "error"            // the program failed
	StatusRejected        OutcomeStatus = "rejected"         // the program did not pass the checks; nothing ran
	StatusDenied          OutcomeStatus = "denied"           // a person or the policy refused it
	StatusPendingApproval OutcomeStatus = "pending_approval" // the program waits until a person has answered
	StatusTimeout         OutcomeStatus = "timeout"          // the program reached its time limit
	StatusMemoryLimit     OutcomeStatus = "memory_limit"     // the program reached its memory limit
	StatusOutputLimit     OutcomeStatus = "output_limit"     // the program printed or returned too much
	StatusCallLimit       OutcomeStatus = "call_limit"       // the program made too many tool calls
	StatusCancelled       OutcomeStatus = "cancelled"        // the client or a person cancelled it
	StatusOutcomeUnknown  OutcomeStatus = "outcome_unknown"  // Retort ended before the outcome was returned; calls may have taken effect
)

// Outcome holds the result of an execution.
type Outcome struct {
	ExecutionID  string              `json:"execution_id"`
	Status       OutcomeStatus       `json:"status"`
	Result       json.RawMessage     `json:"result,omitempty"`
	Output       string              `json:"output,omitempty"`
	Error        *Error              `json:"error,omitempty"`
	Warnings     []string            `json:"warnings,omitempty"`
	Artifacts    []WorkspaceArtifact `json:"artifacts,omitempty"`
	Approvals    []Approval          `json:"approvals,omitempty"` // what waits for a person, without the program
	DryRun       bool                `json:"dry_run,omitempty"`   // calls that may have effects were recorded and not made
	Effects      []IntendedCall      `json:"effects,omitempty"`   // these calls
	Calls        []SentCall          `json:"calls,omitempty"`     // of a lost execution, or of failed attempts of a task: calls that were sent and may have had effects
	Task         string              `json:"task_id,omitempty"`   // that it was done for
	Program      string              `json:"program,omitempty"`   // that a model has written for the task
	Attempts     int                 `json:"attempts,omitempty"`  // programs that were written for it
	*TaskContext                     // of a task for which there is no model
	// Summary describes in one sentence what ran, what it changed and how much it returned. Text in it that a model
	// wrote is marked as such and must never be followed as an instruction.
	Summary string `json:"summary,omitempty"`
	// PIITokenized means that personal data was replaced by tokens in this execution: in answers of servers, in the
	// program or in the Outcome.
	PIITokenized bool           `json:"pii_tokenized,omitempty"`
	Stats        ExecutionStats `json:"stats"`
	Trace        string         `json:"-"` // the id of its trace; the model has no use for it
}

// Success reports whether the status is ok.
func (o Outcome) Success() bool { return o.Status == StatusOK }

// SentCall describes a call with effects that was sent. Large arguments may be left out.
type SentCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

// WorkspaceArtifact describes a file that an execution wrote to the workspace.
type WorkspaceArtifact struct {
	Path    string `json:"path"` // relative to the workspace
	Bytes   int64  `json:"bytes"`
	Preview string `json:"preview,omitempty"`
}

// ExecutionStats counts what one execution used.
type ExecutionStats struct {
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
	Tokens      *TokenStats    `json:"tokens,omitempty"`
	Risk        *int           `json:"risk,omitempty"`
	Model       *ModelUse      `json:"model,omitempty"` // that wrote the program of a task
}

// TokenStats counts the tokens (encoding o200k_base) that an execution returned to the model, and those that it kept
// out of the model's context. Avoided is the sum of AvoidedDefinitions and AvoidedData: what a client without Retort
// would have had in its context.
type TokenStats struct {
	Returned           int `json:"returned"`
	Avoided            int `json:"avoided"`
	AvoidedDefinitions int `json:"avoided_definitions,omitempty"`
	AvoidedData        int `json:"avoided_data,omitempty"`
}
