// Package agent runs agent tasks, which are tasks in natural language. It finds tools, asks a model for a program that
// uses them, and has the program checked and run. It returns errors to the model, so that the model can repair the
// program. The package does not trust the model's programs. They pass the same checks, policies and approvals as any
// other program. They can call only the tools that were offered. They cannot repeat a call with effects that an
// earlier program of the task has made.
package agent

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/agent/model"
	"retort/internal/agent/templates"
	"retort/internal/core"
)

// ToolFinder finds tools and skills.
type ToolFinder interface {
	// Settled waits for a limited time until every server has listed its tools or failed. It calls tell with a text
	// that names the servers for which it is waiting.
	Settled(ctx context.Context, tell func(text string))
	Search(ctx context.Context, q core.ToolQuery) (core.FoundTools, error)
	LoadSkill(name, version, session string) (core.LoadedSkill, *core.Error)
	// Offer describes the named tools for a model. If full is set, each description is the whole definition. Otherwise
	// it is a single line.
	Offer(ctx context.Context, names []string, lang core.Language, full bool) ([]core.OfferedTool, *core.Error)
}

// ProgramRunner checks and runs programs.
type ProgramRunner interface {
	Judge(ctx context.Context, req core.ExecutionRequest) *core.Error
	Execute(ctx context.Context, req core.ExecutionRequest) core.Outcome
	Resume(ctx context.Context, id string, patience time.Duration) core.Outcome
}

// TextRedactor removes from texts everything that a model must not see.
type TextRedactor interface {
	Text(session, text string) (string, *core.Error)
	JSON(session string, raw json.RawMessage) (json.RawMessage, *core.Error)
	// Cleaned returns a server's text without the parts that look like instructions to a model.
	Cleaned(text string) string
}

// ProgressRecorder records the phases of a task in the audit log. If it returns an error, the task must not continue.
type ProgressRecorder interface {
	RecordStep(session, phase string, facts map[string]any, text string) *core.Error
}

// PromptRenderer renders the texts of prompts.
type PromptRenderer interface {
	Render(name templates.TemplateName, data any) (string, *core.Error)
}

// TokenPrice holds the prices of a million input tokens and of a million output tokens.
type TokenPrice struct {
	Input, Output float64
	Currency      string
}

// Options limits the cost of a task. A field that is zero means the default.
type Options struct {
	Attempts  int // maximum number of programs per task
	Tools     int // maximum number of tools that are offered to the model
	Tokens    int // maximum number of tokens per task
	MaxTokens int // maximum number of tokens per answer
	Price     TokenPrice
}

func (o Options) withDefaults() Options {
	o.Attempts, o.Tools = cmp.Or(o.Attempts, core.DefaultTaskAttempts), cmp.Or(o.Tools, core.DefaultTaskTools)
	o.Tokens, o.MaxTokens = cmp.Or(o.Tokens, core.DefaultTaskTokens), cmp.Or(o.MaxTokens, core.DefaultModelTokens)
	return o
}

// Orchestrator runs the agent tasks of one principal. All fields except Options are required.
type Orchestrator struct {
	Finder    ToolFinder
	Runner    ProgramRunner
	Screen    TextRedactor
	Recorder  ProgressRecorder
	Templates PromptRenderer
	// Model returns the model that performs tasks in this context. It returns nil if no model is configured and the
	// client offers none.
	Model     func(ctx context.Context) model.Model
	Count     func(text string) int // returns the number of tokens of a text
	Parked    *ParkedTasks
	Principal string
	Options   Options
}

// Upper limits for the fields of a task.
const (
	maxDescription = 32 << 10 // maximum size of the description, in bytes
	maxInputs      = 256 << 10
	maxRequired    = 100
	maxSkills      = 3
)

// taskRun holds the state of one running task.
type taskRun struct {
	*Orchestrator
	id      string // generated id of the task in the audit log; also the id of an Outcome without a program
	task    core.AgentTask
	options Options
	model   model.Model
	effects *core.SideEffects

	shown   string          // description of the task, redacted for the model
	inputs  json.RawMessage // inputs of the task, redacted for the model
	found   core.FoundTools
	offers  []core.OfferedTool
	skills  []templates.SkillUse
	only    []string
	prompt  string
	answer  string // last answer of the model
	repair  string // repair prompt, which replies to answer
	code    string // last program
	attempt int
	full    map[string]bool // tools whose full definitions the model has received, by name
	use     core.ModelUse
}

