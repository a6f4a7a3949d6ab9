package core

import (
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

// AgentTask describes a task in natural language, for which a model writes programs.
type AgentTask struct {
	ID            string // made if empty; see CheckTaskID. Outcomes and lists of tasks have it
	Description   string
	Language      Language        // of the program; TypeScript if empty
	RequiredTools []string        // tools in any spelling, or servers: "github", "github.*". If there are any, the program reaches these alone
	Inputs        json.RawMessage `json:",omitempty"` // an object, which the program has as the constant inputs
	Code          string          // a program: no model is asked, and it reaches RequiredTools alone
	Budget        TaskBudget
	Session       string // "default" if empty
	Client        string // name and version of the MCP client, if any
	// Progress is called with each step. It may be nil, must not block and may be called from several goroutines.
	Progress func(TaskStep) `json:"-"`
	// Job is the id of the job that performs the task. It is empty for a task that is not in the queue. The task's programs are named after the job,
	// and calls that may have effects are stored on disk before they are sent.
	Job string `json:"-"`
}

// maxTaskID bounds the TraceID that a caller gives an agent task, in bytes.
const maxTaskID = 64

// CheckTaskID returns an error unless id is a valid id for an agent task: up to 64 letters, digits, dots, hyphens and
// underscores, beginning with a letter or digit.
func CheckTaskID(id string) *Error {
	plain := strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
	if id == "" || len(id) > maxTaskID || !plain || strings.ContainsAny(id[:1], "._-") {
		return Errorf(KindInvalidArguments, "run.task", "%q cannot be the id of a task", EscapeIllegible(id[:min(len(id), maxTaskID)])).
			WithHint("use up to %d letters, digits, dots, hyphens and underscores, such as my-task; or give no id", maxTaskID)
	}
	return nil
}

// TaskBudget holds the limits of one agent task. A field that is zero means the configured limit. A task can never
// exceed the configured limits.
type TaskBudget struct {
	Tokens   int    // of the model, read and written, in all attempts
	Attempts int    // programs
	Limits   Limits // of each program
}

// TaskPhase names a phase of an agent task.
type TaskPhase string

// The phases of an agent task in their order. When a program is repaired, the last three are repeated.
const (
	PhaseDiscover TaskPhase = "discover" // tools and skills are found
	PhaseDefine   TaskPhase = "define"   // as much of their definitions as is needed
	PhaseWrite    TaskPhase = "write"    // a model writes a program
	PhaseRun      TaskPhase = "run"      // the program is checked, and runs
	PhaseReport   TaskPhase = "report"   // what came of it
)

// PhaseQueue means that the task still waits in the queue.
const PhaseQueue TaskPhase = "queue"

// TaskPhases returns the phases of an agent task in their order.
func TaskPhases() []TaskPhase {
	return []TaskPhase{PhaseDiscover, PhaseDefine, PhaseWrite, PhaseRun, PhaseReport}
}

// TaskStep describes how far an agent task has got.
type TaskStep struct {
	Phase   TaskPhase
	Attempt int    // 0 before the first program
	Text    string // in words
}

// TaskContext contains the information from which the caller's model can write the program of an agent task.
type TaskContext struct {
	Tools       []FoundTool      `json:"tools"`            // Tools that fit the task.
	Skills      []FoundSkill     `json:"skills,omitempty"` // Skills that fit the task.
	Definitions []ToolDefinition `json:"definitions"`      // Typed definitions of these tools.
	Skeleton    string           `json:"skeleton"`         // A program that passes the checks, to begin with.
}

// ModelUse counts how a model was used for an agent task.
type ModelUse struct {
	Name         string  `json:"name"`                // The model.
	Requests     int     `json:"requests"`            // How many requests were sent to it.
	InputTokens  int     `json:"input_tokens"`        // The tokens that it read.
	OutputTokens int     `json:"output_tokens"`       // The tokens that it wrote.
	Estimated    bool    `json:"estimated,omitempty"` // Retort counted the tokens, because the provider did not report them.
	Cost         float64 `json:"cost,omitempty"`      // The cost at the prices in the settings.
	Currency     string  `json:"currency,omitempty"`  // The currency of the cost.
}

// OfferedTool describes a tool of an agent task for a model.
type OfferedTool struct {
	FoundTool
	Effect string // "read", "write", "irreversible"
	Whole  bool   // it was named by its server, which has other tools, too
}

// Values of SideEffect.State: what the engine knows about the result of a call with effects. For example, it does not
// know the result after a crash.
const (
	MadeUnknown = "it was sent, and its result is not known"
	MadeOK      = "it was made"
	MadeFailed  = "the server answered with an error"
)

// SideEffect describes a call with effects that was sent.
type SideEffect struct {
	Execution    string
	Server, Tool string
	Key          string          // of its real arguments
	Shown        json.RawMessage // its arguments, as a model may see them
	State        string
}

// SideEffects collects the calls with effects of all executions of one agent task, so that one execution does not
// repeat the calls of another. The zero value is ready to use. A nil SideEffects stores nothing. It is safe for
// concurrent use.
type SideEffects struct {
	mu   sync.Mutex
	made []SideEffect
}

// KeyOf returns a key for the arguments of a call. Equal arguments have equal keys. The arguments must be in
// canonical JSON form.
func KeyOf(arguments []byte) string {
	sum := sha256.Sum256(arguments)
	return string(sum[:])
}

// RecordSent stores a call that is about to be sent. The returned function must be called with the result.
func (e *SideEffects) RecordSent(m SideEffect) (came func(err *Error)) {
	if e == nil {
		return func(*Error) {}
	}
	m.State = MadeUnknown
	e.mu.Lock()
	defer e.mu.Unlock()
	at := len(e.made)
	e.made = append(e.made, m)
	return func(err *Error) {
		e.mu.Lock()
		defer e.mu.Unlock()
		switch {
		case err == nil:
			e.made[at].State = MadeOK
		case err.Kind == KindToolError:
			e.made[at].State = MadeFailed
		}
	}
}

// FindEarlier returns earlier calls of the same tool by other executions of the task. same contains the calls with
// the same arguments. similar contains the calls with other arguments, except those that failed.
func (e *SideEffects) FindEarlier(execution string, m SideEffect) (same, similar []SideEffect) {
	for _, o := range e.ListEffects() {
		switch {
		case o.Execution == execution || o.Server != m.Server || o.Tool != m.Tool:
		case o.Key == m.Key:
			same = append(same, o)
		case o.State != MadeFailed:
			similar = append(similar, o)
		}
	}
	return same, similar
}

// ListEffects returns all calls that were sent, in order.
func (e *SideEffects) ListEffects() []SideEffect {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.made)
}
