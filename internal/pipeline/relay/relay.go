// Package relay sends the tool calls of programs to the upstream servers. It is a chain of guards. Each of them can
// refuse, delay or rewrite a call, but none can permit what another one refuses. In order:
//
//	refusals → permit → well-formed → pages → names → cache → budget → arguments → trust → policy → approval → journal → upstream
package relay

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"retort/internal/base/deadline"
	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// CallGuard wraps a ToolHost. It may refuse, delay or rewrite calls, but must never allow a call that the wrapped
// ToolHost would refuse.
type CallGuard func(sandbox.ToolHost) sandbox.ToolHost

// ChainGuards wraps the ToolHost h in guards. The first guard sees each call first.
func ChainGuards(h sandbox.ToolHost, guards ...CallGuard) sandbox.ToolHost {
	for i := len(guards) - 1; i >= 0; i-- {
		h = guards[i](h)
	}
	return h
}

// Upstream makes calls to the upstream servers. It returns the bytes of MCP's CallToolResult exactly as received. Its
// errors are *core.Error.
type Upstream interface {
	Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// EngineFunction implements one of the engine's own functions. Programs call these with an empty server name.
type EngineFunction func(ctx context.Context, arguments json.RawMessage) (any, error)

// Supervisor decides about the calls of an execution before the relay sends them.
type Supervisor interface {
	// Vet refuses a tool whose definition is no longer trusted. It may request the server's tool list. now is the
	// tool as the server lists it; if now is nil, any definition is allowed.
	Vet(ctx context.Context, t *core.Tool) (now *core.Tool, refused *core.Error)
	// Approve decides about a call that the policy allows, if the call may have effects, its tool has changed, or it
	// takes personal data to another destination. It may wait for a person, refuse the call, or change the spelling
	// of its arguments. The returned call is sent at once.
	Approve(ctx context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.ToolCall, *core.Error)
	// Login asks a person to log in at the server of a call that failed because a login is missing. It returns nil
	// when the call can be made again.
	Login(ctx context.Context, c core.ToolCall, needed *core.Error) *core.Error
}

// Recorder records the calls and questions of an execution. If it cannot record a call or a question, that is not
// sent.
type Recorder interface {
	// RecordSent is called right before a call is sent. The relay makes the call with the returned context (out), and
	// passes the call's result to the returned function (came). If refused is not nil, the call is not sent.
	RecordSent(ctx context.Context, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (out context.Context, came func(core.CallResult, error), refused *core.Error)
	// RecordRefused is called for each call that was refused before it was sent.
	RecordRefused(c core.ToolCall, refused *core.Error)
	// RecordQuestion is called right before a server's question is sent to the client. The relay passes the client's
	// answer to the returned function (came). If refused is not nil, the question is not sent.
	RecordQuestion(a core.ServerRequest) (came func(result json.RawMessage, failed *core.Error), refused *core.Error)
}

// Reporter receives information about an execution's calls for its Outcome. It is safe for concurrent use.
type Reporter interface {
	AddCarried(data []byte)   // data that stays out of the model's context
	AddNote(text string)      // a warning for the Outcome
	ReportProgress(calls int) // how many calls were made so far
}

// silentReporter implements a Reporter that does nothing. It is used if an ExecutionContext has no Reporter.
type silentReporter struct{}

func (silentReporter) AddCarried([]byte)  {}
func (silentReporter) AddNote(string)     {}
func (silentReporter) ReportProgress(int) {}

// ExecutionContext contains the properties and functions of one execution that the relay uses.
type ExecutionContext struct {
	ID         string
	Caller     core.Caller           // on whose behalf its calls are made
	Tools      *core.Toolset         // what this execution may see and call
	Policy     *policy.PrincipalView // by which calls are judged
	Permit     core.Permit           // as long as which calls are made
	Revision   uint64                // of the servers when it began; calls reach none that was changed since. 0: any
	Limits     core.Limits           // complete
	Tally      *CallCounter          // counts the calls; nil for a new one
	Functions  map[string]EngineFunction
	Files      FileStore     // where images and blobs from tools go
	Supervisor Supervisor    // nil trusts all tools and approves what the policy allows
	Recorder   Recorder      // nil records nothing
	Reporter   Reporter      // nil reports nothing
	Privacy    PrivacyFilter // nil hides nothing
	// Rehearse, if set, is called in place of sending a call that may have effects. It is set in a dry run. The
	// program then gets a placeholder value of the tool's declared or inferred type.
	Rehearse func(t *core.Tool, c core.ToolCall, d policy.AccessDecision) *core.Error
	// Rehearsal, if set, connects this run of the program with another one: in the first, effects are only recorded.
	Rehearsal *Rehearsal
	// Learn, if set, is called with each result that a program gets. It must not block.
	Learn func(t *core.Tool, answer json.RawMessage)
	// Scope names the principal, session and policy of the execution. Cached answers are reused only by executions
	// with the same Scope. NoCache disables the cache.
	Scope   string
	NoCache bool
	// CallTimeout bounds the time of each call from when it is sent. 0 means no bound.
	CallTimeout time.Duration
	// Exact makes the relay return the server's MCP results, with only personal data hidden. Method is an MCP method
	// other than tools/call; the arguments are then its params.
	Exact  bool
	Method string
}

// Relay creates the ToolHosts of executions. The zero value is not usable; use New.
type Relay struct {
	upstream Upstream
	schemas  *schemaValidator
	cache    *AnswerCache
	began    atomic.Uint64 // calls that may have effects
	ended    atomic.Uint64 // of them
}

// CountEffects returns how many calls that may have effects have begun, and how many of these have ended.
func (r *Relay) CountEffects() (began, ended uint64) {
	ended = r.ended.Load() // first: else one that ends in between could seem to end before it began
	return r.began.Load(), ended
}

// New returns a Relay that sends calls to an upstream. If cache is nil, results are not cached.
func New(u Upstream, cache *AnswerCache) *Relay {
	return &Relay{upstream: u, schemas: newSchemas(), cache: cache}
}

// RevisedUpstream is an Upstream in which a server can be replaced by another one of the same name.
type RevisedUpstream interface {
	// Revision returns a number that changes whenever a server was added or changed. It is never 0.
	Revision() uint64
}

// Revision returns the current revision of the upstream servers, a number that changes when a server changes. It
// returns 0 if the Relay's Upstream never replaces servers.
func (r *Relay) Revision() uint64 {
	if revised, ok := r.upstream.(RevisedUpstream); ok {
		return revised.Revision()
	}
	return 0
}

// ForgetServer removes a server's results from the cache.
func (r *Relay) ForgetServer(server string) {
	if r.cache != nil {
		r.cache.forgetServer(server, ExecutionContext{})
	}
}

// Open returns the ToolHost for one execution, and the counter of the execution's calls.
func (r *Relay) Open(x ExecutionContext) (sandbox.ToolHost, *CallCounter) {
	tally := x.Tally
	if tally == nil {
		tally = &CallCounter{calls: map[string]int{}}
	}
	if x.Reporter == nil {
		x.Reporter = silentReporter{}
	}
	tally.attachTo(x)
	host := ChainGuards(r.upstreamHost(x),
		refusalGuard(x.Recorder),
		knownNamesGuard(x.Tools),
		permitGuard(x.Permit),
		wellFormed,
		pageGuard(x),
		resolveGuard(x),
		r.cache.cacheGuard(x, tally.countHit),
		tally.countGuard,
		privacyGuard(x),
		r.schemas.argumentGuard(x.Tools),
		r.policyGuard(x),
		bypassGuard(x.Reporter),
	)
	return host, tally
}

// wellFormed refuses calls whose arguments are not valid UTF-8, because servers, rules and people could read such
// arguments differently.
func wellFormed(next sandbox.ToolHost) sandbox.ToolHost {
	return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		if !utf8.Valid(c.Arguments) {
			return core.CallResult{}, core.Errorf(
				core.KindInvalidArguments, "relay.arguments", "the arguments are not valid UTF-8",
			).AtTool(c.Server, c.Tool)
		}
		return next.Call(ctx, c)
	})
}

