// Package retort is one MCP server in front of all of a person's MCP servers,
// as a Go library: programs in TypeScript call the tools of many servers from a
// sandbox, and only their result comes back.
package retort

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"retort/internal/base/reaper"
	"retort/internal/config"
	"retort/internal/core"
	"retort/internal/home"
	"retort/internal/mcp/client"
	"retort/internal/mcp/server"
	"retort/internal/pipeline"
	"retort/internal/pipeline/approval"
	"retort/internal/pipeline/check/typescript"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
)

// Version is the version of this module.
const Version = "0.1.0"

// The nouns of the engine.
type (
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
	Server      = client.Server
)

// The scopes of a yes.
const (
	ScopeOnce   = core.ScopeOnce   // for this one
	ScopeRun    = core.ScopeRun    // and for the rest of this kind, the same tool, in this run
	ScopeAlways = core.ScopeAlways // and for this tool with arguments of this shape
)

// WithChannel returns a context whose executions ask through c, beside all other
// ways to answer.
func WithChannel(ctx context.Context, c Channel) context.Context { return core.WithChannel(ctx, c) }

// Config says which servers there are and how programs are run. The zero
// Config reads the files that the command reads.
type Config struct {
	// Files are client files with MCP servers and at most one retort.yaml; see
	// the README for what is read when there are none.
	Files []string
	// Dir is where files are looked for; the working directory if empty.
	Dir string
	// Home keeps workspace and catalogue; chosen beside the files if empty.
	Home string
	// Keys is the folder of the key with which is sealed what a person has decided; beside
	// the user's own data if empty. No server should be able to write there.
	Keys string
	// NoFiles reads no file at all: Servers and Settings are everything.
	NoFiles bool
	// NoReload has Serve and Listen work by the files as they were when the engine was opened. Otherwise they
	// apply changes of the files within a second.
	NoReload bool
	// Servers are added to those of the files. A name in both is an error.
	Servers []Server
	// Settings is the text of a retort.yaml that counts instead of a file's.
	Settings string
	// Guest is the command line that becomes the inside of a sandbox: a program
	// that calls Init first. The running program if empty.
	Guest []string
	// Limits, where they are not zero, count instead of those of the settings.
	Limits Limits
	// Reserve selects what the engine starts before a program needs it.
	Reserve Reserve
	// internet, in tests, is where programs' requests go instead of where they would.
	internet internet
	// spoolAbove, in tests, is the size in bytes above which an answer becomes a file. 0 means the
	// default of package upstream.
	spoolAbove int64
	// exitPatience, in tests, sets client.Options.ExitPatience.
	exitPatience time.Duration
	// Log is told what the engine does: what failed at the level warn, each
	// execution, call and connection at info, searches at debug. No values of
	// programs and tools are in it. Its handler must not wait. Nil means nobody.
	Log *slog.Logger
}

// Reserve says which sandboxes and compilers an engine starts before a program needs them, so that
// programs start faster. It does not limit how many programs can run.
type Reserve int

const (
	ReserveMany Reserve = iota // starts several sandboxes and a compiler when the engine opens, and another sandbox whenever one is taken
	ReserveOne                 // starts one sandbox when the engine opens, and a compiler with the first program
	ReserveNone                // starts nothing before a program needs it
)

// Init must be the first thing in main of a program that embeds the engine:
// where the process was started to be the inside of a sandbox, to check programs
// or to clean up after the engine, it does that and does not return.
func Init() {
	role := os.Args[min(1, len(os.Args)):]
	if len(role) > 1 && role[0] == confine.Argument {
		if err := confine.Enter(runtimes.HarnessFiles); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		role = role[1:]
	}
	if len(role) > 2 && role[0] == confine.ContainedArgument {
		if err := confine.EnterContained(role[1]); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		role = role[2:]
	}
	switch strings.Join(role, " ") {
	case guestArgument:
		exit(guest.Main(os.Stdin, os.Stdout))
	case guestArgument + " " + process.CompiledArgument:
		exit(guest.MainCompiled(os.Stdin, os.Stdout))
	case guestArgument + " " + vminit.RestoredArgument:
		exit(guest.MainRestored(os.Stdin, os.Stdout))
	case vminit.Argument:
		exit(vminit.Main())
	case guestArgument + " " + process.CompileArgument:
		exit(guest.CompilePrelude(os.Stdout))
	case reaperArgument:
		reaper.Serve()
		os.Exit(0)
	case compilerArgument:
		typescript.TuneCollector()
		exit(typescript.Serve(os.Stdin, os.Stdout))
	}
}

