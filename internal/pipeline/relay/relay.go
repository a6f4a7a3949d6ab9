// Package relay sends the calls of programs to the upstream servers. It is a chain of guards, each of which can only
// subtract: refuse, delay, rewrite.
//
//	refusals → permit → well-formed → names → cache → budget → arguments → trust → policy → approval → journal → upstream
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
	"retort/internal/base/jsonschema"
	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// Guard wraps a Host. It may refuse, delay or rewrite calls, and must never widen what the wrapped Host allows.
type Guard func(sandbox.Host) sandbox.Host

// Chain wraps h in guards. The first guard sees a call first.
func Chain(h sandbox.Host, guards ...Guard) sandbox.Host {
	for i := len(guards) - 1; i >= 0; i-- {
		h = guards[i](h)
	}
	return h
}

// Upstream makes calls to the user's servers. It returns the bytes of MCP's CallToolResult exactly as received. Its
// errors are *core.Error.
type Upstream interface {
	Call(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, error)
}

// Function is one of the engine's own functions. Programs call it with an empty server name.
type Function func(ctx context.Context, arguments json.RawMessage) (any, error)

// Execution holds what the relay needs to know about the execution it serves.
type Execution struct {
	ID        string
	Caller    core.Caller   // on whose behalf its calls are made
	Tools     *core.Toolset // what this execution may see and call
	Policy    *policy.View  // by which calls are judged
	Permit    core.Permit   // as long as which calls are made
	Revision  uint64        // of the servers when it began; calls reach none that was changed since. 0: any
	Limits    core.Limits   // complete
	Tally     *Tally        // counts the calls; nil for a new one
	Functions map[string]Function
	Files     Files           // where images and blobs from tools go
	Carried   func([]byte)    // is called with data that stays out of the model's context
	Progress  func(calls int) // may be nil
	// Vet refuses tools whose definition is no longer trusted. It may ask their server. now is the tool as the server
	// lists it; if nil, any definition is allowed. A nil Vet trusts all tools.
	Vet func(ctx context.Context, t *core.Tool) (now *core.Tool, refused *core.Error)
	// Approve is called for each call that the policy allows and that may have effects, whose tool has changed, or
	// that takes personal data to another destination. It may wait for a person, refuse the call, or rewrite its
	// arguments in another spelling. The returned call is sent at once. A nil Approve approves all calls.
	Approve func(ctx context.Context, t *core.Tool, c core.Call, d policy.Decision) (core.Call, *core.Error)
	// Leaves is called right before each call is sent, and came with its result. It may refuse the call; otherwise
	// the call is sent with the context out. It may be nil.
	Leaves func(ctx context.Context, t *core.Tool, c core.Call, d policy.Decision) (out context.Context, came func(core.Result, error), refused *core.Error)
	// Refused is called for each call that was refused before it was sent. It may be nil.
	Refused func(c core.Call, refused *core.Error)
	// Rehearse if set, is called instead of sending such a call. The program gets a value of the tool's declared or
	// learned shape.
	Rehearse func(t *core.Tool, c core.Call, d policy.Decision) *core.Error
	Privacy  Privacy      // nil hides nothing
	Note     func(string) // is called with warnings for the Outcome; may be nil
	// Scope identifies within which cached answers may be reused: principal, session and policy. NoCache disables the
	// cache.
	Scope   string
	NoCache bool
	// Learn if set, is called with each answer as the program gets it. It must not block.
	Learn func(t *core.Tool, answer json.RawMessage)
	// Login if set, asks a person to log in at the server of a call that was refused because a login is missing. It
	// returns nil when the call may be made again.
	Login func(ctx context.Context, c core.Call, needed *core.Error) *core.Error
	// CallTimeout if not 0, bounds each call from the moment it is sent.
	CallTimeout time.Duration
	// Exact returns MCP's results unchanged apart from hidden data. Method is an MCP method other than tools/call,
	// whose params are the arguments.
	Exact  bool
	Method string
	// Asked records a server's question to the client before it is sent, and came records the result. It may refuse.
	// It may be nil.
	Asked func(a core.Asked) (came func(result json.RawMessage, failed *core.Error), refused *core.Error)
}

