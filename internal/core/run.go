// Package core defines the types that every part of Retort uses: programs, tools, calls, limits and outcomes. It
// imports only the standard library, and every package may import it.
package core

import (
	"encoding/json"
	"time"
)

// Language names a program's language.
type Language string

// Languages of programs.
const (
	TypeScript Language = "typescript"
	JavaScript Language = "javascript"
	Python     Language = "python"
)

// ExecutionRequest holds the request for one execution.
type ExecutionRequest struct {
	ID      string // unique; made by the pipeline if empty
	Session string // "default" if empty
	Client  string // name and version of the MCP client, if any
	// Model and ModelVersion name the model that wrote the code, as the client states it. They may be empty.
	Model, ModelVersion string
	Language            Language // recognized by the syntax of Code if empty
	Guessed             bool     // true if Language was recognized and not named
	Code                string   // as written, Markdown fences and all
	Name                string   // shown in error locations: "program.ts" if empty
	Sandbox             string   // backend asked for; empty = as configured
	Runtime             string   // for TypeScript and JavaScript: "quickjs", "node", "bun", "deno"; empty = as configured
	DryRun              bool
	NoCache             bool   // every call is made, whatever the cache holds
	Noted               bool   // calls that may have effects are stored on disk before they are sent, for questions after a crash
	Limits              Limits // zero fields mean the configured ones
	// ForceApproval requires an approval before the program runs, even if the settings approve it automatically.
	ForceApproval bool
	// AllowNetwork says whether the program may access the network. nil leaves that to the settings. true is refused
	// if the settings give programs no network access.
	AllowNetwork *bool
	// FilesystemScope restricts the files that the program sees: FilesWorkspace, FilesReadOnly, FilesNone, or a
	// folder such as ./workspace/reports. Empty means all files that the settings allow.
	FilesystemScope string
	// Private means that the reader of the Outcome did not write the code and must not learn personal data in it.
	Private bool
	// Only lists the tools that the program may call, in any spelling. nil allows all tools.
	Only []string
	// Effects has the calls with effects that earlier programs of the same agent task have made. Repeating one of
	// them needs approval. It may be nil.
	Effects *SideEffects
	// Progress is called with the number of tool calls made so far. It may be nil, must not block and may be called
	// from several goroutines.
	Progress func(calls int) `json:"-"`
}

// Values of ExecutionRequest.FilesystemScope, widest first.
const (
	FilesWorkspace = "workspace-only" // those of the session's workspace
	FilesReadOnly  = "read-only"      // the same, and none is written
	FilesNone      = "none"
)

// Limits bounds one execution. A field that is zero means the default, never "unlimited"; see DefaultLimits.
type Limits struct {
	Timeout     time.Duration // active time; waiting for a person is not counted
	Computing   time.Duration // of it, what the program itself may take: time in which it waits for tools or sleeps is not counted
	Memory      int64         // bytes of the program's heap
	CPU         float64       // cores
	Disk        int64         // bytes of workspace and temporary files
	Processes   int
	Output      int64 // bytes of console output
	Result      int64 // bytes of the returned value's JSON
	ToolCalls   int
	Concurrency int // tool calls under way at once
}

// DefaultLimits returns the limits that apply where neither the request nor the settings set one.
func DefaultLimits() Limits {
	return Limits{
		Timeout: 10 * time.Minute, Computing: 30 * time.Second, Memory: 512 << 20, CPU: 1, Disk: 1 << 30, Processes: 64,
		Output: 1 << 20, Result: 64 << 20, ToolCalls: 10_000, Concurrency: 64,
	}
}

// WithDefaults returns l with the defaults d in place of fields that are zero. If l sets Timeout but not Computing,
// Computing is at most Timeout.
func (l Limits) WithDefaults(d Limits) Limits {
	l.Computing = firstNonZero(firstNonZero(l.Computing, l.Timeout), d.Computing)
	l.Timeout = firstNonZero(l.Timeout, d.Timeout)
	l.Memory = firstNonZero(l.Memory, d.Memory)
	l.CPU = firstNonZero(l.CPU, d.CPU)
	l.Disk = firstNonZero(l.Disk, d.Disk)
	l.Processes = firstNonZero(l.Processes, d.Processes)
	l.Output = firstNonZero(l.Output, d.Output)
	l.Result = firstNonZero(l.Result, d.Result)
	l.ToolCalls = firstNonZero(l.ToolCalls, d.ToolCalls)
	l.Concurrency = firstNonZero(l.Concurrency, d.Concurrency)
	return l
}

