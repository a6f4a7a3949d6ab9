// Package pipeline runs a program through its phases in order: search, bindings, check, approval, sandbox, relay,
// report. This order is defined only here, in runPhases.
package pipeline

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
	"retort/internal/egress"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
	"retort/internal/pipeline/relay"
	"retort/internal/pipeline/report"
	"retort/internal/pipeline/search"
	"retort/internal/policy"
	"retort/internal/privacy/redact"
	"retort/internal/sandbox"
	"retort/internal/skills"
	ledger "retort/internal/tokens"
	"retort/internal/workspace"
)

// ToolSource provides the current set of all tools.
type ToolSource interface {
	// Toolset returns the tools known now.
	Toolset() *core.Toolset
	// PendingServers returns the names of the servers that have not listed their tools yet.
	PendingServers() []string
	// WaitForPending waits until all servers have listed their tools, or until the duration patience has passed.
	WaitForPending(ctx context.Context, patience time.Duration)
	// FindDown returns the configured server that is probably meant by name and is down, which means that none of its
	// tools are known. The result why is the reason, or nil if there is no such server.
	FindDown(name string) (server string, why *core.Error)
	// VetTool checks whether the core.Caller of ctx may still call the tool t of an earlier Toolset, because the
	// tool's definition may have changed. The result now is the tool as the server lists it at present, or nil if
	// there is no definition to compare. A warning that is not empty must be added to the Outcome. VetTool may
	// request the server's tool list again. If since is not zero, the list must have been requested after that time.
	VetTool(ctx context.Context, t *core.Tool, since time.Time) (now *core.Tool, warning string, refused *core.Error)
	// CountTokens returns how many tokens the definitions of all tools take in a model's context.
	CountTokens(tools *core.Toolset) int
}

// AnswerLearner infers the result types of tools that do not declare them.
type AnswerLearner interface {
	// Learn infers types from a result that a program has received. It must not block. private reports whether a key
	// of an object is personal data; nil means that no key is.
	Learn(t *core.Tool, answer json.RawMessage, private func(key string) bool)
	// Infer returns the result type that an answer shows, together with what was learned before. It returns nil if a
	// model must not see any part of that type.
	Infer(t *core.Tool, answer json.RawMessage, private func(key string) bool) *core.LearnedSchema
	// Outline returns the names of the fields of an answer in short form, or "" if it has none.
	Outline(t *core.Tool, answer json.RawMessage, private func(key string) bool) string
}

// SecretMasker masks registered secrets in a text. JSON is still valid JSON afterwards.
type SecretMasker interface {
	Mask(text []byte) []byte
}

// ToolSearcher finds tools for a search query.
type ToolSearcher interface {
	Search(ctx context.Context, q search.SearchQuery) (search.SearchResult, error)
}

// ProgramChecker checks whether a program may run and prepares it for running.
type ProgramChecker interface {
	Check(ctx context.Context, req core.ExecutionRequest, tools *core.Toolset, skills source.SkillLibrary) (check.Verdict, *core.Error)
	// ExamineSkill checks a skill that has not been saved yet.
	ExamineSkill(ctx context.Context, skill core.Skill, tools *core.Toolset, others source.SkillLibrary) (check.SkillCheck, *core.Error)
}

// SandboxFactory creates sandboxes with the named backend, or with the configured one if no backend is named.
type SandboxFactory interface {
	// CheckAvailable returns the error with which Prepare would fail, as far as that is known in advance, or nil.
	CheckAvailable(backend string, s sandbox.SandboxSpec) *core.Error
	Prepare(ctx context.Context, backend string, s sandbox.SandboxSpec) (sandbox.Sandbox, error)
}

