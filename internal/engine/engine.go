// Package engine joins the parts of Retort: it reads the settings, builds every part from them, and serves clients. It
// is the engine behind the Go API in the root of the module and behind the command.
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

// The nouns of the engine.
type (
	// Types of the engine.
	Request     = core.ExecutionRequest // asks for one execution
	Outcome     = core.Outcome          // what comes back from it
	Status      = core.OutcomeStatus    // how it ended
	Limits      = core.Limits           // what bounds it
	Error       = core.Error            // the one error type
	Query       = core.ToolQuery        // asks for tools
	Found       = core.FoundTools       // what a search answers
	Definition  = core.ToolDefinition   // typed definition of a tool
	Approval    = core.Approval         // what waits for a person
	Answer      = core.ApprovalAnswer   // what the person decided
	Scope       = core.ApprovalScope    // how far a yes goes
	FileWritten = core.FileWritten      // what became of a file
	FilePart    = core.FilePart         // of a file
	FileList    = core.FileList         // the files of a workspace
	Channel     = core.ApprovalChannel  // asks the person at the other end of an execution
	Server      = client.ServerSpec
)

// Scopes of an approval.
const (
	ScopeOnce   = core.ScopeOnce   // for this one
	ScopeRun    = core.ScopeRun    // and for the rest of this kind, the same tool, in this run
	ScopeAlways = core.ScopeAlways // and for this tool with arguments of this shape
)

// WithChannel returns a context whose executions also ask for approval through c.
func WithChannel(ctx context.Context, c Channel) context.Context { return core.WithChannel(ctx, c) }

// Config selects the servers and how programs are run. The zero Config reads the same files as the command.
type Config struct {
	// Files lists client files with MCP servers and at most one retort.yaml. The README describes which files are
	// read if the list is empty.
	Files []string
	// Dir is the directory in which configuration files are searched; if empty, the working directory.
	Dir string
	// Home is the data directory, which stores workspaces and the catalog; if empty, it is chosen next to the
	// configuration files.
	Home string
	// Keys is the folder of the key that seals the decisions of people; if empty, it is in the user's own data
	// folder. No server should have write access to it.
	Keys string
	// NoFiles makes the engine read no configuration file: only Servers and Settings apply.
	NoFiles bool
	// NoReload makes Serve and Listen ignore changes of the files after Open. Otherwise they apply changes within a
	// second.
	NoReload bool
	// Servers lists servers in addition to those of the files. A name in both is an error.
	Servers []Server
	// Settings is the text of a retort.yaml. It replaces the one in a file.
	Settings string
	// Guest is the command that is started inside a sandbox: a program that calls Init first. If empty, it is the
	// running program.
	Guest []string
	// Limits overrides the limits of the settings in the fields that are not zero.
	Limits Limits
	// Reserve selects what the engine starts before a program needs it.
	Reserve Reserve
	// internet, in tests, replaces the network for requests of programs.
	internet internet
	// spoolAbove, in tests, is the size in bytes above which a result is written to a file. 0 means the default of
	// package client.
	spoolAbove int64
	// exitPatience, in tests, sets client.Options.ExitPatience.
	exitPatience time.Duration
	// Log receives the engine's log: failures at level warn; executions, calls and connections at info; searches at
	// debug. It contains no values of programs and tools. Its handler must not block. If Log is nil, nothing is
	// logged.
	Log *slog.Logger
}

// Reserve selects the sandboxes and compilers that an engine starts in advance, so that programs start faster. It
// does not limit how many programs can run.
type Reserve int

const (
	ReserveMany Reserve = iota // starts several sandboxes and a compiler when the engine opens, and another sandbox whenever one is taken
	ReserveOne                 // starts one sandbox when the engine opens, and a compiler with the first program
	ReserveNone                // starts nothing before a program needs it
)

// Engine runs programs against MCP servers. It is safe for concurrent use.
type Engine struct {
	*parts                      // shared by the engines of all principals
	pipeline *pipeline.Pipeline // with the policy of the engine's principal
}

// Open reads the configuration and opens an engine. It connects to servers in the background; tools known from an
// earlier run are available at once. If the configuration is wrong, the error is a *Error of kind invalid_arguments.
func Open(ctx context.Context, c Config) (*Engine, error) {
	files := config.NewWatcher(c.read)
	loaded, err := files.LoadFirst()
	if err != nil {
		return nil, err
	}
	p, err := assemble(ctx, c, loaded, files)
	if err != nil {
		return nil, err
	}
	return &Engine{p, p.pipeline}, nil
}

// LimitMemory sets the soft memory limit of this process's Go runtime to the setting memory, unless the variable
// GOMEMLIMIT is set. It is meant for processes with one engine and little else to do, which call it once.
func (e *Engine) LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(e.memory.LimitBytes())
	}
}

// ShareProcessors raises GOMAXPROCS to 4 on machines with fewer processors, unless the variable GOMAXPROCS is set.
// Large results can occupy all processors. The Go runtime then checks for input only every 10 ms, which delays small
// calls. With more threads than processors, the operating system schedules them and favors those that have waited.
// The number of large results processed at once does not change. It is meant for processes with one engine and little
// else to do, which call it once, after Open.
func (e *Engine) ShareProcessors() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