// refusalGuard returns the guard that records refused calls: those that later guards have refused because of a rule
// or a limit.
func refusalGuard(to Recorder) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		if to == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			result, err := next.Call(ctx, c)
			if refused := core.AsError(err); refused != nil && (refused.IsDenial() || refused.Kind == core.KindLimit) {
				to.RecordRefused(core.ToolCall{Server: refused.Server, Tool: refused.Tool}, refused)
			}
			return result, err
		})
	}
}

// permitGuard returns the guard that refuses all calls once the principal's permission has ended. That includes calls
// of the engine's own functions.
func permitGuard(p core.Permit) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		if p.Check == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			if refused := p.CheckValid(); refused != nil {
				return core.CallResult{}, refused.AtTool(c.Server, c.Tool)
			}
			return next.Call(ctx, c)
		})
	}
}

// policyGuard returns the guard that applies the policy to each call with its real arguments. Earlier decisions about
// the program do not matter.
func (r *Relay) policyGuard(x ExecutionContext) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			inForce := x.Policy.InForce()
			tool, ctx, d, refused := x.judgeCall(ctx, c)
			if refused != nil {
				return core.CallResult{}, refused
			}
			if d.Effect.Kind == core.EffectRead && !tool.RequiresApproval() && c.Crosses == "" {
				ctx = x.withRecheck(ctx, inForce, tool, c)
				return x.Rehearsal.readOrReuse(tool, c, x.NoCache || c.NoCache, func() (core.CallResult, error) {
					return x.refreshOnChange(ctx, tool)(sendCall(ctx, x, next, tool, c, d))
				})
			}
			if x.Rehearse != nil {
				return recordIntended(x, tool, c, d)
			}
			if x.Supervisor != nil {
				approved, refused := x.Supervisor.Approve(ctx, tool, c, d)
				if refused != nil {
					return core.CallResult{}, refused
				}
				c, inForce = approved, x.Policy.InForce() // Approve judges it again after it has waited
			}
			x.Rehearsal.endReuse()
			r.began.Add(1)
			defer r.ended.Add(1)
			ctx = x.withRecheck(ctx, inForce, tool, c)
			return x.refreshOnChange(ctx, tool)(sendCall(ctx, x, next, tool, c, d))
		})
	}
}