// Pipeline executes programs. All fields are required except Logins, Routing, Secrets, Privacy, Network, Learner,
// Outlines, Recorder, Watch, Tracer, Describer and KeptTokens.
type Pipeline struct {
	Tools      ToolSource
	Searcher   ToolSearcher
	Gate       ProgramChecker
	Sandboxes  SandboxFactory
	Relay      *relay.Relay
	Policy     *policy.PrincipalView // of the principal this pipeline executes for
	Logins     LoginPrompter         // nil: a call that needs a login fails
	Approvals  ApprovalOptions
	Flights    *RunningExecutions
	Ledger     *ledger.TokenLedger
	Workspaces *workspace.WorkspaceStore
	States     *workspace.StateStore
	Limits     core.Limits // the most that a request can have
	MaxTokens  int         // of an Outcome's result and output
	// DefinitionTokens bounds the definition of one tool that a model sees, in tokens. 0 means 4,000.
	DefinitionTokens int
	Runtime          string // for TypeScript and JavaScript
	Routing          SandboxRouting
	Secrets          SecretMasker
	Privacy          *redact.Redactor // nil hides nothing
	Network          *egress.Network  // what programs reach themselves; nil: nothing
	Skills           *skills.SkillStore
	// Prose removes suspicious parts, such as instructions to the model, from a text that a model will read.
	Prose   func(text string) (clean string, flagged []string)
	Learner AnswerLearner // nil: nothing is learned
	// Outlines keeps which results were described to which session. If nil, none are described.
	Outlines *ToldOutlines
	// Wrapper applies the project's template to a wrapper file, which contains the functions through which programs
	// call tools. If Wrapper is nil, the generated file is used unchanged.
	Wrapper func(lang core.Language, path, code string) string
	// Stub applies the project's template to the stub of a tool, which is its description for a model. If Stub is
	// nil, the generated description is used unchanged.
	Stub func(lang core.Language, t *core.Tool, name, definition string, full bool) string
	// Recorder writes the audit log. If nil, nothing is recorded.
	Recorder core.EventRecorder
	// Watch detects anomalies. If nil, nothing is checked.
	Watch AnomalyWatch
	// Tracer receives the duration of each step of an execution, such as the check of the program or a tool call. It
	// may be nil.
	Tracer core.Tracer
	// Describer describes results in natural language. If nil, summaries contain only Retort's own sentence.
	Describer ResultDescriber
	// Memory bounds the memory that results take. If nil, it is not bounded.
	Memory core.MemoryBudget
	// RestoreToModel lets the tool restore_pii return personal data in place of tokens to the model, if a person
	// approves.
	RestoreToModel bool
	// ShowInForms allows forms, with which a client asks a person, to contain the personal data that the tool
	// restore_pii shows.
	ShowInForms bool
	// KeptTokens is called if a session's file was copied with its tokens instead of the real values, or could not be
	// copied. The argument why is the reason. If KeptTokens is nil, no files are copied.
	KeptTokens func(session string, why error)
}

// startTimeout bounds how long the start of a program, or a call whose tool is unknown, waits for the servers that
// have not listed their tools yet.
const startTimeout = 10 * time.Second

// Toolset returns the tools that the policy lets this principal see. Search, descriptions, checks and calls all use
// this toolset.
func (p *Pipeline) Toolset() *core.Toolset { return p.Policy.VisibleToolset(p.Tools.Toolset()) }

// forNewExecution returns the pipeline for an execution that begins now. Later policy changes can only take
// permissions away from it.
func (p *Pipeline) forNewExecution() *Pipeline {
	lane := *p
	lane.Policy = p.Policy.FreezePolicy()
	return &lane
}

// Execute runs one program and returns its Outcome. If the program needs a person's approval and the current request
// cannot ask the person, Execute returns an Outcome with the status pending_approval. The execution then continues to
// wait for the person in the background.
func (p *Pipeline) Execute(ctx context.Context, req core.ExecutionRequest) core.Outcome {
	refused, asks := p.refuseExcess(req), req.Limits.Timeout
	p, req = p.forNewExecution(), p.completeRequest(req)
	if asks > p.Limits.Timeout {
		refused = tooLong(asks, p.Limits.Timeout)
	}
	what := map[string]any{"language": req.Language, "runtime": req.Runtime}
	return p.startExecution(ctx, req, what, requestBody{Code: req.Code}, func(ctx context.Context, own *execution) core.Outcome {
		if refused != nil {
			return core.Outcome{ExecutionID: req.ID, Status: core.StatusRejected, Error: refused}
		}
		return own.executeProgram(ctx)
	})
}

