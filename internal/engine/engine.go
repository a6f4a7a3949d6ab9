// Package engine joins the parts of Retort: it reads the settings, builds every part from them, and serves clients. The
// Go API in the root of the module and the command use it.
package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/mcp/client"
	"retort/internal/mcp/server"
	"retort/internal/pipeline"
)

// Version is the version of this module.
const Version = "0.1.0"

// Aliases of the types that the engine's methods use.
type (
	Request     = core.ExecutionRequest // a request to execute one program
	Outcome     = core.Outcome          // the result or error of an execution
	Status      = core.OutcomeStatus    // the status of an Outcome
	Limits      = core.Limits           // the limits of one execution
	Error       = core.Error            // the type of all errors
	Query       = core.ToolQuery        // a search for tools
	Found       = core.FoundTools       // the result of a search
	Definition  = core.ToolDefinition   // the typed definition of a tool
	Approval    = core.Approval         // a question that waits for a person
	Answer      = core.ApprovalAnswer   // the person's decision
	Scope       = core.ApprovalScope    // the later calls that an approval also covers
	FileWritten = core.FileWritten      // the result of writing a file
	FilePart    = core.FilePart         // a part of a file's content
	FileList    = core.FileList         // a list of files in a workspace
	Channel     = core.ApprovalChannel  // a way to ask the client's user for approval
	Server      = client.ServerSpec     // how a server is started or reached
)

// Scopes of an approval.
const (
	ScopeOnce   = core.ScopeOnce   // only this call
	ScopeRun    = core.ScopeRun    // also later calls of the same tool in this execution
	ScopeAlways = core.ScopeAlways // also later calls of this tool with arguments of the same form, in all executions
)

// WithChannel returns a context whose executions also ask c for approval.
func WithChannel(ctx context.Context, c Channel) context.Context { return core.WithChannel(ctx, c) }

// Engine runs programs against MCP servers. Open returns an engine without a principal, As one that is restricted
// to a principal. It is safe for concurrent use.
type Engine struct {
	*assembly                    // shared by the engines of all principals
	pipeline  *pipeline.Pipeline // applies the policy of the engine's principal
}

// Open reads the configuration and opens an engine. It connects to servers in the background, and does not wait
// for them: tools known from an earlier run are available when it returns. If the configuration is wrong, the
// error is a *Error of kind invalid_arguments.
func Open(ctx context.Context, c Config) (*Engine, error) {
	files := config.NewWatcher(c.readConfig)
	loaded, err := files.LoadFirst()
	if err != nil {
		return nil, err
	}
	all, err := assemble(ctx, c, loaded, files)
	if err != nil {
		return nil, err
	}
	return &Engine{all, all.execution.pipeline}, nil
}

// LimitMemory sets the soft memory limit of this process's Go runtime to the setting memory, unless the environment
// variable GOMEMLIMIT is set. It should be called once, and only by a process whose main work is one engine.
func (e *Engine) LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(e.tools.memory.LimitBytes())
	}
}

// ShareProcessors raises GOMAXPROCS to 4 on machines with fewer processors, unless the environment variable is set.
// Large results can occupy all processors, and the Go runtime then checks for input only every 10 ms, which delays
// small calls. With more threads than processors, the operating system favors the threads that have waited. It should
// be called once, after Open, and only by a process whose main work is one engine.
func (e *Engine) ShareProcessors() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

// As returns the engine for one principal, restricted to what the settings allow that principal and the members of
// these groups to see and call. It shares all parts with e, so only the engine returned by Open must be closed.
func (e *Engine) As(principal string, groups ...string) *Engine {
	own := *e.execution.pipeline
	own.Policy = e.policy.ViewFor(principal, groups...)
	return &Engine{e.assembly, &own}
}

// Execute runs one program. The Outcome holds its result or its error.
func (e *Engine) Execute(ctx context.Context, r Request) Outcome {
	e.execution.warm(pipeline.LanguageOf(r))
	return e.logOutcome("executed", e.pipeline.Execute(ctx, r))
}

// Resume waits for the Outcome of an execution that returned as pending. If a person does not answer within patience,
// the returned Outcome is pending again.
func (e *Engine) Resume(ctx context.Context, id string, patience time.Duration) Outcome {
	if o, ok := e.resumeTask(ctx, id, patience); ok {
		return e.logOutcome("resumed", o)
	}
	if o := e.orchestrator(); o.IsWaiting(id) {
		return e.logOutcome("resumed", o.Resume(ctx, id, patience))
	}
	return e.logOutcome("resumed", e.pipeline.Resume(ctx, id, patience))
}

// cancelWait bounds how long CancelExecution waits for the end of an execution.
const cancelWait = 10 * time.Second

// CancelExecution cancels an execution that returned as pending, and returns its Outcome. For a program of an
// agent task, that is the Outcome of the task. The Outcome lists the calls that were already sent.
func (e *Engine) CancelExecution(ctx context.Context, id string) Outcome {
	e.pipeline.StopExecution(id)
	return e.Resume(core.WithChannel(ctx, nil), id, cancelWait)
}

// Waiting returns the questions that wait for a person, oldest first: those of one execution, of all programs of one
// task, or of everything if execution is empty. The engine of one principal returns only that principal's questions.
func (e *Engine) Waiting(execution string) []Approval {
	waiting, principal := e.pipeline.Approvals.Table.ListWaiting(""), e.pipeline.Policy.Principal()
	if execution != "" {
		waiting = slices.DeleteFunc(
			waiting, func(a Approval) bool { return a.Execution != execution && !core.IsProgramOf(a.Execution, execution) },
		)
	}
	if principal == "" {
		return waiting
	}
	return slices.DeleteFunc(waiting, func(a Approval) bool { return a.Principal != principal })
}

