package retort

import (
	"context"
	"encoding/json"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
)

// Language names a program's language.
type Language string

// Languages of programs.
const (
	TypeScript Language = "typescript"
	JavaScript Language = "javascript"
	Python     Language = "python"
)

// Request asks for one execution.
type Request struct {
	ID                  string          // unique; generated if empty
	Session             string          // "default" if empty
	Client              string          // name and version of the client, if any
	Model, ModelVersion string          // model that wrote the code; may be empty
	Language            Language        // recognized by the syntax of Code if empty
	Code                string          // may be inside a Markdown fence
	Name                string          // shown in error locations: "program.ts" if empty
	Sandbox             string          // backend; that of the settings if empty
	Runtime             string          // for TypeScript and JavaScript: "quickjs", "node", "bun", "deno"; as configured if empty
	DryRun              bool            // records calls that may have effects and does not make them
	NoCache             bool            // makes every call, even if its result is cached
	Limits              Limits          // zero fields mean the limits of the settings
	ForceApproval       bool            // requires approval even if the settings would approve the program automatically
	AllowNetwork        *bool           // nil leaves it to the settings; true is refused if the settings give programs no network
	FilesystemScope     string          // "workspace-only", "read-only", "none" or a folder in ./workspace; as configured if empty
	Only                []string        // limits the tools that the program may reach, in any spelling; nil means no limit
	Progress            func(calls int) // gets the number of calls so far; may be nil; must not block; called concurrently
}

func (r Request) internal() core.ExecutionRequest {
	return core.ExecutionRequest{
		ID: r.ID, Session: r.Session, Client: r.Client, Model: r.Model, ModelVersion: r.ModelVersion, Language: core.Language(r.Language),
		Code: r.Code, Name: r.Name, Sandbox: r.Sandbox, Runtime: r.Runtime, DryRun: r.DryRun, NoCache: r.NoCache,
		Limits: core.Limits(r.Limits), ForceApproval: r.ForceApproval, AllowNetwork: r.AllowNetwork,
		FilesystemScope: r.FilesystemScope, Only: r.Only, Progress: r.Progress,
	}
}

// Task represents an agent task: work described in natural language, for which a model writes programs.
type Task struct {
	ID            string // generated if empty
	Description   string
	Language      Language        // of the program; TypeScript if empty
	RequiredTools []string        // tools in any spelling, or servers: "github", "github.*"; if given, no others can be used
	Inputs        json.RawMessage // object that the program can read as the constant inputs
	Code          string          // program to run instead of asking a model; it can use only RequiredTools
	Tokens        int             // limits what models read and write in all attempts, in tokens; as configured if 0
	Attempts      int             // limits the number of programs; as in the settings if 0
	Limits        Limits          // of each program
	Session       string          // "default" if empty
	Client        string          // name and version of the client, if any
	// Progress is called with each step. phase is "queue", "discover", "define", "write", "run" or "report", and
	// attempt is 0 before the first program. It may be nil, must not block and may be called from several goroutines.
	Progress func(phase string, attempt int, text string)
}

func (t Task) internal() core.AgentTask {
	task := core.AgentTask{
		ID: t.ID, Description: t.Description, Language: core.Language(t.Language), RequiredTools: t.RequiredTools, Inputs: t.Inputs,
		Code: t.Code, Session: t.Session, Client: t.Client,
		Budget: core.TaskBudget{Tokens: t.Tokens, Attempts: t.Attempts, Limits: core.Limits(t.Limits)},
	}
	if t.Progress != nil {
		task.Progress = func(s core.TaskStep) { t.Progress(string(s.Phase), s.Attempt, s.Text) }
	}
	return task
}

// Status says how an execution ended. Later versions may add values.
type Status string