// tooLong refuses a request whose timeout exceeds the maximum.
func tooLong(asks, most time.Duration) *core.Error {
	return core.Errorf(
		core.KindInvalidArguments, "pipeline", "timeout_ms: %d exceeds the maximum of %d", asks.Milliseconds(),
		most.Milliseconds(),
	).
		WithHint("use at most %d, or leave it out; the setting maxExecutionTime sets the maximum", most.Milliseconds())
}

func (x *execution) executeProgram(ctx context.Context) core.Outcome {
	if x.req.DryRun {
		return x.dryRun(ctx)
	}
	return x.performProgram(ctx, nil)
}

// performProgram runs the program once. The argument plan is nil unless the request is a dry run. In the dry run
// itself, plan records the program's effects. In the run after the dry run was approved, plan allows only the
// approved effects.
func (x *execution) performProgram(ctx context.Context, plan *effectPlan) core.Outcome {
	ctx, free := x.withClaim(ctx)
	defer free()
	run, err := x.openProgram(plan)
	if err != nil {
		return run.failWith(err)
	}
	return run.runPhases(ctx)
}

// runPhases takes the program through the phases of the pipeline, from its check to its report. A program that does
// not pass the check, or is not approved, does not run.
func (x *programExecution) runPhases(ctx context.Context) core.Outcome {
	p := x.pipeline
	checked := x.req
	checked.Code = x.code
	verdict, refusal := x.checkProgram(ctx, checked)
	if err := x.recordVerdict(verdict, refusal); err != nil {
		return x.failWith(err)
	}
	if refusal != nil {
		return x.refuseWith(refusal)
	}
	x.risk, x.skills = &verdict.Risk, verdict.Skills
	x.noteOutdated()
	x.noteConsequence(verdict.Risk)
	spec := sandbox.SandboxSpec{
		Runtime: verdict.Runtime, Limits: x.req.Limits, Code: verdict.Program.Code,
		Floor: p.Routing.requiredFloor(verdict.Risk), Proxied: x.usesProxy(&verdict),
	}
	if refused := p.Sandboxes.CheckAvailable(x.req.Sandbox, spec); refused != nil { // a person is not asked about a program that cannot run
		return x.failWith(refused)
	}
	if refused := x.approveProgram(ctx); refused != nil {
		return x.failWith(refused)
	}
	if refused := x.approveExpectedCalls(ctx, verdict, spec); refused != nil {
		return x.failWith(refused)
	}
	sandbox, err := p.Sandboxes.Prepare(ctx, x.req.Sandbox, spec)
	if err != nil {
		return x.failWith(err)
	}
	defer sandbox.Close()
	verdict.Program.ID, verdict.Program.Limits = x.req.ID, x.req.Limits
	inside, ran := x.beginStep(ctx, core.StepSandbox, x.newEvent(core.EventVerdict))
	result, err := x.runInSandbox(inside, sandbox, verdict.Program)
	x.rehearsal.End()
	ran(core.AuditEvent{Status: string(result.Status)})
	if err != nil {
		return x.failWith(err)
	}
	if err := admitResult(ctx, len(result.Value)+len(result.Output)); err != nil {
		return x.failWith(err)
	}
	result = x.refusedNetwork(result)
	result.Error = verdict.LocateError(result.Error)
	if refused := x.halt.why(); refused != nil {
		result.Status, result.Error = core.StatusDenied, refused
	}
	if result.Status == core.StatusError && result.Error != nil && result.Error.IsDenial() {
		result.Status = core.StatusDenied
	}
	if result.Status == core.StatusError && ctx.Err() != nil {
		result.Status = core.StatusCancelled // a cancelled call threw before the sandbox noticed
	}
	result.Warnings = append(verdict.Warnings, result.Warnings...)
	o := report.MakeOutcome(result, x.reportOptions())
	o.Stats.SandboxWhy = spec.Floor.Why
	return x.closeWith(x.describeResult(ctx, o))
}

