package guest

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"

	"retort/internal/sandbox/wire"
)

// target represents the function that a call goes to, with its encoded frame head.
type target struct {
	wire.Call
	head []byte // of its frames
}

// pending represents a call that has no result yet.
type pending struct {
	target          *target
	resolve, reject lib.TJSValue
	from            trace
}

// nativeTarget (server, tool) returns the number that identifies a tool in nativeCall.
func (g *guest) nativeTarget(args []any) (any, error) {
	c := wire.Call{Server: text(args, 0), Tool: text(args, 1)}
	g.targets = append(g.targets, &target{c, wire.CallFrame(0, c, nil).Head})
	return len(g.targets) - 1, nil
}

// nativeCall (target, arguments) sends a call and returns the promise of its result.
func (g *guest) nativeCall(to, arguments lib.TJSValue) lib.TJSValue {
	exception := lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	body, ok := g.js.text(arguments)
	if !ok {
		return exception
	}
	promise, resolve, reject := g.js.promise()
	if threw(promise) {
		return exception
	}
	target := g.targets[g.js.integer(to)]
	g.made++
	g.underWay++
	g.pending[g.made] = &pending{target, resolve, reject, g.js.trace()}
	g.post(wire.Frame{Kind: wire.KindCall, ID: g.made, Head: target.head, Body: body})
	return promise
}

// nativeCallSync (tool, arguments) calls one of the engine's own functions and waits. It stashes results of other
// calls that arrive in the meantime.
func (g *guest) nativeCallSync(args []any) (any, error) {
	g.made++
	id := g.made
	g.post(wire.CallFrame(id, wire.Call{Tool: text(args, 0)}, []byte(text(args, 1))))
	g.flush()
	for {
		f, ok, err := g.received(g.inbox.wait(time.Time{}))
		switch {
		case err != nil:
			return nil, err
		case ok && f.ID == id:
			return answer(f), nil
		case ok:
			g.stash = append(g.stash, f)
		}
	}
}

// settle resolves or rejects the promise of the call that f answers.
func (g *guest) settle(f wire.Frame) error {
	call, ok := g.pending[f.ID]
	if !ok {
		return nil
	}
	delete(g.pending, f.ID)
	defer g.release(call)
	value, settler := g.outcome(call, f), call.resolve
	if threw(value) {
		value, settler = lib.XJS_GetException(g.js.tls, g.js.context), call.reject
	}
	defer g.js.free(value)
	if done := g.js.invoke(settler, value); threw(done) {
		return g.js.exception()
	}
	return nil
}

func (g *guest) release(call *pending) {
	g.js.free(call.resolve)
	g.js.free(call.reject)
	g.js.freeTrace(call.from)
}

// outcome returns the value of a result. If the result is an error, it leaves an exception pending.
func (g *guest) outcome(call *pending, f wire.Frame) lib.TJSValue {
	failure := failureOf(f)
	switch {
	case failure != nil:
		return g.throw(call, failure)
	case hasLongInteger(f.Body):
		return g.decode(g.revived, f.Body)
	case utf8.Valid(f.Body):
		return g.js.parse(f.Body)
	}
	return g.decode(g.parsed, f.Body)
}

// decode parses body with a function of the prelude, for results that JSON.parse alone cannot decode.
func (g *guest) decode(parse quickjs.Value, body []byte) lib.TJSValue {
	text := g.js.newText(body)
	defer g.js.free(text)
	if threw(text) {
		return text
	}
	return g.js.invoke(g.js.unwrap(parse), text)
}

// throw creates the ToolError of a call, with the position of the call.
func (g *guest) throw(call *pending, failure []byte) (exception lib.TJSValue) {
	var texts [3]lib.TJSValue
	for i, text := range [][]byte{failure, []byte(call.target.Server), []byte(call.target.Tool)} {
		texts[i] = g.js.newText(text)
		defer g.js.free(texts[i])
		if threw(texts[i]) {
			return texts[i]
		}
	}
	g.js.within(call.from, func() { exception = g.js.invoke(g.js.unwrap(g.failed), texts[:]...) })
	if threw(exception) {
		return exception
	}
	return lib.XJS_Throw(g.js.tls, g.js.context, exception)
}

// failureOf returns the error in a result as JSON, or nil.
func failureOf(f wire.Frame) []byte {
	var head wire.Answer
	if len(f.Head) == 0 || json.Unmarshal(f.Head, &head) != nil || head.Error == nil {
		return nil
	}
	text, err := json.Marshal(head.Error)
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

// answer encodes a result for callOwnNow: a letter followed by a text. "v" means JSON, "b" means JSON with integers
// that may be too long for a number, "e" means an error as JSON.
func answer(f wire.Frame) string {
	if failure := failureOf(f); failure != nil {
		return "e" + string(failure)
	}
	var b strings.Builder
	b.Grow(1 + len(f.Body))
	if hasLongInteger(f.Body) {
		b.WriteString("b")
	} else {
		b.WriteString("v")
	}
	b.Write(f.Body)
	return b.String()
}

// hasLongInteger reports whether JSON holds a run of digits that may be an
// integer beyond 2^53.
func hasLongInteger(data []byte) bool {
	const digits = 16
	for i := digits - 1; i < len(data); i++ {
		if !isDigit(data[i]) {
			i += digits - 1 // no run of digits that covers this position can be long enough
			continue
		}
		first := i
		for first > 0 && isDigit(data[first-1]) {
			first--
		}
		last := i
		for last+1 < len(data) && isDigit(data[last+1]) {
			last++
		}
		if last-first+1 >= digits {
			return true
		}
		i = last + digits
	}
	return false
}

func isDigit(b byte) bool { return b >= '0' && b <= '9' }