// Values of Status.
const (
	StatusOK              Status = "ok"
	StatusError           Status = "error"
	StatusRejected        Status = "rejected" // the program did not pass the check; nothing ran
	StatusDenied          Status = "denied"   // a person or a rule refused
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
	Output      string          `json:"output,omitempty"` // console output
	Error       *Error          `json:"error,omitempty"`
	Warnings    []string        `json:"warnings,omitempty"`
	Artifacts   []File          `json:"artifacts,omitempty"`
	Approvals   []Approval      `json:"approvals,omitempty"` // that wait for a person; after the end, those that were given
	Expired     bool            `json:"expired,omitempty"`   // nobody answered a question in time, so the execution ended
	DryRun      bool            `json:"dry_run,omitempty"`   // calls that may have effects were recorded and not made
	Effects     []ToolCall      `json:"effects,omitempty"`   // these recorded calls
	Calls       []ToolCall      `json:"calls,omitempty"`     // sent calls that may have had effects, of a lost execution or failed attempts
	Task        string          `json:"task_id,omitempty"`   // ID of the agent task to which the execution belongs
	Program     string          `json:"program,omitempty"`   // program that a model has written for the task
	Attempts    int             `json:"attempts,omitempty"`  // number of programs that were written for the task
	*TaskContext
	Summary      string         `json:"summary,omitempty"`       // one sentence; text of a model is marked: it is data, not an instruction
	Learned      []string       `json:"learned,omitempty"`       // names of fields in undeclared results of tools
	Risk         string         `json:"risk,omitempty"`          // risk level of the program and the reasons, if it had a consequence
	PIITokenized bool           `json:"pii_tokenized,omitempty"` // tokens replace personal data in the program, results or here
	Stats        ExecutionStats `json:"stats"`
	Trace        string         `json:"-"` // ID of the OpenTelemetry trace
}

// TaskContext has what a model needs to write the program of an agent task. It is set if no model is configured.
type TaskContext struct {
	Tools       []FoundTool  `json:"tools"`
	Definitions []Definition `json:"definitions"`
	Skeleton    string       `json:"skeleton"` // program to begin with, which passes the check
}

// File describes a file of a workspace.
type File struct {
	Path     string `json:"path"` // relative to the workspace
	Bytes    int64  `json:"bytes"`
	Preview  string `json:"preview,omitempty"`  // only of a file that an execution wrote
	Modified string `json:"modified,omitempty"` // RFC 3339; only in a list
}

// ToolCall describes a call with effects. Large arguments may be omitted.
type ToolCall struct {
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments,omitempty"` // canonical JSON: sorted names, no blanks
	Effect    string          `json:"effect,omitempty"`    // "write" or "irreversible"
	Grade     string          `json:"grade,omitempty"`     // grade of an irreversible call, such as "money"
	Reason    string          `json:"reason,omitempty"`
	Count     int             `json:"count,omitempty"` // number of answered calls of the tool; 0 for a single call
	IDs       []string        `json:"ids,omitempty"`   // short IDs in the arguments of these calls
}

// ExecutionStats counts what one execution used.
type ExecutionStats struct {
	DurationMS  float64        `json:"duration_ms"`
	Sandbox     string         `json:"sandbox,omitempty"`
	Isolation   string         `json:"isolation,omitempty"` // "weak process", "process", "container", "kernel" or "machine"
	Runtime     string         `json:"runtime,omitempty"`
	MemoryBytes int64          `json:"memory_bytes,omitempty"`
	ToolCalls   int            `json:"tool_calls"`
	Tools       map[string]int `json:"tools,omitempty"`      // number of calls by tool, such as "github.listIssues"
	CacheHits   int            `json:"cache_hits,omitempty"` // results that came from the cache; not counted in ToolCalls
	Tokens      *TokenStats    `json:"tokens,omitempty"`
	Risk        *int           `json:"risk,omitempty"` // 0 to 100
}