// BoundedBy returns a copy of l in which no field exceeds the same field of the argument most. Larger fields, and
// fields that are zero, get the value that the field has in most.
func (l Limits) BoundedBy(most Limits) Limits {
	l = l.WithDefaults(most)
	l.Timeout = min(l.Timeout, most.Timeout)
	l.Computing = min(l.Computing, most.Computing)
	l.Memory = min(l.Memory, most.Memory)
	l.CPU = min(l.CPU, most.CPU)
	l.Disk = min(l.Disk, most.Disk)
	l.Processes = min(l.Processes, most.Processes)
	l.Output = min(l.Output, most.Output)
	l.Result = min(l.Result, most.Result)
	l.ToolCalls = min(l.ToolCalls, most.ToolCalls)
	l.Concurrency = min(l.Concurrency, most.Concurrency)
	return l
}

func firstNonZero[T comparable](a, b T) T {
	var zero T
	if a != zero {
		return a
	}
	return b
}

// CheckedProgram represents a program that has passed the check, ready for a sandbox to run.
type CheckedProgram struct {
	ID         string            // of the execution
	Name       string            // file name shown in stack traces
	Language   Language          // of Code: JavaScript for the JavaScript runtimes
	Code       string            // what the runtime evaluates, see package guest for its form
	Namespaces []ServerNamespace // the servers that the program can name
	Modules    []SkillModule     // the skills that it imports, and those that they import
	Limits     Limits            // complete
}

// ParsedProgram holds what an interpreter in a sandbox reports about a program that it has parsed. It is only as
// trustworthy as that sandbox.
type ParsedProgram struct {
	Known json.RawMessage // what only the interpreter knows, or why it could not be parsed
	Tree  []byte          // the syntax tree, in the interpreter's own format
	// Compiled waits until the interpreter has compiled the program, and returns its report. Calling it is optional.
	Compiled func() (json.RawMessage, error)
}

// ServerNamespace describes one server as a program sees it.
type ServerNamespace struct {
	Server    string         `json:"server"`           // as configured
	Global    string         `json:"global,omitempty"` // name of the global; empty when a built-in has that name
	Modules   []string       `json:"modules"`          // what follows "servers/" in imports that mean this server
	Functions []ToolFunction `json:"functions"`
}

// ToolFunction describes one tool as a member of a ServerNamespace.
type ToolFunction struct {
	Name   string   `json:"name"`   // identifier, as in listIssues
	Tool   string   `json:"tool"`   // raw name, as in list_issues
	Params []string `json:"params"` // the schema's properties, for positional arguments: in its order; in Python those that are needed first

	// What follows is for Python.

	Keywords []string          `json:"keywords,omitempty"` // how Params are spelled as keywords; nil if all as they are
	Also     map[string]string `json:"also,omitempty"`     // other spellings of keywords: snake_case → that of Params
	Nulls    []string          `json:"nulls,omitempty"`    // those of Params that accept null as a value; None omits the others
	Object   bool              `json:"object,omitempty"`   // the first of Params may itself be an object
}

// ToolCall is one call that a program makes. Server is the configured name of a server. If it is empty, Tool is one
// of the engine's own functions, such as "search_tools" or "read_file".
type ToolCall struct {
	Server    string
	Tool      string          // raw name
	Arguments json.RawMessage // a JSON object, exactly as the program gave it; with values for tokens once those are restored
	NoCache   bool            // no earlier answer counts
	Restored  bool            // values have replaced tokens in Arguments, so errors must not repeat them
	Crosses   string          // why a person is asked, as personal data goes where it does not come from; "" if it does not
	Approved  bool            `json:"-"` // a person has said yes to it, now or before
	// Rehearsal marks a call that only reads, made to find out what a person has to be asked about before the program
	// starts.
	Rehearsal bool `json:"-"`
}

// CallResult holds the value that a call returns to the program: one JSON value exactly as the server sent it,
// including the order of keys and the digits of numbers.
type CallResult struct {
	Value json.RawMessage
	Claim *MemoryClaim // the memory that Value holds; the last user of Value frees it
	// SavedFiles reports that the call saved files. Value must not be cached then, because the files may be deleted
	// before the cached value expires.
	SavedFiles bool
	// Provisional reports that Value is a placeholder, or was reused from a rehearsal. It must not be cached.
	Provisional bool
}
