package relay

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"sync/atomic"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/policy"
	"retort/internal/sandbox"
)

// AnswerStore stores tool results for a limited time, in the form that programs get.
type AnswerStore interface {
	Get(server, key string) (json.RawMessage, bool)
	Put(server, key string, value json.RawMessage)
	// Forget removes all results of a server.
	Forget(server string)
}

// AnswerCache answers repeated calls with earlier results. All executions share it.
type AnswerCache struct {
	answers AnswerStore
	listed  func(t *core.Tool) bool

	mu     sync.Mutex
	wrote  map[string]int          // calls with effects, by server
	flying map[string]*pendingCall // by key
}

// pendingCall holds a call in progress, for whose result equal calls wait.
type pendingCall struct {
	done   chan struct{}
	result core.CallResult
	err    error
}

// NewCache returns an AnswerCache. It caches results of tools that are annotated as read-only and idempotent, and of
// tools for which the function listed returns true.
func NewCache(answers AnswerStore, listed func(t *core.Tool) bool) *AnswerCache {
	return &AnswerCache{answers: answers, listed: listed, wrote: map[string]int{}, flying: map[string]*pendingCall{}}
}

// cacheGuard returns the guard that answers calls from the cache. Such calls do not count towards the budget. Only
// calls that change nothing according to the policy are cached. A call that may change something removes the cached
// results of its server, both before it is sent and after it has returned.
func (k *AnswerCache) cacheGuard(x ExecutionContext, hit func()) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		if k == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			tool, ok := x.Tools.FindExact(c.Server, c.Tool)
			if !ok {
				return next.Call(ctx, c)
			}
			d := x.Policy.DecideCall(tool, c.Arguments)
			if d.Effect.Kind != core.EffectRead {
				k.forgetServer(c.Server, x)
				defer k.forgetServer(c.Server, x)
				return next.Call(ctx, c)
			}
			key, ok := x.cacheKey(tool, c.Arguments)
			if !ok || x.NoCache || c.NoCache || tool.RequiresApproval() || d.Verdict == policy.Deny || !k.isCacheable(tool) {
				return next.Call(ctx, c)
			}
			result, cached, err := k.cachedAnswer(ctx, next, c, key)
			if cached {
				hit()
				x.Reporter.AddCarried(c.Arguments)
				x.Reporter.AddCarried(result.Value)
			}
			return result, err
		})
	}
}

func (k *AnswerCache) isCacheable(t *core.Tool) bool {
	yes := func(hint *bool) bool { return hint != nil && *hint }
	return yes(t.Annotations.ReadOnly) && yes(t.Annotations.Idempotent) || k.listed != nil && k.listed(t)
}

func (k *AnswerCache) forgetServer(server string, x ExecutionContext) {
	if x.Rehearse != nil {
		return
	}
	k.mu.Lock()
	k.wrote[server]++
	k.mu.Unlock()
	k.answers.Forget(server)
}

// cacheKey returns the cache key of a call. It contains everything that a result depends on. That includes the
// session, because tokens for personal data are valid only in their session.
func (x ExecutionContext) cacheKey(t *core.Tool, arguments json.RawMessage) (string, bool) {
	text, err := canonjson.MarshalCanonical(arguments)
	return strings.Join([]string{x.Scope, t.Server, t.Name, t.Pin, string(text)}, "\x00"), err == nil
}

// cachedAnswer returns the cached result of a call. If no result is cached but an equal call is in progress, it waits for
// the result of that call. Otherwise it makes the call.
func (k *AnswerCache) cachedAnswer(
	ctx context.Context, next sandbox.ToolHost, c core.ToolCall, key string,
) (result core.CallResult, cached bool, err error) {
	for {
		if value, ok := k.answers.Get(c.Server, key); ok {
			return core.CallResult{Value: value}, true, nil
		}
		k.mu.Lock()
		other := k.flying[key]
		if other == nil {
			own := &pendingCall{done: make(chan struct{})}
			k.flying[key] = own
			wrote := k.wrote[c.Server]
			k.mu.Unlock()
			return k.callAndStore(ctx, next, c, key, own, wrote)
		}
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return core.CallResult{}, false, core.Errorf(
				core.KindCancelled, "relay.cache", "cancelled: %w", context.Cause(ctx),
			).AtTool(c.Server, c.Tool)
		case <-other.done:
		}
		if other.err == nil {
			other.result.Claim.AddHolder()
			return other.result, true, nil
		}
	}
}

// errGone tells the callers that waited for another caller's call that they cannot use its result. Each of them then
// makes its own call.
var errGone = errors.New("the call ended")

// callAndStore makes a call for all callers that wait for own, and stores its result. cached is true if the result is
// from the cache, because an equal call has just ended and stored it.
func (k *AnswerCache) callAndStore(
	ctx context.Context, next sandbox.ToolHost, c core.ToolCall, key string, own *pendingCall, wrote int,
) (result core.CallResult, cached bool, err error) {
	own.err = errGone
	defer func() {
		k.mu.Lock()
		delete(k.flying, key)
		k.mu.Unlock()
		close(own.done)
	}()
	if value, ok := k.answers.Get(c.Server, key); ok { // an equal call ended after the caller had looked into the cache
		return core.CallResult{Value: value}, true, nil
	}
	own.result, own.err = next.Call(ctx, c)
	k.mu.Lock()
	current := k.wrote[c.Server] == wrote
	k.mu.Unlock()
	saved := own.result.SavedFiles || own.result.Provisional
	if own.err == nil && current && !saved {
		k.answers.Put(c.Server, key, own.result.Value)
	}
	if own.err == nil && (saved || !current) {
		own.err = errGone // not shared
		return own.result, false, nil
	}
	return own.result, false, own.err
}

// savingFiles wraps a FileStore and records whether a call saved a file in it.
type savingFiles struct {
	FileStore
	saved atomic.Bool
}

func (s *savingFiles) Save(ctx context.Context, suffix string, data []byte) (string, error) {
	s.saved.Store(true)
	return s.FileStore.Save(ctx, suffix, data)
}

func (s *savingFiles) Create(ctx context.Context, suffix string) (IncomingFile, error) {
	s.saved.Store(true)
	return s.FileStore.Create(ctx, suffix)
}