// judgeCall returns the current definition of a call's tool, the context for the call, and the decision of the policy.
// It returns an error if the policy denies the call or its definition is not trusted.
func (x ExecutionContext) judgeCall(ctx context.Context, c core.ToolCall) (*core.Tool, context.Context, policy.AccessDecision, *core.Error) {
	tool, ok := x.Tools.FindExact(c.Server, c.Tool)
	if !ok {
		return nil, ctx, policy.AccessDecision{}, x.Tools.NotFound(c.Server+"."+c.Tool).AtTool(c.Server, c.Tool)
	}
	tool, ctx, refused := x.vetTool(ctx, tool)
	if refused != nil {
		return nil, ctx, policy.AccessDecision{}, refused
	}
	d := x.Policy.DecideCall(tool, c.Arguments)
	if d.Verdict == policy.Deny {
		return nil, ctx, d, d.Error(tool)
	}
	return tool, ctx, d, nil
}

// withRecheck returns a context with a final check right before the call is sent. If the policy has changed since the
// call was judged, the check refuses a call that the new policy denies, and every call that may have effects.
func (x ExecutionContext) withRecheck(ctx context.Context, judged *policy.Policy, t *core.Tool, c core.ToolCall) context.Context {
	return core.WithFinalCheck(ctx, func() *core.Error {
		if refused := x.Permit.CheckValid(); refused != nil {
			return refused
		}
		if x.Policy.InForce() == judged {
			return nil
		}
		switch d := x.Policy.DecideCall(t, c.Arguments); {
		case d.Verdict == policy.Deny:
			return d.Error(t)
		case d.Effect.Kind != core.EffectRead:
			return core.Errorf(core.KindPolicy, "relay.policy", "the settings changed while the call waited; it was not sent").
				WithHint("make the call again, so that it is judged by the current settings")
		}
		return nil
	})
}

// refreshOnChange returns a function that passes on the result of a call. If the call was refused because the server
// has changed the tool's definition, that function first requests the server's tool list, so that the engine knows
// the new definition.
func (x ExecutionContext) refreshOnChange(ctx context.Context, t *core.Tool) func(core.CallResult, error) (core.CallResult, error) {
	return func(result core.CallResult, err error) (core.CallResult, error) {
		if e := core.AsError(err); e == nil || e.Kind != core.KindToolChanged || x.Supervisor == nil {
			return result, err
		}
		if _, refused := x.Supervisor.Vet(ctx, t); refused != nil {
			return core.CallResult{}, refused
		}
		return result, err
	}
}