// As returns the engine for one principal, restricted to what the settings allow that principal to see and call. Only
// the engine returned by Open must be closed.
func (e *Engine) As(principal string) *Engine {
	own := *e.pipeline
	own.Policy = e.policy.ViewFor(principal)
	return &Engine{e.parts, &own}
}

// Execute runs one program. The Outcome holds its result or its error.
func (e *Engine) Execute(ctx context.Context, r Request) Outcome {
	e.warm(pipeline.LanguageOf(r))
	return e.logged("executed", e.pipeline.Execute(ctx, r))
}

// Resume waits for the Outcome of an execution that returned as pending. If a person does not answer within patience,
// the returned Outcome is pending again.
func (e *Engine) Resume(ctx context.Context, id string, patience time.Duration) Outcome {
	if o, ok := e.resumeTask(ctx, id, patience); ok {
		return e.logged("resumed", o)
	}
	if o := e.orchestrator(); o.IsWaiting(id) {
		return e.logged("resumed", o.Resume(ctx, id, patience))
	}
	return e.logged("resumed", e.pipeline.Resume(ctx, id, patience))
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
	e.log.Debug("searched", "found", len(found.Tools), "total", found.Total)
	if err != nil {
		return found, err
	}
	return failing(found, e.pipeline.RecordLookup("search", q.Text, len(found.Tools)))
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
	return failing(definitions, e.pipeline.RecordLookup("describe", strings.Join(names, " "), len(definitions)))
}

// Sanitize replaces the personal values in a text by tokens. It also returns the number of values by type. The tokens
// are valid in the session.
func (e *Engine) Sanitize(session, text string) (string, map[string]int, error) {
	return e.pipeline.SanitizeText(sessionOf(session), e.secrets.MaskString(text))
}

// WriteFile writes a file of a session's workspace or, if appends is true, appends to it. encoding is utf8 or base64.
func (e *Engine) WriteFile(session, name, content, encoding string, appends bool) (FileWritten, error) {
	return e.pipeline.WriteFile(sessionOf(session), name, content, encoding, appends)
}

// ReadFile returns at most limit bytes of a file, beginning at offset, as a model may see them. A limit of 0 means
// some thousand bytes.
func (e *Engine) ReadFile(session, name string, offset, limit int64, encoding string) (FilePart, error) {
	part, err := e.pipeline.ReadFile(sessionOf(session), name, offset, limit, encoding)
	part.Content = e.secrets.MaskString(part.Content)
	return part, err
}

// ListFiles lists the files of a session's workspace below a folder that match a glob.
func (e *Engine) ListFiles(session, below, glob string) (FileList, error) {
	return e.pipeline.ListFiles(sessionOf(session), below, glob)
}

// Restore shows a person the values behind the tokens in a text. The Outcome contains the values only if the settings
// allow that.
func (e *Engine) Restore(ctx context.Context, r Request, text string) Outcome {
	return e.logged("restored", e.pipeline.Restore(ctx, r, text))
}

// Show replaces the tokens in an Outcome by their values. The result is for a person and must never reach a model.
func (e *Engine) Show(session string, o Outcome) (Outcome, error) {
	return e.pipeline.ShowValues(sessionOf(session), o)
}

func sessionOf(name string) string { return cmp.Or(name, "default") }

// Call makes one tool call without a program. It uses only Session and Limits of the request.
func (e *Engine) Call(ctx context.Context, r Request, name string, arguments json.RawMessage) Outcome {
	return e.logged("called", e.pipeline.Call(ctx, r, name, arguments))
}

// logged logs the end of an execution and returns its Outcome without secrets. Internal errors are logged as
// warnings.
func (e *Engine) logged(what string, o Outcome) Outcome {
	o = maskedOutcome(e.secrets, o)
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
	s, err := server.New(e, server.Options{Version: Version, Lean: lean, Sandboxes: config.SandboxNames(), Log: e.log})
	if err != nil {
		return err
	}
	e.works()
	e.reloader.start()
	defer s.Close()
	return s.ServeLines(ctx, in, out)
}

// Close ends all programs, connections and server processes.
func (e *Engine) Close() error { return e.close() }

func (c Config) load() (*config.Config, error) { return c.read(nil, false) }

// read reads the configuration. again is true for a reload; see config.Options.
func (c Config) read(note config.NoteFunc, again bool) (*config.Config, error) {
	dir := c.Dir
	if dir == "" {
		var err error
		if dir, err = os.Getwd(); err != nil {
			return nil, core.Errorf(core.KindInternal, "retort.open", "%w", err)
		}
	}
	if c.NoFiles {
		settings, err := config.ParseSettings("settings", dir, []byte(c.Settings), os.LookupEnv)
		return &config.Config{Settings: settings, Home: c.Home}, err
	}
	userHome, _ := os.UserHomeDir()
	loaded, err := config.Load(config.Options{
		Files: c.Files, Dir: dir, Home: c.Home, UserHome: userHome, Getenv: os.LookupEnv, Note: note, Again: again,
	})
	if err != nil || c.Settings == "" {
		return loaded, err
	}
	loaded.Settings, err = config.ParseSettings("settings", dir, []byte(c.Settings), os.LookupEnv)
	loaded.ApplyClientRules()
	return loaded, err
}