// Decide answers a waiting question. The caller acts for the person who decides. digest is the digest of the question
// as the person saw it. After an error the answer has no effect. The engine of one principal can answer only the
// questions that Waiting returns.
func (e *Engine) Decide(id, digest string, a Answer) error {
	if e.pipeline.Policy.Principal() != "" && !slices.ContainsFunc(e.Waiting(""), func(w Approval) bool { return w.ID == id }) {
		return core.Errorf(core.KindInvalidArguments, "approval", "no approval request has the id %q: it was answered, expired, or was cancelled", id)
	}
	if err := e.pipeline.Approvals.Table.AnswerApproval(id, digest, a); err != nil {
		return err
	}
	return nil
}

// Search returns the tools that match a description of what they do.
func (e *Engine) Search(ctx context.Context, q Query) (Found, error) {
	found, err := e.pipeline.Search(ctx, q)
	e.log.Debug("searched", "found", len(found.Tools)+len(found.Others), "total", found.Total)
	if err != nil {
		return found, err
	}
	return plainError(found, e.pipeline.RecordLookup("search", q.Text, len(found.Tools)+len(found.Others)))
}

// Describe returns the typed definitions of tools, whose names may have any spelling. The server's name can be
// omitted if no other server has a tool of that name.
func (e *Engine) Describe(ctx context.Context, names []string, lang core.Language) ([]Definition, error) {
	return e.DescribeIn(ctx, "", names, lang)
}

// DescribeIn is like Describe, restricted to the tools of a category.
func (e *Engine) DescribeIn(ctx context.Context, category string, names []string, lang core.Language) ([]Definition, error) {
	definitions, err := e.pipeline.Describe(ctx, names, category, lang)
	if err != nil {
		return definitions, err
	}
	return plainError(definitions, e.pipeline.RecordLookup("describe", strings.Join(names, " "), len(definitions)))
}

// Sanitize replaces the personal values in a text by tokens. It also returns the number of values by type. The tokens
// are valid in the session.
func (e *Engine) Sanitize(session, text string) (string, map[string]int, error) {
	return e.pipeline.SanitizeText(sessionName(session), e.secrets.MaskString(text))
}

// WriteFile writes a file of a session's workspace or, if appends is true, appends to it. encoding is utf8 or base64.
func (e *Engine) WriteFile(session, name, content, encoding string, appends bool) (FileWritten, error) {
	return e.pipeline.WriteFile(sessionName(session), name, content, encoding, appends)
}

// ReadFile returns at most limit bytes of a file, beginning at offset, as a model may see them. A limit of 0 means
// some thousand bytes.
func (e *Engine) ReadFile(session, name string, offset, limit int64, encoding string) (FilePart, error) {
	part, err := e.pipeline.ReadFile(sessionName(session), name, offset, limit, encoding)
	part.Content = e.secrets.MaskString(part.Content)
	return part, err
}

// ListFiles lists the files of a session's workspace below a folder that match a glob.
func (e *Engine) ListFiles(session, below, glob string) (FileList, error) {
	return e.pipeline.ListFiles(sessionName(session), below, glob)
}

// Restore shows a person the values behind the tokens in a text. The Outcome contains the values only if the settings
// allow that.
func (e *Engine) Restore(ctx context.Context, r Request, text string) Outcome {
	return e.logOutcome("restored", e.pipeline.Restore(ctx, r, text))
}

// Show replaces the tokens in an Outcome by their values. The result is for a person and must never reach a model.
func (e *Engine) Show(session string, o Outcome) (Outcome, error) {
	return e.pipeline.ShowValues(sessionName(session), o)
}

// sessionName returns the name of a session. An empty name means the session "default".
func sessionName(name string) string { return cmp.Or(name, "default") }

// Call makes one tool call without a program. It uses only Session and Limits of the request.
func (e *Engine) Call(ctx context.Context, r Request, name string, arguments json.RawMessage) Outcome {
	return e.logOutcome("called", e.pipeline.Call(ctx, r, name, arguments))
}

// Sample makes one call of a tool that only reads, and returns an Outcome whose result is the tool's Definition with
// the type of the call's result.
func (e *Engine) Sample(ctx context.Context, r Request, s core.SampleRequest) Outcome {
	return e.logOutcome("sampled", e.pipeline.Sample(ctx, r, s))
}

// logOutcome logs the end of an execution and returns its Outcome without secrets. Internal errors are logged as
// warnings.
func (e *Engine) logOutcome(what string, o Outcome) Outcome {
	o = maskOutcome(e.secrets, o)
	level, kind := slog.LevelInfo, core.Kind("")
	if o.Error != nil {
		kind = o.Error.Kind
	}
	if kind == core.KindInternal {
		level = slog.LevelWarn
	}
	var trace []any
	if o.Trace != "" {
		trace = []any{"trace", o.Trace}
	}
	e.log.With(trace...).Log(context.Background(), level, what, "id", o.ExecutionID, "status", o.Status, "kind", kind,
		"ms", o.Stats.DurationMS, "calls", o.Stats.ToolCalls)
	return o
}

// Serve answers one MCP client over a stream of newline-delimited JSON, until
// the stream ends or ctx is done.
func (e *Engine) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, lean bool) error {
	s, err := server.New(e, server.Options{Version: Version, Lean: lean, Sandboxes: config.SandboxNames(), Timeout: e.pipeline.Limits.Timeout, Log: e.log})
	if err != nil {
		return err
	}
	e.startWorking()
	e.background.reloader.start()
	defer s.Close()
	return s.ServeLines(ctx, in, out)
}

// Close ends all programs, connections and server processes.
func (e *Engine) Close() error { return e.assembly.Close() }