// Run performs a task. If one of its programs waits for an approval and nobody can be asked during the request, the
// Outcome is pending. A call of Resume then continues the task.
func (o *Orchestrator) Run(ctx context.Context, t core.AgentTask) core.Outcome {
	id := cmp.Or(t.Job, strings.ToLower(rand.Text()[:13]))
	given := t.ID
	t.ID = cmp.Or(t.ID, id)
	t.Session, t.Language = cmp.Or(t.Session, "default"), cmp.Or(t.Language, core.TypeScript)
	w := &taskRun{Orchestrator: o, id: id, task: t, options: o.Options.withDefaults(), effects: &core.SideEffects{}, full: map[string]bool{}}
	w.options.Attempts = limitTo(t.Budget.Attempts, w.options.Attempts)
	w.options.Tokens = limitTo(t.Budget.Tokens, w.options.Tokens)
	if given != "" {
		if refused := core.CheckTaskID(given); refused != nil {
			w.task.ID = id
			return w.refusedOutcome(refused)
		}
	}
	if refused := w.checkTask(); refused != nil {
		return w.refusedOutcome(refused)
	}
	if t.Code != "" {
		return w.runGivenProgram(ctx)
	}
	return w.runTask(ctx)
}

// limitTo returns the value asked, but no more than most. If asked is zero or negative, it returns most.
func limitTo(asked, most int) int {
	if asked <= 0 {
		return most
	}
	return min(asked, most)
}

// checkTask returns an error if the task is invalid, for example because its description is too long.
func (w *taskRun) checkTask() *core.Error {
	wrong := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindInvalidArguments, "orchestrator", format, args...)
	}
	var inputs map[string]json.RawMessage
	switch t := w.task; {
	case strings.TrimSpace(t.Description) == "" && t.Code == "":
		return wrong("there is no task").WithHint("describe in words what to do")
	case len(t.Description) > maxDescription:
		return wrong("the task description exceeds %d KB", maxDescription>>10).WithHint("put large data into inputs, or into a file in the workspace")
	case len(t.Inputs) > maxInputs:
		return wrong("inputs exceed %d KB", maxInputs>>10).WithHint("write them to a file in the workspace, and name that file in the task")
	case len(t.Inputs) > 0 && (json.Unmarshal(t.Inputs, &inputs) != nil || inputs == nil):
		return wrong("inputs are not a JSON object")
	case len(t.RequiredTools) > maxRequired:
		return wrong("required_tools lists more than %d tools and servers", maxRequired)
	case !slices.Contains([]core.Language{core.TypeScript, core.JavaScript, core.Python}, t.Language):
		return wrong("unknown language %q", t.Language).WithHint("the language must be typescript or python")
	}
	return nil
}

// runTask performs a task, from the search for tools to the Outcome.
func (w *taskRun) runTask(ctx context.Context) core.Outcome {
	for _, step := range []func(context.Context) *core.Error{w.findTools, w.defineTools} {
		if refused := step(ctx); refused != nil {
			return w.refusedOutcome(refused)
		}
	}
	if w.model = w.Model(ctx); w.model == nil {
		return w.contextOutcome(ctx)
	}
	w.use.Name = w.model.Name()
	return w.tryPrograms(ctx)
}

// runGivenProgram runs the program that the user submitted with the task.
func (w *taskRun) runGivenProgram(ctx context.Context) core.Outcome {
	if _, refused := w.Finder.Offer(ctx, w.task.RequiredTools, w.task.Language, false); refused != nil {
		return w.refusedOutcome(refused)
	}
	w.only, w.code, w.attempt, w.options.Attempts = append([]string{}, w.task.RequiredTools...), w.task.Code, 1, 1
	return w.runProgram(ctx)
}

// recordPhase records in the audit log that the task enters a phase, and then reports the phase as progress.
func (w *taskRun) recordPhase(p core.TaskPhase, facts map[string]any, text string) *core.Error {
	facts["task"] = w.id
	if w.attempt > 0 {
		facts["attempt"] = w.attempt
	}
	if refused := w.Recorder.RecordStep(w.task.Session, string(p), facts, w.task.Description); refused != nil {
		return refused
	}
	w.reportProgress(p, text)
	return nil
}

