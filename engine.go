package retort

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/mcp/server/web"
)

// Engine runs programs against MCP servers. It is safe for concurrent use. Errors of its methods are of type *Error.
type Engine struct{ engine *engine.Engine }

// Open reads the configuration and opens an engine. It connects to servers in the background; tools known from an
// earlier run are available at once. If the configuration is wrong, the error is of kind invalid_arguments.
func Open(ctx context.Context, c Config) (*Engine, error) {
	opened, err := engine.Open(ctx, c.internal())
	if err != nil {
		return nil, convertError(err)
	}
	return &Engine{opened}, nil
}

// Close ends all programs, connections and server processes of this engine.
func (e *Engine) Close() error { return convertError(e.engine.Close()) }

// As returns the engine for one principal and its groups, with what the settings allow them. It need not be closed.
func (e *Engine) As(principal string, groups ...string) *Engine {
	return &Engine{e.engine.As(principal, groups...)}
}

// WaitForServers waits until the named servers, or all, have listed their tools or failed once, or until ctx is done.
func (e *Engine) WaitForServers(ctx context.Context, servers ...string) {
	e.engine.WaitForServers(ctx, servers...)
}

// Search returns the tools that match a description of what they do.
func (e *Engine) Search(ctx context.Context, q Query) (Found, error) {
	found, err := e.engine.Search(ctx, core.ToolQuery{
		Text: q.Text, Server: q.Server, Category: q.Category, Detail: core.SearchDetail(q.Detail),
		Language: core.Language(q.Language), Limit: q.Limit, Settled: q.Settled,
	})
	return newFound(found), convertError(err)
}

// Describe returns the typed definitions of tools. A name may have any spelling, and omit the server if it is unique.
func (e *Engine) Describe(ctx context.Context, names []string, lang Language) ([]Definition, error) {
	definitions, err := e.engine.Describe(ctx, names, core.Language(lang))
	return convertAll(definitions, newDefinition), convertError(err)
}

// Execute runs one program. The Outcome holds its result or its error.
func (e *Engine) Execute(ctx context.Context, r Request) Outcome {
	return newOutcome(e.engine.Execute(ctx, r.internal()))
}

// ExecuteTask performs an agent task when its turn in the queue comes. A model writes a program with the tools that
// were found. The program is checked and run, and goes back to the model if it fails. Without a model the Outcome
// holds a TaskContext for the caller, who writes the program. If ctx ends, the task is cancelled.
func (e *Engine) ExecuteTask(ctx context.Context, t Task) Outcome {
	return newOutcome(e.engine.ExecuteTask(ctx, t.internal()))
}

// Call makes one tool call without a program. It uses only the fields Session and Limits of the request.
func (e *Engine) Call(ctx context.Context, r Request, tool string, arguments json.RawMessage) Outcome {
	return newOutcome(e.engine.Call(ctx, r.internal(), tool, arguments))
}

// Resume waits for the Outcome of a pending execution. If no person answers within patience, it is pending again.
func (e *Engine) Resume(ctx context.Context, execution string, patience time.Duration) Outcome {
	return newOutcome(e.engine.Resume(ctx, execution, patience))
}

// Waiting returns the approvals that wait for a person, oldest first: those of one execution, those of all programs of
// one task, or all if execution is empty. An engine returned by As returns only its principal's approvals.
func (e *Engine) Waiting(execution string) []Approval {
	return convertAll(e.engine.Waiting(execution), newApproval)
}

// Decide records a person's answer to a waiting approval. The caller acts for that person. digest must be the digest
// of the approval as the person saw it. After an error the answer has no effect. An engine returned by As can answer
// only the approvals that its Waiting returns.
func (e *Engine) Decide(id, digest string, a Answer) error {
	return convertError(e.engine.Decide(id, digest, a.internal()))
}