// TokenStats counts o200k_base tokens. Avoided is AvoidedDefinitions + AvoidedData: the tokens that a client without
// Retort would have had in its context.
type TokenStats struct {
	Returned           int `json:"returned"`
	Avoided            int `json:"avoided"`
	AvoidedDefinitions int `json:"avoided_definitions,omitempty"`
	AvoidedData        int `json:"avoided_data,omitempty"`
}

func newOutcome(o core.Outcome) Outcome {
	out := Outcome{
		ExecutionID: o.ExecutionID, Status: Status(o.Status), Result: o.Result, Output: o.Output, Error: newError(o.Error),
		Artifacts: convertAll(o.Artifacts, func(a core.WorkspaceArtifact) File { return File{Path: a.Path, Bytes: a.Bytes, Preview: a.Preview} }),
		Approvals: convertAll(o.Approvals, newApproval), Expired: o.Expired, DryRun: o.DryRun, Effects: convertAll(o.Effects, newIntendedCall),
		Calls: convertAll(o.Calls, newSentCall), Task: o.Task, Program: o.Program, Attempts: o.Attempts,
		Warnings: o.Warnings, Summary: o.Summary, Risk: o.Risk, Learned: o.Learned, PIITokenized: o.PIITokenized, Trace: o.Trace,
	}
	s := o.Stats
	out.Stats = ExecutionStats{
		DurationMS: s.DurationMS, Sandbox: s.Sandbox, Isolation: s.Isolation, Runtime: s.Runtime, MemoryBytes: s.MemoryBytes,
		ToolCalls: s.ToolCalls, Tools: s.Tools, CacheHits: s.CacheHits, Tokens: (*TokenStats)(s.Tokens), Risk: s.Risk,
	}
	if c := o.TaskContext; c != nil {
		out.TaskContext = &TaskContext{convertAll(c.Tools, newFoundTool), convertAll(c.Definitions, newDefinition), c.Skeleton}
	}
	return out
}

func newSentCall(c core.SentCall) ToolCall {
	return ToolCall{c.Server, c.Tool, c.Arguments, c.Effect, "", "", c.Count, c.IDs}
}

func newIntendedCall(c core.IntendedCall) ToolCall {
	return ToolCall{c.Server, c.Tool, c.Arguments, c.Effect, c.Grade, c.Reason, 0, nil}
}

// Error is the type of all errors that this package returns. Message names the cause; Hint names the next step. Line
// and Column are 1-based positions in the program as it was written, 0 if unknown. Kind is one of syntax, type,
// policy, runtime, tool_error, tool_not_found, invalid_arguments, upstream_gone, upstream_timeout, tool_changed,
// limit, sandbox_unavailable, cancelled and internal; more may be added.
type Error struct {
	Kind    string `json:"kind"`
	Op      string `json:"-"` // the operation, for logs: "upstream.connect"
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Server  string `json:"server,omitempty"`
	Tool    string `json:"tool,omitempty"`
	Skill   string `json:"skill,omitempty"` // the skill that Line and Column refer to, if not the program itself
	Frame   string `json:"frame,omitempty"` // a few lines of the program with the position marked
	Stack   string `json:"stack,omitempty"` // the program's own frames, innermost first
	Err     error  `json:"-"`               // cause
}

func (e *Error) Error() string { return e.Kind + ": " + e.Message }
func (e *Error) Unwrap() error { return e.Err }

func newError(e *core.Error) *Error {
	if e == nil {
		return nil
	}
	return &Error{string(e.Kind), e.Op, e.Message, e.Hint, e.Line, e.Column, e.Server, e.Tool, e.Skill, e.Frame, e.Stack, e.Err}
}

// convertError returns an error of the engine as a *Error; a nil err stays nil. Errors of the context stay as they are.
func convertError(err error) error {
	if err == nil || err == context.Canceled || err == context.DeadlineExceeded {
		return err
	}
	return newError(core.AsError(err))
}

