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

// Answers keeps answers of servers for a while, as programs saw them.
type Answers interface {
	Get(server, key string) (json.RawMessage, bool)
	Put(server, key string, value json.RawMessage)
	// Forget drops all of a server.
	Forget(server string)
}

// Cache answers calls again that were made before. It is shared by all executions.
type Cache struct {
	answers Answers
	listed  func(t *core.Tool) bool

	mu     sync.Mutex
	wrote  map[string]int      // calls with effects, by server
	flying map[string]*waiting // by key
}

// waiting is a call under way that others wait for.
type waiting struct {
	done   chan struct{}
	result core.Result
	err    error
}

// NewCache keeps answers of tools that are annotated as read-only and idempotent, and of
// those that are listed.
func NewCache(answers Answers, listed func(t *core.Tool) bool) *Cache {
	return &Cache{answers: answers, listed: listed, wrote: map[string]int{}, flying: map[string]*waiting{}}
}

// guard answers from the cache what may be, before anything is counted. Only calls that
// change nothing are kept, by the judgement of the policy; one that may drops what is kept
// of its server, before it leaves and after it has come back.
func (k *Cache) guard(x Execution, hit func()) Guard {
	return func(next sandbox.Host) sandbox.Host {
		if k == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			tool, ok := x.Tools.Exact(c.Server, c.Tool)
			if !ok {
				return next.Call(ctx, c)
			}
			d := x.Policy.Call(tool, c.Arguments)
			if d.Effect.Kind != core.EffectRead {
				k.forget(c.Server, x)
				defer k.forget(c.Server, x)
				return next.Call(ctx, c)
			}
			key, ok := x.key(tool, c.Arguments)
			if !ok || x.NoCache || c.NoCache || tool.Asks() || d.Verdict == policy.Deny || !k.keeps(tool) {
				return next.Call(ctx, c)
			}
			result, cached, err := k.answer(ctx, next, c, key)
			if cached {
				hit()
				x.Carried(c.Arguments)
				x.Carried(result.Value)
			}
			return result, err
		})
	}
}

func (k *Cache) keeps(t *core.Tool) bool {
	yes := func(hint *bool) bool { return hint != nil && *hint }
	return yes(t.Annotations.ReadOnly) && yes(t.Annotations.Idempotent) || k.listed != nil && k.listed(t)
}

func (k *Cache) forget(server string, x Execution) {
	if x.Rehearse != nil {
		return
	}
	k.mu.Lock()
	k.wrote[server]++
	k.mu.Unlock()
	k.answers.Forget(server)
}

// key tells calls apart: what was answered to one may not be answered to another one if
// anything of this differs. Tokens mean something in their session only.
func (x Execution) key(t *core.Tool, arguments json.RawMessage) (string, bool) {
	text, err := canonjson.Marshal(arguments)
	return strings.Join([]string{x.Scope, t.Server, t.Name, t.Pin, string(text)}, "\x00"), err == nil
}

// answer is a kept answer, that of an equal call which is under way, or a new one.
func (k *Cache) answer(ctx context.Context, next sandbox.Host, c core.Call, key string) (result core.Result, cached bool, err error) {
	for {
		if value, ok := k.answers.Get(c.Server, key); ok {
			return core.Result{Value: value}, true, nil
		}
		k.mu.Lock()
		other := k.flying[key]
		if other == nil {
			own := &waiting{done: make(chan struct{})}
			k.flying[key] = own
			wrote := k.wrote[c.Server]
			k.mu.Unlock()
			result, err := k.call(ctx, next, c, key, own, wrote)
			return result, false, err
		}
		k.mu.Unlock()
		select {
		case <-ctx.Done():
			return core.Result{}, false, core.Errorf(core.KindCancelled, "relay.cache", "cancelled: %w", context.Cause(ctx)).At(c.Server, c.Tool)
		case <-other.done:
		}
		if other.err == nil {
			other.result.Claim.Also()
			return other.result, true, nil
		}
	}
}

// errGone is the error of a call that ended without any answer.
var errGone = errors.New("the call ended")

func (k *Cache) call(ctx context.Context, next sandbox.Host, c core.Call, key string, own *waiting, wrote int) (core.Result, error) {
	own.err = errGone
	defer func() {
		k.mu.Lock()
		delete(k.flying, key)
		k.mu.Unlock()
		close(own.done)
	}()
	var saved atomic.Bool
	own.result, own.err = next.Call(context.WithValue(ctx, savedKey{}, &saved), c)
	k.mu.Lock()
	current := k.wrote[c.Server] == wrote
	k.mu.Unlock()
	if own.err == nil && current && !saved.Load() {
		k.answers.Put(c.Server, key, own.result.Value)
	}
	if own.err == nil && (saved.Load() || !current) {
		result := own.result
		own.err = errGone // nobody else's
		return result, nil
	}
	return own.result, own.err
}

// savedKey is where Files note that an answer has files beside it, which may go before the
// answer does.
type savedKey struct{}

// noting are files that note it.
type noting struct{ Files }

func (n noting) Save(ctx context.Context, suffix string, data []byte) (string, error) {
	note(ctx)
	return n.Files.Save(ctx, suffix, data)
}

func (n noting) Create(ctx context.Context, suffix string) (Incoming, error) {
	note(ctx)
	return n.Files.Create(ctx, suffix)
}

func note(ctx context.Context) {
	if saved, ok := ctx.Value(savedKey{}).(*atomic.Bool); ok {
		saved.Store(true)
	}
}