func exit(err error) {
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	guestArgument    = "guest"
	reaperArgument   = "reaper"
	compilerArgument = "compiler"
)

// dataDir returns the data directory of an engine of this configuration.
func (c Config) dataDir() (home.Dir, error) {
	loaded, err := c.load()
	if err != nil {
		return "", err
	}
	return home.Dir(loaded.Home), nil
}

// Pending lists what waits for a person in all engines of this configuration that
// run on this machine.
func Pending(c Config) ([]approval.FoundApproval, error) {
	data, err := c.dataDir()
	if err != nil {
		return nil, err
	}
	return approval.FindWaiting(data.Approvals())
}

// Engine runs programs against MCP servers. It is safe for concurrent use.
type Engine struct {
	*parts
}

// Open reads the configuration and makes an engine. Servers are connected in
// the background; what an earlier run learnt of their tools is there at once.
// The error is a *Error of kind invalid_arguments if the configuration is wrong.
func Open(ctx context.Context, c Config) (*Engine, error) {
	files := config.NewWatch(c.read)
	loaded, err := files.Load()
	if err != nil {
		return nil, err
	}
	p, err := assemble(ctx, c, loaded, files)
	if err != nil {
		return nil, err
	}
	return &Engine{p}, nil
}

// LimitMemory makes the setting memory the soft limit of the Go runtime of this process, unless the
// variable GOMEMLIMIT is set. A process that has one engine, and little else to do, calls it once.
func (e *Engine) LimitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(e.memory.Limit())
	}
}

// ShareProcessors has the Go runtime of this process run up to four goroutines at once on a machine with fewer
// processors, unless the variable GOMAXPROCS is set. Large answers can keep all processors busy: the runtime
// then looks for input every 10 ms only, and small calls would wait for that. With more threads than processors
// the system decides, and prefers those that have waited. How many large answers are worked on at once does not
// change. A process that has one engine, and little else to do, calls it once, after Open.
func (e *Engine) ShareProcessors() {
	const least = 4
	if os.Getenv("GOMAXPROCS") == "" && runtime.GOMAXPROCS(0) < least {
		runtime.GOMAXPROCS(least)
	}
}

// As is the engine for one principal, who may see and call what the settings let
// that principal. The engine that was opened is the one to close.
func (e *Engine) As(principal string) *Engine {
	p, lane := *e.parts, *e.pipeline
	lane.Policy = e.policy.For(principal)
	p.pipeline = &lane
	return &Engine{&p}
}

// Execute runs one program. Whatever becomes of it is in the Outcome.
func (e *Engine) Execute(ctx context.Context, r Request) Outcome {
	e.warm(pipeline.LanguageOf(r))
	return e.logged("executed", e.pipeline.Execute(ctx, r))
}

// Resume waits for an execution that was answered as pending: for its Outcome, or
// until it has waited for a person as long as patience is.
func (e *Engine) Resume(ctx context.Context, id string, patience time.Duration) Outcome {
	if o, ok := e.resumeTask(ctx, id, patience); ok {
		return e.logged("resumed", o)
	}
	if o := e.orchestrator(); o.IsWaiting(id) {
		return e.logged("resumed", o.Resume(ctx, id, patience))
	}
	return e.logged("resumed", e.pipeline.Resume(ctx, id, patience))
}

// Waiting lists what waits for a person, of one execution, of the programs of one task, or of all if it is
// empty, oldest first. Of an engine for one principal it lists what that one has asked for.
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

// Decide answers what waits, for whoever calls it is the person. digest is that of
// what the person has seen. An error says that the answer does not count. An engine for one
// principal answers only what Waiting lists.
func (e *Engine) Decide(id, digest string, a Answer) error {
	if e.pipeline.Policy.Principal() != "" && !slices.ContainsFunc(e.Waiting(""), func(w Approval) bool { return w.ID == id }) {
		return core.Errorf(core.KindInvalidArguments, "approval", "nothing waits with the id %q: it was answered, ran out, or was cancelled", id)
	}
	if err := e.pipeline.Approvals.Table.Decide(id, digest, a); err != nil {
		return err
	}
	return nil
}

