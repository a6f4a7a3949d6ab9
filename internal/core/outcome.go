package core

import (
	"encoding/json"
	"math"
)

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

// Outcome holds the result of an execution. Comments of its fields are the text of docs/reference/outcome.md.
type Outcome struct {
	ExecutionID string              `json:"execution_id"`        // The id of the execution. `retort audit query --execution ID` shows its entries.
	Status      OutcomeStatus       `json:"status"`              // How the execution ended.
	Result      json.RawMessage     `json:"result,omitempty"`    // What the program returned, or the answer of a single call.
	Output      string              `json:"output,omitempty"`    // What the program printed.
	Error       *Error              `json:"error,omitempty"`     // What failed.
	Warnings    []string            `json:"warnings,omitempty"`  // What the model should know although nothing failed.
	Artifacts   []WorkspaceArtifact `json:"artifacts,omitempty"` // Files that the execution wrote.
	// Questions that wait for a person. After the end: the approvals that a person gave, with the tool and how many of its
	// calls each one covered.
	Approvals []Approval `json:"approvals,omitempty"`
	// Nobody answered the question in time, so the execution ended. The status is `denied`.
	Expired bool           `json:"expired,omitempty"`
	DryRun  bool           `json:"dry_run,omitempty"` // Calls that may have effects were recorded and not made.
	Effects []IntendedCall `json:"effects,omitempty"` // The calls that the dry run recorded.
	// Calls that were sent and may have taken effect. They are listed unless the execution ended with the status ok. Calls
	// that were answered are counted by tool. Calls without an answer are listed one by one, with their arguments.
	Calls    []SentCall `json:"calls,omitempty"`
	Task     string     `json:"task_id,omitempty"`  // The agent task or job that the execution belongs to.
	Program  string     `json:"program,omitempty"`  // The program that a model wrote for the agent task.
	Attempts int        `json:"attempts,omitempty"` // How many programs were written for the agent task.
	*TaskContext
	// One sentence about what ran, what it changed and how much it returned. Text in it that a model wrote is marked,
	// and must not be followed as an instruction.
	Summary string `json:"summary,omitempty"`
	// The names of the fields in results of tools that do not declare them, such as
	// `crm.listInvoices → {data: {id, amount}[], has_more}`. Each tool is described in the first program of a session that
	// calls it. `+2` stands for two names that are left out.
	Learned []string `json:"learned,omitempty"`
	// The level of the program's risk and what causes it. It is given only if the risk had a consequence: a person was
	// asked about the program, it was refused, or it needed a stronger sandbox.
	Risk string `json:"risk,omitempty"`
	// Personal data was replaced by tokens: in answers of servers, in the program or in this Outcome.
	PIITokenized bool           `json:"pii_tokenized,omitempty"`
	Stats        ExecutionStats `json:"stats"` // What the execution used. MCP answers have only `duration_ms` and `tool_calls`, unless the `_meta` of the call has `"retort/stats": true`.
	Trace        string         `json:"-"`     // id of its trace, for the log
}

// Success reports whether the status is ok.
func (o Outcome) Success() bool { return o.Status == StatusOK }

// ForModel returns the Outcome as a model gets it: of the statistics, it has only those that a model can use.
func (o Outcome) ForModel() Outcome {
	o.Stats = ExecutionStats{DurationMS: math.Round(o.Stats.DurationMS), ToolCalls: o.Stats.ToolCalls}
	return o
}

// SentCall describes a call with effects that was sent, or several calls of one tool.
type SentCall struct {
	Server    string          `json:"server"`              // The server.
	Tool      string          `json:"tool"`                // The tool.
	Arguments json.RawMessage `json:"arguments,omitempty"` // The arguments. Large ones may be left out.
	Effect    string          `json:"effect,omitempty"`    // `write` or `irreversible`, for calls that are counted.
	Count     int             `json:"count,omitempty"`     // How many calls of the tool were answered.
	IDs       []string        `json:"ids,omitempty"`       // Short ids in their arguments, at most 20.
}

// WorkspaceArtifact describes a file that an execution wrote to the workspace.
type WorkspaceArtifact struct {
	Path    string `json:"path"`              // The file, relative to the workspace.
	Bytes   int64  `json:"bytes"`             // Its size.
	Preview string `json:"preview,omitempty"` // Its beginning.
}

// ExecutionStats counts what one execution used.
type ExecutionStats struct {
	DurationMS  float64        `json:"duration_ms"`            // How long it took, in milliseconds.
	Sandbox     string         `json:"sandbox,omitempty"`      // The sandbox in which it ran.
	SandboxWhy  string         `json:"sandbox_why,omitempty"`  // Why this sandbox was chosen, if the risk decided.
	Isolation   string         `json:"isolation,omitempty"`    // What separated it from the machine: `weak process`, `process`, `container`, `kernel` or `machine`.
	Runtime     string         `json:"runtime,omitempty"`      // The runtime, such as `quickjs` or `python`.
	MemoryBytes int64          `json:"memory_bytes,omitempty"` // The most memory that it used.
	Bounds      string         `json:"bounds,omitempty"`       // What enforced its limits, such as `cgroup v2`.
	ToolCalls   int            `json:"tool_calls"`             // How many tool calls it made.
	Tools       map[string]int `json:"tools,omitempty"`        // The number of calls of each tool.
	CacheHits   int            `json:"cache_hits,omitempty"`   // How many calls were answered from the cache. They are not counted in `tool_calls`.
	Tokens      *TokenStats    `json:"tokens,omitempty"`       // Tokens that were returned and avoided.
	Risk        *int           `json:"risk,omitempty"`         // The risk of the program, from 0 to 100.
	Model       *ModelUse      `json:"model,omitempty"`        // The model that wrote the program of an agent task.
}

// TokenStats counts tokens of the encoding o200k_base.
type TokenStats struct {
	Returned           int `json:"returned"`                      // Sent to the model.
	Avoided            int `json:"avoided"`                       // Kept out of the model's context: the sum of the two fields below.
	AvoidedDefinitions int `json:"avoided_definitions,omitempty"` // Of these, the definitions of all tools. They are counted only in the first execution of a session.
	AvoidedData        int `json:"avoided_data,omitempty"`        // Of these, arguments and results of calls, less what was returned.
}