func (w *taskRun) reportProgress(p core.TaskPhase, text string) {
	if w.task.Progress != nil {
		w.task.Progress(core.TaskStep{Phase: p, Attempt: w.attempt, Text: text})
	}
}

// refusedOutcome returns the Outcome of a task that cannot start or continue because of the error e.
func (w *taskRun) refusedOutcome(e *core.Error) core.Outcome {
	o := core.Outcome{ExecutionID: w.id, Status: core.StatusError, Error: e}
	switch e.Kind {
	case core.KindInvalidArguments, core.KindToolNotFound:
		o.Status = core.StatusRejected
	case core.KindPolicy:
		o.Status = core.StatusDenied
	case core.KindCancelled:
		o.Status = core.StatusCancelled
	case core.KindUpstreamTimeout:
		o.Status = core.StatusTimeout
	}
	return w.finishTask(o)
}

// finishTask adds the task's data to an Outcome, such as its id, cost and calls with effects. It also records the
// Outcome in the audit log. The task ends, unless the Outcome is pending.
func (w *taskRun) finishTask(o core.Outcome) core.Outcome {
	o.Task, o.Attempts = w.task.ID, w.attempt
	if o.Summary == "" && o.Status != core.StatusPendingApproval {
		o.Summary = "No program of the agent task has ended."
	}
	if w.model != nil {
		o.Program = w.code
		use := w.use
		use.Cost = (float64(use.InputTokens)*w.options.Price.Input + float64(use.OutputTokens)*w.options.Price.Output) / 1e6
		if use.Cost > 0 {
			use.Currency = w.options.Price.Currency
		}
		o.Stats.Model = &use
	}
	if o.Status != core.StatusOK && o.Status != core.StatusPendingApproval {
		o.Calls = nil // all calls that were sent are listed
	}
	for _, m := range w.effects.ListEffects() {
		if m.Execution != o.ExecutionID || o.Status != core.StatusOK && o.Status != core.StatusPendingApproval {
			o.Calls = append(o.Calls, core.SentCall{Server: m.Server, Tool: m.Tool, Arguments: boundResult(m.Shown)})
		}
	}
	for _, text := range w.found.Warnings {
		if !slices.Contains(o.Warnings, text) {
			o.Warnings = append(o.Warnings, text)
		}
	}
	facts := map[string]any{"status": string(o.Status), "execution": o.ExecutionID, "effects": len(w.effects.ListEffects())}
	if w.model != nil {
		facts["model"], facts["input_tokens"], facts["output_tokens"] = w.use.Name, w.use.InputTokens, w.use.OutputTokens
	}
	if refused := w.recordPhase(core.PhaseReport, facts, string(o.Status)); refused != nil {
		o.Warnings = append(o.Warnings, refused.Message)
	}
	return o
}

// maxArgumentBytes bounds the arguments of an earlier call in a prompt, in bytes. Larger arguments are left out.
const maxArgumentBytes = 2 << 10

func boundResult(raw json.RawMessage) json.RawMessage {
	if len(raw) <= maxArgumentBytes {
		return raw
	}
	return json.RawMessage(`"(left out: large)"`)
}

// ParkedTasks holds the tasks whose program is waiting for a person's approval. The zero value is ready to use. It is
// safe for concurrent use.
type ParkedTasks struct {
	mu    sync.Mutex
	works map[string]*parkedTask
	order []string
}

type parkedTask struct {
	mu        sync.Mutex // held while the task is resumed, so that only one caller resumes it
	work      *taskRun
	principal string
}

// maxParked bounds the number of tasks in ParkedTasks. If there are more, the oldest one is dropped. Its program can
// still be approved, but is not repaired if it fails.
const maxParked = 256

func (p *ParkedTasks) putTask(id string, w *taskRun) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.works == nil {
		p.works = map[string]*parkedTask{}
	}
	p.works[id] = &parkedTask{work: w, principal: w.Principal}
	p.order = append(p.order, id)
	for len(p.works) > maxParked {
		delete(p.works, p.order[0])
		p.order = p.order[1:]
	}
}

func (p *ParkedTasks) getTask(id, principal string) *parkedTask {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w := p.works[id]; w != nil && w.principal == principal {
		return w
	}
	return nil
}

func (p *ParkedTasks) removeTask(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.works, id)
	p.order = slices.DeleteFunc(p.order, func(o string) bool { return o == id })
}