// vetTool returns the current definition of a tool, and a context for the call. The context lets the call be sent
// only if the server still lists the definition that was vetted.
func (x ExecutionContext) vetTool(ctx context.Context, t *core.Tool) (*core.Tool, context.Context, *core.Error) {
	if x.Supervisor == nil {
		return t, ctx, nil
	}
	now, refused := x.Supervisor.Vet(ctx, t)
	if refused != nil || now == nil {
		return t, ctx, refused
	}
	ctx = core.WithPin(ctx, now.Pin)
	if now.RequiresApproval() {
		return now, ctx, nil // the person sees the definition that is listed now
	}
	return t, ctx, nil
}

// sendCall records a call and sends it. It first checks again that the principal is permitted to make the call,
// because an approval may have taken a while.
func sendCall(
	ctx context.Context, x ExecutionContext, next sandbox.ToolHost, t *core.Tool, c core.ToolCall, d policy.AccessDecision,
) (core.CallResult, error) {
	if refused := x.Permit.CheckValid(); refused != nil {
		return core.CallResult{}, refused.AtTool(c.Server, c.Tool)
	}
	if x.Recorder == nil {
		result, err := next.Call(ctx, c)
		return result, uncertainError(err, d)
	}
	out, came, refused := x.Recorder.RecordSent(ctx, t, c, d)
	if refused != nil {
		return core.CallResult{}, refused
	}
	result, err := next.Call(out, c)
	err = uncertainError(err, d)
	came(result, err)
	return result, err
}

// uncertainError returns err, the error of a call. If the call may have effects, and may have succeeded in spite of
// the error, the message and the hint of the returned error say so.
func uncertainError(err error, d policy.AccessDecision) error {
	if d.Effect.Kind == core.EffectRead || !errors.Is(err, core.ErrOutcomeUnknown) {
		return err
	}
	e := *core.AsError(err)
	if !strings.Contains(e.Message, core.ErrOutcomeUnknown.Error()) {
		e.Message += "; " + core.ErrOutcomeUnknown.Error()
	}
	e.Hint = strings.TrimSuffix(core.HintOutcomeUnknown+"; "+e.Hint, "; ")
	return &e
}

func recordIntended(x ExecutionContext, t *core.Tool, c core.ToolCall, d policy.AccessDecision) (core.CallResult, error) {
	x.Rehearsal.endReuse()
	if err := x.Rehearse(t, c, d); err != nil {
		return core.CallResult{}, err.AtTool(c.Server, c.Tool)
	}
	return core.CallResult{Value: x.Rehearsal.placeholderFor(t)}, nil
}

// upstreamHost returns the innermost ToolHost. It sends calls to the upstream server and converts results to the
// values that programs get.
func (r *Relay) upstreamHost(x ExecutionContext) sandbox.ToolHost {
	return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
		ctx, claim := x.boundCall(ctx, c)
		timed, cancel := x.withTimeout(ctx)
		defer func() { cancel() }()
		result, err := r.callUpstream(timed, x, c)
		if x.Supervisor != nil && errors.Is(err, core.ErrLogin) {
			claim.Release()
			if failed := x.loggedIn(ctx, c, core.AsError(err)); failed != nil {
				return core.CallResult{}, failed.AtTool(c.Server, c.Tool)
			}
			cancel()
			timed, cancel = x.withTimeout(ctx)
			result, err = r.callUpstream(timed, x, c)
		}
		if err != nil {
			claim.Free()
			return core.CallResult{}, err
		}
		claim.FinishTransformation(int64(len(result.Value)))
		result.Claim = claim
		return result, nil
	})
}

// boundCall returns the context in which to send a call. The context identifies the caller, and lets the call reach
// only servers that were configured when the execution began. The returned claim counts the memory that the answer
// takes.
func (x *ExecutionContext) boundCall(ctx context.Context, c core.ToolCall) (context.Context, *core.MemoryClaim) {
	bounds := core.WorkBounds{Claim: core.NewClaim(core.ClaimOf(ctx), x.ID)}
	if x.Revision != 0 {
		bounds.Revision = &x.Revision
	}
	asked := core.WithRequester(ctx, core.Requester{Caller: &x.Caller, Peer: x.screenPeer(core.PeerOf(ctx), c)})
	return core.WithBounds(asked, bounds), bounds.Claim
}