// Search finds tools by what they do.
func (e *Engine) Search(ctx context.Context, q Query) (Found, error) {
	found, err := e.pipeline.Search(ctx, q)
	e.log.Debug("searched", "found", len(found.Tools), "total", found.Total)
	if err != nil {
		return found, err
	}
	return failing(found, e.pipeline.RecordLookup("search", q.Text, len(found.Tools)))
}

// Describe gives the typed definitions of tools, named in any spelling. The name of a tool without its server is enough
// where no other tool has it.
func (e *Engine) Describe(ctx context.Context, names []string, lang core.Language) ([]Definition, error) {
	return e.DescribeIn(ctx, "", names, lang)
}

// DescribeIn is Describe for the tools of a category.
func (e *Engine) DescribeIn(ctx context.Context, category string, names []string, lang core.Language) ([]Definition, error) {
	definitions, err := e.pipeline.Describe(ctx, names, category, lang)
	if err != nil {
		return definitions, err
	}
	return failing(definitions, e.pipeline.RecordLookup("describe", strings.Join(names, " "), len(definitions)))
}

// Sanitize is a text with tokens for what is personal, and how many values of each type
// it had. The tokens are good in the session.
func (e *Engine) Sanitize(session, text string) (string, map[string]int, error) {
	return e.pipeline.SanitizeText(sessionOf(session), e.secrets.MaskString(text))
}

// WriteFile writes a file of a session's workspace, or appends to it. encoding is utf8 or
// base64.
func (e *Engine) WriteFile(session, name, content, encoding string, appends bool) (FileWritten, error) {
	return e.pipeline.WriteFile(sessionOf(session), name, content, encoding, appends)
}

// ReadFile is at most limit bytes of a file from offset on, as the model may see it; a
// limit of 0 means some thousand.
func (e *Engine) ReadFile(session, name string, offset, limit int64, encoding string) (FilePart, error) {
	part, err := e.pipeline.ReadFile(sessionOf(session), name, offset, limit, encoding)
	part.Content = e.secrets.MaskString(part.Content)
	return part, err
}

// ListFiles lists the files of a session's workspace below a folder, those that fit a glob.
func (e *Engine) ListFiles(session, below, glob string) (FileList, error) {
	return e.pipeline.ListFiles(sessionOf(session), below, glob)
}

// Restore has a person look at the values behind the tokens in a text. They are in the
// Outcome only if the settings say so.
func (e *Engine) Restore(ctx context.Context, r Request, text string) Outcome {
	return e.logged("restored", e.pipeline.Restore(ctx, r, text))
}

// Show is an Outcome with values for its tokens: for a person, never for a model.
func (e *Engine) Show(session string, o Outcome) (Outcome, error) {
	return e.pipeline.Show(sessionOf(session), o)
}

func sessionOf(name string) string { return cmp.Or(name, "default") }

// Call makes one call without a program. Of the request, Session and Limits
// count.
func (e *Engine) Call(ctx context.Context, r Request, name string, arguments json.RawMessage) Outcome {
	return e.logged("called", e.pipeline.Call(ctx, r, name, arguments))
}

// logged notes how an execution ended, and takes secrets out of what it says. What is Retort's own fault is a warning.
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
	s, err := server.New(e, server.Options{Version: Version, Lean: lean, Log: e.log})
	if err != nil {
		return err
	}
	e.works()
	e.reloader.start()
	defer s.Close()
	return s.Serve(ctx, in, out)
}

// Close ends all programs, connections and server processes. Nothing is left.
func (e *Engine) Close() error {
	var errs []error
	for i := len(e.closers) - 1; i >= 0; i-- {
		errs = append(errs, e.closers[i]())
	}
	return errors.Join(errs...)
}

func (c Config) load() (*config.Config, error) { return c.read(nil, false) }

// read reads the configuration, the first time or again; see config.Options.
func (c Config) read(note config.Note, again bool) (*config.Config, error) {
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
	loaded.Restrict()
	return loaded, err
}