// Relay creates the Hosts of executions. The zero value is not usable.
type Relay struct {
	upstream Upstream
	schemas  *schemas
	cache    *Cache
	began    atomic.Uint64 // calls that may have effects
	ended    atomic.Uint64 // of them
}

// Effects counts the calls that may have effects: how many have begun, and how many of them have ended.
func (r *Relay) Effects() (began, ended uint64) {
	ended = r.ended.Load() // first: else one that ends in between could seem to end before it began
	return r.began.Load(), ended
}

// New returns a relay to an upstream. With a nil cache every call is made.
func New(u Upstream, cache *Cache) *Relay {
	return &Relay{upstream: u, schemas: newSchemas(), cache: cache}
}

// Revised extends Upstream with servers that can be replaced by others of the same name.
type Revised interface {
	// Revision returns a number that changes whenever a server was added or changed. It is never 0.
	Revision() uint64
}

// Revision returns the current revision of the servers, or 0 if they are never replaced.
func (r *Relay) Revision() uint64 {
	if revised, ok := r.upstream.(Revised); ok {
		return revised.Revision()
	}
	return 0
}

// Forget drops a server's cached answers.
func (r *Relay) Forget(server string) {
	if r.cache != nil {
		r.cache.forget(server, Execution{})
	}
}

// Open returns the Host of one execution and the tally of its calls.
func (r *Relay) Open(x Execution) (sandbox.Host, *Tally) {
	tally := x.Tally
	if tally == nil {
		tally = &Tally{calls: map[string]int{}}
	}
	tally.serve(x)
	if r.cache != nil && x.Files != nil {
		x.Files = noting{x.Files}
	}
	host := Chain(r.out(x),
		refusals(x.Refused),
		permitted(x.Permit),
		wellFormed,
		names(x),
		r.cache.guard(x, tally.hit),
		tally.guard,
		private(x),
		r.schemas.guard(x.Tools),
		r.police(x),
		journal(x.Carried),
	)
	return host, tally
}

// wellFormed refuses calls whose arguments are not valid UTF-8, because servers, rules and people would each read
// them differently.
func wellFormed(next sandbox.Host) sandbox.Host {
	return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		if !utf8.Valid(c.Arguments) {
			return core.Result{}, core.Errorf(core.KindInvalidArguments, "relay.arguments", "the arguments are not valid UTF-8").At(c.Server, c.Tool)
		}
		return next.Call(ctx, c)
	})
}

// refusals reports calls that a rule or a limit refused before they were sent.
func refusals(told func(core.Call, *core.Error)) Guard {
	return func(next sandbox.Host) sandbox.Host {
		if told == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			result, err := next.Call(ctx, c)
			if refused := core.AsError(err); refused != nil && (refused.Denies() || refused.Kind == core.KindLimit) {
				told(core.Call{Server: refused.Server, Tool: refused.Tool}, refused)
			}
			return result, err
		})
	}
}

// permitted refuses calls of a principal whose permission has ended, including calls of the engine's own functions.
func permitted(p core.Permit) Guard {
	return func(next sandbox.Host) sandbox.Host {
		if p.Check == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			if refused := p.Refused(); refused != nil {
				return core.Result{}, refused.At(c.Server, c.Tool)
			}
			return next.Call(ctx, c)
		})
	}
}

// police applies the policy to each call with its real arguments, whatever was decided before.
func (r *Relay) police(x Execution) Guard {
	return func(next sandbox.Host) sandbox.Host {
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			tool, ok := x.Tools.Exact(c.Server, c.Tool)
			if !ok {
				return core.Result{}, x.Tools.NotFound(c.Server+"."+c.Tool).At(c.Server, c.Tool)
			}
			tool, ctx, refused := x.vetted(ctx, tool)
			if refused != nil {
				return core.Result{}, refused
			}
			inForce := x.Policy.InForce()
			d := x.Policy.Call(tool, c.Arguments)
			if d.Verdict == policy.Deny {
				return core.Result{}, d.Error(tool)
			}
			if d.Effect.Kind == core.EffectRead && !tool.Asks() && c.Crosses == "" {
				ctx = x.rechecked(ctx, inForce, tool, c)
				return x.refreshed(ctx, tool)(leave(ctx, x, next, tool, c, d))
			}
			if x.Rehearse != nil {
				return rehearse(x, tool, c, d)
			}
			if x.Approve != nil {
				approved, refused := x.Approve(ctx, tool, c, d)
				if refused != nil {
					return core.Result{}, refused
				}
				c, inForce = approved, x.Policy.InForce() // Approve judges it again after it has waited
			}
			r.began.Add(1)
			defer r.ended.Add(1)
			ctx = x.rechecked(ctx, inForce, tool, c)
			return x.refreshed(ctx, tool)(leave(ctx, x, next, tool, c, d))
		})
	}
}