// Query describes a search for tools.
type Query struct {
	Text     string // empty lists tools
	Server   string // in any spelling; empty means all
	Category string // empty means all
	Detail   string // "name", "description", "summary" or "full"; "description" if empty
	Language Language
	Limit    int  // 10 if zero
	Settled  bool // waits until all currently known tools are indexed, however long that takes
}

// Found holds the result of a search.
type Found struct {
	Tools    []FoundTool `json:"tools"`
	Total    int         `json:"total"`            // number of matching tools
	Others   []string    `json:"others,omitempty"` // example calls of the tools whose definitions are left out, to save tokens
	More     int         `json:"more,omitempty"`   // number of matching tools that are omitted as worse matches
	Warnings []string    `json:"warnings,omitempty"`
}

// FoundTool describes one tool that a search found. Name is the name that programs use.
type FoundTool struct {
	Name         string `json:"name"`
	Server       string `json:"server"`
	Tool         string `json:"tool"`
	Category     string `json:"category"`
	Description  string `json:"description,omitempty"`
	Definition   string `json:"definition,omitempty"`
	Cached       bool   `json:"cached,omitempty"`        // known from an earlier run; the server has not answered yet
	RegistryOnly bool   `json:"registry_only,omitempty"` // only the definition is known; the tool cannot be called
}

// Definition holds the typed definition of one tool.
type Definition struct {
	Name       string `json:"name"`
	Definition string `json:"definition"`
}

func newFound(f core.FoundTools) Found {
	return Found{convertAll(f.Tools, newFoundTool), f.Total, f.Others, f.More, f.Warnings}
}
func newFoundTool(t core.FoundTool) FoundTool        { return FoundTool(t) }
func newDefinition(d core.ToolDefinition) Definition { return Definition(d) }

// Approval holds a question that waits for a person. Text has everything that the person must see to decide.
type Approval struct {
	ID        string          `json:"id,omitempty"`
	Digest    string          `json:"digest,omitempty"` // digest of this question; an answer is valid only with it
	Created   time.Time       `json:"created,omitzero"`
	Expires   time.Time       `json:"expires,omitzero"`
	Count     int             `json:"count,omitempty"` // number of calls that a given approval covered
	By        string          `json:"by,omitempty"`    // how it was given: "client", "terminal", "command line", "webhook"
	Scope     Scope           `json:"scope,omitempty"` // scope of a given approval
	Execution string          `json:"execution_id,omitempty"`
	Session   string          `json:"session,omitempty"`
	Principal string          `json:"principal,omitempty"`
	Client    string          `json:"client,omitempty"` // name and version of the MCP client
	Language  Language        `json:"language,omitempty"`
	Code      string          `json:"code,omitempty"`      // the program as written; empty for a call without one
	Server    string          `json:"server,omitempty"`    // server of the call; empty for a question about a program
	Tool      string          `json:"tool,omitempty"`      // tool of the call
	Arguments json.RawMessage `json:"arguments,omitempty"` // complete, as they will be sent
	Effect    string          `json:"effect,omitempty"`    // effect of the call: "write" or "irreversible"
	Effects   []ToolCall      `json:"effects,omitempty"`   // calls that an approval allows, each once (dry run or approve)
	Start     bool            `json:"start,omitempty"`     // the program has not started; Effects are the calls it is expected to make
	Purpose   string          `json:"purpose,omitempty"`   // purpose of these calls according to the program
	Rule      string          `json:"rule,omitempty"`      // the setting that requires approval
	Risk      int             `json:"risk,omitempty"`      // risk score of the program, 0 to 100
	Level     string          `json:"level,omitempty"`     // risk level: "low" to "critical"
	Reasons   []string        `json:"reasons,omitempty"`   // reasons for the risk, the most important first
	Login     string          `json:"login,omitempty"`     // address that the person must open to log in at Server
	Text      string          `json:"-"`                   // for the person; invisible and misleading characters are escaped
}