// runInSandbox runs a program in a sandbox that was prepared for it, and connects it to its tools, commands and network.
func (x *programExecution) runInSandbox(
	ctx context.Context, s sandbox.Sandbox, program core.CheckedProgram,
) (sandbox.RunReport, error) {
	inside, stop := context.WithCancel(ctx)
	defer stop()
	x.halt.begin(stop)
	x.attachCommands(s)
	host, disconnect := x.openNetwork()
	defer disconnect()
	return s.Run(inside, program, host)
}

// checkProgram checks the program. If the program names something unknown, or a tool of which only the definition is
// known, it waits for servers that have not listed their tools yet and checks again.
func (x *programExecution) checkProgram(ctx context.Context, req core.ExecutionRequest) (check.Verdict, *core.Error) {
	p := x.pipeline
	inside, judged := x.beginStep(ctx, core.StepGate, x.newEvent(core.EventVerdict))
	check := func() (check.Verdict, *core.Error) {
		verdict, refusal := p.Gate.Check(inside, req, x.tools, skillLibrary{x})
		if refusal == nil {
			refusal = refuseUncallable(x.tools, verdict)
		}
		return verdict, refusal
	}
	verdict, refusal := check()
	if refusal != nil && refusal.Kind != core.KindLimit && !refusal.IsDenial() && x.seesMore(inside) {
		verdict, refusal = check()
	}
	if refusal != nil && req.Guessed {
		refusal = source.RecognizeLanguage(req.Code).MarkGuessed(refusal)
	}
	judged(stepResult(refusal))
	return verdict, refusal
}

// Call makes one tool call without a program, through the same relay. Like Execute, it may wait for a person.
func (p *Pipeline) Call(ctx context.Context, req core.ExecutionRequest, name string, arguments json.RawMessage) core.Outcome {
	p, req = p.forNewExecution(), p.completeRequest(req)
	req.Code = ""
	what := map[string]any{"direct": true}
	return p.startExecution(ctx, req, what, requestBody{
		Name: name, Arguments: arguments,
	}, func(ctx context.Context, own *execution) core.Outcome {
		return own.executeCall(ctx, name, arguments)
	})
}

func (x *execution) executeCall(ctx context.Context, name string, arguments json.RawMessage) core.Outcome {
	ctx, free := x.withClaim(ctx)
	defer free()
	run, err := x.openCall()
	if err != nil {
		return run.failWith(err)
	}
	value, err := run.callDirectly(ctx, name, arguments)
	if err != nil {
		return run.failWith(err)
	}
	return run.closeWith(
		run.describeResult(ctx, report.MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: value}, run.reportOptions())),
	)
}

// openCall opens what a call without a program needs.
func (x *execution) openCall() (*programExecution, error) {
	run, err := x.openProgram(nil)
	if err != nil {
		return run, err
	}
	run.callTimeout = run.req.Limits.Timeout
	run.setTools(run.tools)
	return run, nil
}

// callDirectly makes the one call of an execution without a program, and returns its result.
func (x *programExecution) callDirectly(ctx context.Context, name string, arguments json.RawMessage) (json.RawMessage, error) {
	byName, err := json.Marshal(map[string]any{"name": name, "arguments": arguments})
	if err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "pipeline.call", "the arguments are not JSON: %v", err)
	}
	if refused := x.approveDirect(ctx, name, arguments); refused != nil {
		return nil, refused
	}
	call := core.ToolCall{Tool: "call", Arguments: byName}
	result, err := x.host.Call(ctx, call)
	if e := core.AsError(err); e != nil && e.Kind == core.KindToolNotFound && x.seesMore(ctx) {
		result, err = x.host.Call(ctx, call)
	}
	if err == nil {
		err = admitResult(ctx, len(result.Value))
	}
	return result.Value, err
}