// rechecked returns a context in which a call is refused at the last moment if another policy is in force than the
// one that judged it, and that policy denies it or might require approval.
func (x Execution) rechecked(ctx context.Context, judged *policy.Policy, t *core.Tool, c core.Call) context.Context {
	return core.WithFinalCheck(ctx, func() *core.Error {
		if refused := x.Permit.Refused(); refused != nil {
			return refused
		}
		if x.Policy.InForce() == judged {
			return nil
		}
		switch d := x.Policy.Call(t, c.Arguments); {
		case d.Verdict == policy.Deny:
			return d.Error(t)
		case d.Effect.Kind != core.EffectRead:
			return core.Errorf(core.KindPolicy, "relay.policy", "the settings changed while the call waited; it was not sent").
				WithHint("make the call again, so that it is judged by the current settings")
		}
		return nil
	})
}

// refreshed returns a function that passes on a call's result. If the call was refused because the server has changed
// the tool's definition, the function first makes the catalog list the server, so that the next reader gets the new
// definition.
func (x Execution) refreshed(ctx context.Context, t *core.Tool) func(core.Result, error) (core.Result, error) {
	return func(result core.Result, err error) (core.Result, error) {
		if e := core.AsError(err); e == nil || e.Kind != core.KindToolChanged || x.Vet == nil {
			return result, err
		}
		if _, refused := x.Vet(ctx, t); refused != nil {
			return core.Result{}, refused
		}
		return result, err
	}
}

// vetted returns the tool to use, and a context in which the call is sent only if the server still lists that
// definition.
func (x Execution) vetted(ctx context.Context, t *core.Tool) (*core.Tool, context.Context, *core.Error) {
	if x.Vet == nil {
		return t, ctx, nil
	}
	now, refused := x.Vet(ctx, t)
	if refused != nil || now == nil {
		return t, ctx, refused
	}
	ctx = core.WithPin(ctx, now.Pin)
	if now.Asks() {
		return now, ctx, nil // the person sees the definition that is listed now
	}
	return t, ctx, nil
}

// leave records and sends a call. Approval may have taken a while, so it first checks that the principal is still
// permitted to make the call.
func leave(ctx context.Context, x Execution, next sandbox.Host, t *core.Tool, c core.Call, d policy.Decision) (core.Result, error) {
	if refused := x.Permit.Refused(); refused != nil {
		return core.Result{}, refused.At(c.Server, c.Tool)
	}
	if x.Leaves == nil {
		result, err := next.Call(ctx, c)
		return result, uncertain(err, d)
	}
	out, came, refused := x.Leaves(ctx, t, c, d)
	if refused != nil {
		return core.Result{}, refused
	}
	result, err := next.Call(out, c)
	err = uncertain(err, d)
	came(result, err)
	return result, err
}