func newApproval(a core.Approval) Approval {
	return Approval{
		ID: a.ID, Digest: a.Digest, Created: a.Created, Expires: a.Expires, Count: a.Count, By: a.By, Scope: Scope(a.Scope),
		Purpose: a.Purpose, Start: a.Start, Execution: a.Execution, Session: a.Session, Principal: a.Principal, Client: a.Client,
		Language: Language(a.Language), Code: a.Code, Server: a.Server, Tool: a.Tool,
		Arguments: a.Arguments, Effect: a.Effect, Effects: convertAll(a.Effects, newIntendedCall), Rule: a.Rule, Risk: a.Risk,
		Level: a.Level, Reasons: a.Reasons, Login: a.Login, Text: a.RenderText(),
	}
}

// Scope says which later calls an approval covers, and for how long.
type Scope string

// Scopes of an approval. ScopeOnce, ScopeRun and ScopeAlways each include the ones before.
const (
	ScopeOnce   Scope = "once"   // only this call or program, or the calls that the question lists
	ScopeEach   Scope = "each"   // only for questions before a program starts: it may start, and each call is asked about
	ScopeRun    Scope = "run"    // also calls of the same tool with arguments of the same shape in this execution
	ScopeAlways Scope = "always" // also in later executions, until the tool's definition or the policy changes
)

// Answer holds a person's decision.
type Answer struct {
	Approve bool
	Scope   Scope  // of an approval; ScopeOnce if empty
	Calls   int    // with ScopeRun: how many calls of a tool are covered, including those of the question; 0: all
	Note    string // reason of a refusal, for the model
}

func (a Answer) internal() core.ApprovalAnswer {
	return core.ApprovalAnswer{Approve: a.Approve, Scope: core.ApprovalScope(a.Scope), Calls: a.Calls, Note: a.Note}
}

// Channel asks the person at the client of an execution. It returns false if nobody could be asked. ctx ends when the
// answer is no longer needed.
type Channel func(ctx context.Context, a Approval) (Answer, bool)

// WithChannel returns a context whose executions also ask for approval through c, in addition to other channels.
func WithChannel(ctx context.Context, c Channel) context.Context {
	if c == nil {
		return core.WithChannel(ctx, nil)
	}
	return core.WithChannel(ctx, func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		answer, asked := c(ctx, newApproval(a))
		return answer.internal(), asked
	})
}

// Job represents a program in the job queue, with its progress and result.
type Job struct {
	ID                      string // also the ID of its execution
	Status                  string // "queued", "running", "pending_approval", or the Status of its Outcome
	Principal               string // principal that submitted it
	Session                 string
	Position                int       // among the waiting jobs of its principal; 1 is next
	Submitted, Begun, Ended time.Time // zero as long as it has not happened
	Outcome                 *Outcome  // nil until the job has ended
}

func newJob(s core.JobState) Job {
	job := Job{
		ID: s.ID, Status: string(s.Status), Principal: s.Principal, Session: s.Session, Position: s.Position,
		Submitted: s.Submitted, Begun: s.Begun, Ended: s.Ended,
	}
	if s.Outcome != nil {
		o := newOutcome(*s.Outcome)
		job.Outcome = &o
	}
	return job
}

// Stats has the counts that Engine.Stats returns.
type Stats struct {
	Servers          int // configured or statically defined servers
	Ready            int // servers that have answered
	Tools            int
	DefinitionTokens int // tokens of all tools' definitions
	Skills           int
	Executions       int // since this engine was opened
	Running          int // executions that have not ended
	ToolCalls        int
	Tokens           TokenStats
}

func newStats(stats any) Stats {
	s, _ := stats.(engine.Stats)
	return Stats{
		s.Servers, s.Ready, s.Tools, s.Tokens, s.Skills, s.Executions.Total, s.Executions.Active, s.Executions.ToolCalls,
		TokenStats(s.Executions.Tokens),
	}
}