// Submit puts a program into the job queue, on disk. It runs in this engine or in another one with this data directory.
func (e *Engine) Submit(ctx context.Context, r Request) (Job, error) {
	job, err := engine.ProgramJob(r.internal())
	if err != nil {
		return Job{}, convertError(err)
	}
	state, err := e.engine.Submit(ctx, job)
	return newJob(state), convertError(err)
}

// Job returns a job of the engine's principal. Jobs of other principals are treated as unknown.
func (e *Engine) Job(id string) (Job, error) {
	state, err := e.engine.Task(id)
	return newJob(state), convertError(err)
}

// CancelJob cancels a job and waits briefly for its end. It returns an error if no job with this id can be cancelled.
func (e *Engine) CancelJob(ctx context.Context, id string) (Job, error) {
	state, err := e.engine.CancelTask(ctx, id)
	return newJob(state), convertError(err)
}

// ListFiles lists the files of a session below a folder that match a glob. total also counts files beyond the list's bound.
func (e *Engine) ListFiles(session, below, glob string) (files []File, total int, err error) {
	list, err := e.engine.ListFiles(session, below, glob)
	files = convertAll(list.Files, func(f core.FileEntry) File { return File{Path: f.Path, Bytes: f.Bytes, Modified: f.Modified} })
	return files, max(list.Total, len(list.Files)), convertError(err)
}

// Stats counts servers, tools, and the executions of one session or, if session is empty, of all sessions.
func (e *Engine) Stats(ctx context.Context, session string) Stats {
	return newStats(e.engine.Stats(ctx, session))
}

// Serve answers one MCP client over a stream of newline-delimited JSON, until the stream ends or ctx is done. If lean
// is true, it offers the client only the few tools through which all others can be used.
func (e *Engine) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, lean bool) error {
	return convertError(e.engine.Serve(ctx, in, out, lean))
}

// Listening has the options for serving clients over HTTP. All other options are in the settings.
type Listening struct {
	Addr string // host:port; that of the settings if empty
	Lean bool   // offers only the few tools through which all others can be used
	// Authenticator replaces the tokens of this configuration and the authorization server of the settings. Without
	// any of these, the listener accepts only addresses of this machine.
	Authenticator Authenticator
}

// Authenticator checks bearer tokens.
type Authenticator interface {
	// Authenticate returns the caller to whom a token belongs. bearer is empty if the request had no token. If it
	// returns an error, the request is answered with status 401.
	Authenticate(ctx context.Context, bearer string) (Caller, error)
	// Challenge returns the WWW-Authenticate header for a response with status 401.
	Challenge(r *http.Request) string
}

// Caller is the authenticated caller of a request.
type Caller struct {
	Name    string      // principal; never empty
	Groups  []string    // groups of the principal; entries such as group:finance in principals restrict it
	Holds   func() bool // reports whether the token is still valid; if not, all its work ends; nil means always valid
	Expires time.Time   // of the token; zero means never; jobs that a later process takes over end then
}

// Listener answers MCP clients over HTTP.
type Listener interface {
	URL() string                                      // address for clients
	Serve(ctx context.Context) error                  // answers clients until ctx is done, then finishes running work
	ServeHTTP(w http.ResponseWriter, r *http.Request) // answers one request
}

// Listen opens the address for clients over HTTP. Close the engine only after the Listener's Serve has returned.
func (e *Engine) Listen(l Listening) (Listener, error) {
	o := engine.ListenOptions{Addr: l.Addr, Lean: l.Lean}
	if l.Authenticator != nil {
		o.Authenticator = authenticator{l.Authenticator}
	}
	listener, err := e.engine.Listen(o)
	if err != nil {
		return nil, convertError(err)
	}
	return listener, nil
}

type authenticator struct{ Authenticator }

func (a authenticator) Authenticate(ctx context.Context, bearer string) (web.BearerPrincipal, error) {
	c, err := a.Authenticator.Authenticate(ctx, bearer)
	return web.BearerPrincipal{Name: c.Name, Groups: c.Groups, Holds: c.Holds, Credential: core.Credential{Expires: c.Expires}}, err
}