// uncertain returns the error of a call that may have effects. If it is unknown whether the call
// took effect, the message and the hint say so.
func uncertain(err error, d policy.Decision) error {
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

func rehearse(x Execution, t *core.Tool, c core.Call, d policy.Decision) (core.Result, error) {
	if err := x.Rehearse(t, c, d); err != nil {
		return core.Result{}, err.At(c.Server, c.Tool)
	}
	return core.Result{Value: jsonschema.Placeholder(t.Answer())}, nil
}

// out returns the innermost Host. It sends the call to the upstream server and converts the answer to the value that
// programs see.
func (r *Relay) out(x Execution) sandbox.Host {
	return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
		ctx, claim := core.WithClaim(core.WithCaller(x.reaching(ctx, c), x.Caller), x.ID)
		if x.Revision != 0 {
			ctx = core.WithRevision(ctx, x.Revision)
		}
		timed, cancel := x.timed(ctx)
		defer func() { cancel() }()
		result, err := r.reach(timed, x, c)
		if x.Login != nil && errors.Is(err, core.ErrLogin) {
			claim.Release()
			if failed := x.loggedIn(ctx, c, core.AsError(err)); failed != nil {
				return core.Result{}, failed.At(c.Server, c.Tool)
			}
			cancel()
			timed, cancel = x.timed(ctx)
			result, err = r.reach(timed, x, c)
		}
		if err != nil {
			claim.Free()
			return core.Result{}, err
		}
		claim.Transformed(int64(len(result.Value)))
		result.Claim = claim
		return result, nil
	})
}

// reach calls the upstream server.
func (r *Relay) reach(ctx context.Context, x Execution, c core.Call) (core.Result, error) {
	if x.Exact {
		return r.exact(ctx, x, c)
	}
	answer, spooled, err := r.fetch(ctx, x, c)
	if err != nil {
		return core.Result{}, core.AsError(err).At(c.Server, c.Tool)
	}
	if spooled != nil {
		return filedAway(ctx, x, c, spooled)
	}
	files := x
	if x.Privacy != nil && x.Files != nil {
		files.Files = hiding{x.Files, x.Privacy, c.Server}
	}
	value, err := toValue(ctx, answer, files)
	if err != nil {
		return core.Result{}, core.AsError(err).At(c.Server, c.Tool)
	}
	result, err := shown(x, c.Server, value)
	if err == nil && x.Learn != nil {
		if t, ok := x.Tools.Exact(c.Server, c.Tool); ok {
			x.Learn(t, result.Value)
		}
	}
	return result, err
}

// timed returns ctx with the timeout of one call.
func (x Execution) timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.CallTimeout > 0 {
		return deadline.With(ctx, x.CallTimeout)
	}
	return ctx, func() {}
}

// loggedIn waits until a person has logged in. Because that may take long, the tool is checked again afterwards.
func (x Execution) loggedIn(ctx context.Context, c core.Call, needed *core.Error) *core.Error {
	if failed := x.Login(ctx, c, needed); failed != nil {
		return failed
	}
	if refused := x.Permit.Refused(); refused != nil {
		return refused
	}
	t, ok := x.Tools.Exact(c.Server, c.Tool)
	if ok && x.Vet != nil {
		if _, refused := x.Vet(ctx, t); refused != nil {
			return refused
		}
	}
	return core.FinalCheck(ctx)
}

// fetch makes the call. A large answer is stored outside of memory if the upstream supports it and there is a place
// for it.
func (r *Relay) fetch(ctx context.Context, x Execution, c core.Call) (json.RawMessage, *core.Spooled, error) {
	if f, ok := r.upstream.(Fetcher); ok && x.Files != nil {
		return f.Fetch(ctx, c.Server, c.Tool, c.Arguments)
	}
	answer, err := r.upstream.Call(ctx, c.Server, c.Tool, c.Arguments)
	return answer, nil, err
}

// filedAway holds an answer that is too large for memory, as files. It is not learned from, because the value only
// says where the files are.
func filedAway(ctx context.Context, x Execution, c core.Call, spooled *core.Spooled) (core.Result, error) {
	defer spooled.Close()
	l := &large{ctx: ctx, server: c.Server, spooled: spooled, x: x}
	value, err := l.value()
	if err != nil {
		return core.Result{}, core.AsError(err).At(c.Server, c.Tool)
	}
	l.notes(c.Tool)
	return core.Result{Value: value}, nil
}

// journal reports the data that a client without Retort would have had in its context.
func journal(carried func([]byte)) Guard {
	return func(next sandbox.Host) sandbox.Host {
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			carried(c.Arguments)
			result, err := next.Call(ctx, c)
			if err != nil {
				carried([]byte(core.AsError(err).Message))
			} else {
				carried(result.Value)
			}
			return result, err
		})
	}
}