// withClaim returns a context in which the memory that the execution uses counts towards the engine's memory budget.
// free gives this memory back to the budget.
func (x *execution) withClaim(ctx context.Context) (_ context.Context, free func()) {
	if x.pipeline.Memory == nil {
		return ctx, func() {}
	}
	ctx, claim := core.WithBudget(ctx, x.req.ID, x.pipeline.Memory)
	return ctx, claim.Free
}

// admitResult waits until the memory budget has room to prepare a result of n bytes for the model.
func admitResult(ctx context.Context, n int) error {
	if err := core.ClaimOf(ctx).AdmitReport(ctx, int64(n)); err != nil {
		return core.Errorf(core.KindCancelled, "pipeline", "cancelled while the result waited for memory: %w", err)
	}
	return nil
}

// programExecution holds the state of one request while it runs.
type programExecution struct {
	*execution
	tools     *core.Toolset
	files     *workspace.Workspace    // of the session
	draft     *workspace.Workspace    // what the program sees of it in a dry run; else nil
	state     *workspace.SessionState // a draft in a dry run
	plan      *effectPlan             // nil if effects are judged one by one
	granted   effectPlan              // calls that a person approved in advance, each once
	rehearsal *relay.Rehearsal        // the run before this one, whose answers it reuses; see approveExpectedCalls
	whole     *core.Toolset           // which include those that the request may reach
	code      string                  // of the request, with tokens in place of sealed data
	host      sandbox.ToolHost
	tally     *relay.CallCounter
	risk      *rules.ProgramRisk // of the program, once it has passed the gate
	riskNote  string             // its risk in words, if it has a consequence
	skills    []core.Skill       // that it uses, as they were checked
	entry     *ledger.LedgerEntry
	notes     warningList
	outlines  answerOutlines
	uncertain uncertainCalls
	made      madeCalls
	halt      programHalt
	judged    atomic.Int64 // calls that approve was given
	changes   changeSummary
	reach     networkReach    // what of the network the program may reach
	network   *egress.Session // of the program, during and after its run; nil without a program
	commands  *commandRunner

	crossed    allowedCrossings
	spokenOnce sync.Once
	spoken     func(value string) bool // reports whether a value occurs in the code; set by modelWrote

	approved atomic.Pointer[time.Time] // when a person last approved something; nil if nothing was asked

	callTimeout time.Duration            // of a call without a program
	exact       *core.PassthroughRequest // nil unless the answer is given back as it is
}

// openProgram opens the workspace, the state and everything else that one run of the program needs. The argument plan
// means the same as in performProgram.
func (x *execution) openProgram(plan *effectPlan) (*programExecution, error) {
	p, session := x.pipeline, x.pipeline.ownSessionName(x.req.Session)
	run := &programExecution{
		execution: x, plan: plan, reach: networkReach{whole: p.Network, view: p.Policy},
	}
	if run.isRehearsing() {
		run.entry = plan.expected.real.entry
	} else {
		run.entry = p.Ledger.Open(p.AccountName(x.req.Session))
	}
	x.run.Store(run)
	run.commands = &commandRunner{x: run, turn: make(chan struct{}, 1)}
	run.tools = run.visibleTools()
	files, err := p.Workspaces.Open(session)
	if err != nil {
		return run, err
	}
	run.files, run.state = files, p.States.StateFor(session)
	if err := run.openPrivacy(); err != nil {
		return run, err
	}
	if run.isDryRun() {
		if run.draft, err = files.NewDraft(); err != nil {
			return run, err
		}
		if run.state, err = run.state.NewDraft(); err != nil {
			return run, err
		}
	}
	run.setTools(run.tools)
	return run, nil
}

// ownSessionName returns the name under which a session's files and state are stored. It includes the principal, so
// that each principal has its own sessions.
func (p *Pipeline) ownSessionName(session string) string {
	if principal := p.Policy.Principal(); principal != "" {
		return redact.SessionName(principal, session)
	}
	return session
}

// AccountName returns the name of the account to which the tokens of a session are counted. For the person at this
// machine, it is the session's name, and "" stands for all sessions together. For other principals, it consists of
// the principal and the session.
func (p *Pipeline) AccountName(session string) string {
	if p.Policy.Principal() == "" {
		return session
	}
	return p.ownSessionName(cmp.Or(session, "default"))
}