// callUpstream makes a call and converts its result to the value that the program gets. It also notes in the result
// whether files were saved in the workspace.
func (r *Relay) callUpstream(ctx context.Context, x ExecutionContext, c core.ToolCall) (core.CallResult, error) {
	if x.Files == nil {
		return r.answerCall(ctx, x, c)
	}
	files := &savingFiles{FileStore: x.Files}
	x.Files = files
	result, err := r.answerCall(ctx, x, c)
	result.SavedFiles = files.saved.Load()
	return result, err
}

// answerCall makes a call and converts its result to the value that the program gets.
func (r *Relay) answerCall(ctx context.Context, x ExecutionContext, c core.ToolCall) (core.CallResult, error) {
	if x.Exact {
		return r.callExact(ctx, x, c)
	}
	answer, spooled, err := r.fetchAnswer(ctx, x, c)
	if err != nil {
		return core.CallResult{}, core.AsError(err).AtTool(c.Server, c.Tool)
	}
	if spooled != nil {
		return filedAway(ctx, x, c, spooled)
	}
	files := x
	if x.Privacy != nil && x.Files != nil {
		files.Files = hidingFiles{x.Files, x.Privacy, c.Server}
	}
	value, err := toValue(ctx, answer, files)
	if err != nil {
		return core.CallResult{}, core.AsError(err).AtTool(c.Server, c.Tool)
	}
	result, err := showAnswer(x, c.Server, value)
	if err == nil && x.Learn != nil {
		if t, ok := x.Tools.FindExact(c.Server, c.Tool); ok {
			x.Learn(t, result.Value)
		}
	}
	return result, err
}

// withTimeout returns ctx with the timeout of one call.
func (x ExecutionContext) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.CallTimeout > 0 {
		return deadline.With(ctx, x.CallTimeout)
	}
	return ctx, func() {}
}

// loggedIn waits until a person has logged in. Because that may take long, it then checks again whether the call may
// be sent.
func (x ExecutionContext) loggedIn(ctx context.Context, c core.ToolCall, needed *core.Error) *core.Error {
	if failed := x.Supervisor.Login(ctx, c, needed); failed != nil {
		return failed
	}
	if refused := x.Permit.CheckValid(); refused != nil {
		return refused
	}
	t, ok := x.Tools.FindExact(c.Server, c.Tool)
	if ok {
		if _, refused := x.Supervisor.Vet(ctx, t); refused != nil {
			return refused
		}
	}
	return core.FinalCheck(ctx)
}

// fetchAnswer makes a call and returns the server's result. If the upstream supports it and the execution has a
// workspace, a large result is stored in a file and not in memory.
func (r *Relay) fetchAnswer(ctx context.Context, x ExecutionContext, c core.ToolCall) (json.RawMessage, *core.SpooledAnswer, error) {
	if f, ok := r.upstream.(LargeFetcher); ok && x.Files != nil {
		return f.Fetch(ctx, c.Server, c.Tool, c.Arguments)
	}
	answer, err := r.upstream.Call(ctx, c.Server, c.Tool, c.Arguments)
	return answer, nil, err
}

// filedAway writes the large parts of a result that is too large for memory to workspace files. It returns the value
// that the program gets, which describes these files. No types are inferred from such a value.
func filedAway(ctx context.Context, x ExecutionContext, c core.ToolCall, spooled *core.SpooledAnswer) (core.CallResult, error) {
	defer spooled.Close()
	l := &largeAnswer{ctx: ctx, server: c.Server, spooled: spooled, x: x}
	value, err := l.buildValue()
	if err != nil {
		return core.CallResult{}, core.AsError(err).AtTool(c.Server, c.Tool)
	}
	l.addNotes(c.Tool)
	return core.CallResult{Value: value}, nil
}

// bypassGuard returns the guard that counts the data which bypasses the model's context: the arguments and results of
// the calls that programs make. If the model made these calls itself, its context would contain all of this data.
func bypassGuard(to Reporter) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			to.AddCarried(c.Arguments)
			result, err := next.Call(ctx, c)
			if err != nil {
				to.AddCarried([]byte(core.AsError(err).Message))
			} else {
				to.AddCarried(result.Value)
			}
			return result, err
		})
	}
}