// cacheScope returns the scope within which cached results of tool calls may be reused: one policy version, principal
// and session.
func (p *Pipeline) cacheScope(session string) string {
	return p.Policy.PolicyVersion() + "\x00" + redact.SessionName(p.Policy.Principal(), session)
}

func (x *programExecution) isDryRun() bool { return x.plan != nil && x.plan.rehearsal }

// visibleFiles returns the workspace that the program uses. In a dry run it is a draft whose changes are discarded.
func (x *programExecution) visibleFiles() *workspace.Workspace {
	if x.draft != nil {
		return x.draft
	}
	return x.files
}

// seesMore waits for servers that have not listed their tools yet. It reports whether the execution then sees other
// tools than before, and if so lets the execution use them.
func (x *programExecution) seesMore(ctx context.Context) bool {
	x.pipeline.Tools.WaitForPending(ctx, startTimeout)
	now := x.visibleTools()
	if now == x.tools {
		return false
	}
	x.setTools(now)
	return true
}

// setTools sets the tools that the execution can see and call, and prepares the relay to call them.
func (x *programExecution) setTools(tools *core.Toolset) {
	x.tools = tools
	host, tally := x.pipeline.Relay.Open(x.relayExecution(tools))
	x.host, x.tally = x.halt.guardHost(host), tally
}

// relayExecution returns what the relay needs to know about this execution to make calls of the given tools.
func (x *programExecution) relayExecution(tools *core.Toolset) relay.ExecutionContext {
	r := relay.ExecutionContext{
		ID: x.req.ID, Caller: x.newCaller(), Tools: tools, Policy: x.pipeline.Policy, Limits: x.req.Limits,
		Functions: x.pipeline.engineFunctions(x),
		Files:     workspaceFiles{x.visibleFiles()}, Supervisor: x, Recorder: x, Reporter: x,
		Scope: x.pipeline.cacheScope(x.req.Session), NoCache: x.req.NoCache,
		CallTimeout: x.callTimeout, Permit: x.permit, Revision: x.revision,
	}
	r.Privacy = privacyFilter{x.pipeline.Secrets, x.screen, x.countPersonal, x.noteTokens, x.modelWrote, &x.crossed}
	if x.isDryRun() {
		r.Rehearse = x.plan.recordIntended
	}
	r.Rehearsal = x.rehearsal
	if x.exact != nil {
		r.Exact, r.Method = true, x.exact.Method
	}
	if x.pipeline.Learner != nil {
		r.Learn = x.learnAnswer
	}
	if x.isRehearsing() {
		x.plan.expected.connect(&r)
	}
	return r
}

// RecordRefused implements relay.Recorder.
func (x *programExecution) RecordRefused(c core.ToolCall, refused *core.Error) {
	c.Rehearsal = x.isRehearsing()
	x.recordRefusal(c, refused)
}

// RecordQuestion implements relay.Recorder. It refuses questions beyond the bounds.
func (x *programExecution) RecordQuestion(a core.ServerRequest) (came func(json.RawMessage, *core.Error), refused *core.Error) {
	return x.admitServerRequest(a)
}

// AddCarried implements relay.Reporter.
func (x *programExecution) AddCarried(data []byte) { x.entry.AddCarried(data) }

// AddNote implements relay.Reporter.
func (x *programExecution) AddNote(text string) { x.notes.addWarning(text) }

// ReportProgress implements relay.Reporter.
func (x *programExecution) ReportProgress(calls int) {
	if x.req.Progress != nil && !x.isRehearsing() {
		x.req.Progress(calls)
	}
}

// newCaller returns the core.Caller for the execution's calls.
func (x *programExecution) newCaller() core.Caller {
	return core.Caller{Principal: x.pipeline.Policy.Principal(), Session: x.req.Session}
}

// workspaceFiles adapts a workspace to the interface that the relay uses.
type workspaceFiles struct{ *workspace.Workspace }

func (f workspaceFiles) Create(ctx context.Context, suffix string) (relay.IncomingFile, error) {
	in, err := f.Workspace.Create(ctx, suffix)
	if err != nil {
		return nil, err
	}
	return in, nil
}

// completeRequest fills in missing values of the request, and lowers the request's limits to the configured limits.
func (p *Pipeline) completeRequest(req core.ExecutionRequest) core.ExecutionRequest {
	if req.ID == "" {
		req.ID = strings.ToLower(rand.Text()[:13])
	}
	if req.Session == "" {
		req.Session = "default"
	}
	if req.Language == "" {
		req.Language, req.Guessed = source.RecognizeLanguage(req.Code).Language, true
	}
	if req.Runtime == "" {
		req.Runtime = p.Runtime
	}
	req.Limits = req.Limits.BoundedBy(p.Limits)
	return req
}

// LanguageOf returns the language that a request names, or else the language in which its program appears to be
// written.
func LanguageOf(req core.ExecutionRequest) core.Language {
	if req.Language == "" {
		return source.RecognizeLanguage(req.Code).Language
	}
	return req.Language
}

func (x *programExecution) refuseWith(e *core.Error) core.Outcome {
	return x.finishWith(sandbox.RunReport{Status: core.StatusRejected, Error: x.pipeline.explainUnknown(e)})
}

func (x *programExecution) failWith(err error) core.Outcome {
	e := x.pipeline.explainUnknown(core.AsError(err))
	return x.finishWith(sandbox.RunReport{Status: statusOf(e), Error: e})
}

func (x *programExecution) finishWith(r sandbox.RunReport) core.Outcome {
	return x.closeWith(report.MakeOutcome(r, x.reportOptions()))
}

// reportOptions returns the options for the execution's report.
func (x *programExecution) reportOptions() report.Options {
	o := report.Options{ID: x.req.ID, MaxTokens: x.pipeline.MaxTokens, Language: x.req.Language}
	if x.files != nil {
		o.Files = x.files
	}
	if x.screen != nil {
		o.Hide = x.screen.RedactText
	}
	return o
}

// statusOf returns the status of the Outcome of an execution that failed outside of its sandbox. e is the error.
func statusOf(e *core.Error) core.OutcomeStatus {
	switch e.Kind {
	case core.KindInvalidArguments, core.KindToolNotFound, core.KindSandboxUnavailable:
		return core.StatusRejected
	case core.KindPolicy, core.KindToolChanged:
		return core.StatusDenied
	case core.KindUpstreamTimeout:
		return core.StatusTimeout
	case core.KindCancelled:
		return core.StatusCancelled
	}
	return core.StatusError
}

// closeWith ends an execution: it completes the Outcome's warnings, summary and statistics, hides personal data in
// it, and closes the files.
func (x *programExecution) closeWith(o core.Outcome) core.Outcome {
	if x.tally != nil {
		o.Stats.ToolCalls, o.Stats.Tools = x.tally.CallCounts()
		o.Stats.CacheHits = x.tally.CacheHits()
	}
	if x.isDryRun() {
		o = x.addDryRun(o)
	}
	o.Warnings = append(o.Warnings, x.notes.said...)
	o.Summary, o.Risk, o.Learned = x.summarizeOutcome(o), x.riskNote, x.newOutlines()
	o = x.pipeline.addWarnings(o)
	o.Expired = o.Error != nil && errors.Is(o.Error, core.ErrUnanswered)
	o = x.hideOutcome(x.made.addTo(x.uncertain.addToOutcome(o)))
	if x.draft != nil {
		_ = x.draft.Close() // what remains is removed later
	}
	if x.files != nil {
		if !x.isDryRun() {
			x.pipeline.copyOut(x.req.Session, x.files)
		}
		_ = x.files.Close() // the written data is on disk already
	}
	if x.risk != nil {
		o.Stats.Risk = &x.risk.Score
	}
	x.entry.CloseOnce(&o, report.CountReturned(o), x.pipeline.Tools.CountTokens(x.tools))
	return o
}
