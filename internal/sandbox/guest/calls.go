package guest

import (
	"encoding/json"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"

	"retort/internal/sandbox/wire"
)

// callTarget represents a server's tool that the program calls. It stores the encoded beginning that the call frames
// for this tool have in common.
type callTarget struct {
	wire.CallHead
	head []byte // encoded head of the tool's call frames
}

// pendingCall represents a call that has no result yet.
type pendingCall struct {
	target          *callTarget
	resolve, reject lib.TJSValue
	from            stackTrace
}

// nativeTarget registers a tool and returns the number that identifies it in nativeCall. Its arguments are the server
// and the tool.
func (g *guestProgram) nativeTarget(args []any) (any, error) {
	c := wire.CallHead{Server: textArgument(args, 0), Tool: textArgument(args, 1)}
	g.targets = append(g.targets, &callTarget{c, wire.CallFrame(0, c, nil).Head})
	return len(g.targets) - 1, nil
}

// nativeCall sends a call and returns the promise of its result. Its arguments are the number from nativeTarget and
// the call's arguments.
func (g *guestProgram) nativeCall(to, arguments lib.TJSValue) lib.TJSValue {
	exception := lib.TJSValue{Ftag: lib.EJS_TAG_EXCEPTION}
	body, ok := g.js.stringBytes(arguments)
	if !ok {
		return exception
	}
	promise, resolve, reject := g.js.newPromise()
	if isException(promise) {
		return exception
	}
	target := g.targets[g.js.intValue(to)]
	g.made++
	g.underWay++
	g.pending[g.made] = &pendingCall{target, resolve, reject, g.js.captureTrace()}
	g.postFrame(wire.Frame{Kind: wire.KindCall, ID: g.made, Head: target.head, Body: body})
	return promise
}

// nativeCallSync calls one of the engine's own functions, such as read_file, and blocks until it has the result. Its
// arguments are the function's name and the call's arguments. Results of other calls that arrive in the meantime are
// kept for later.
func (g *guestProgram) nativeCallSync(args []any) (any, error) {
	g.made++
	id := g.made
	g.postFrame(wire.CallFrame(id, wire.CallHead{Tool: textArgument(args, 0)}, []byte(textArgument(args, 1))))
	g.flushFrames()
	for {
		f, ok, err := g.checkReceived(g.inbox.waitFrame(time.Time{}))
		switch {
		case err != nil:
			return nil, err
		case ok && f.ID == id:
			return encodeAnswer(f), nil
		case ok:
			g.stash = append(g.stash, f)
		}
	}
}

// resolveCall resolves or rejects the promise of the call to which the frame f is the result.
func (g *guestProgram) resolveCall(f wire.Frame) error {
	call, ok := g.pending[f.ID]
	if !ok {
		return nil
	}
	delete(g.pending, f.ID)
	defer g.releaseCall(call)
	value, settler := g.resultValue(call, f), call.resolve
	if isException(value) {
		value, settler = lib.XJS_GetException(g.js.tls, g.js.context), call.reject
	}
	defer g.js.freeValue(value)
	if done := g.js.callFunction(settler, value); isException(done) {
		return g.js.takeException()
	}
	return nil
}

func (g *guestProgram) releaseCall(call *pendingCall) {
	g.js.freeValue(call.resolve)
	g.js.freeValue(call.reject)
	g.js.freeTrace(call.from)
}

// resultValue converts the result of a call to a JavaScript value. If the result is an error, it returns an exception,
// which is then pending in the engine.
func (g *guestProgram) resultValue(call *pendingCall, f wire.Frame) lib.TJSValue {
	failure := failureOf(f)
	switch {
	case failure != nil:
		return g.throwToolError(call, failure)
	case hasLongInteger(f.Body):
		return g.decodeValue(g.revived, f.Body)
	case utf8.Valid(f.Body):
		return g.js.parseJSON(f.Body)
	}
	return g.decodeValue(g.parsed, f.Body)
}

// decodeValue decodes the result of a call that JSON.parse alone cannot decode. The argument parse is the JavaScript
// function, from the guest's own code, that decodes the text in body.
func (g *guestProgram) decodeValue(parse quickjs.Value, body []byte) lib.TJSValue {
	text := g.js.newText(body)
	defer g.js.freeValue(text)
	if isException(text) {
		return text
	}
	return g.js.callFunction(g.js.unwrapValue(parse), text)
}

// throwToolError throws the ToolError of a failed call. The stack of the error is that of the place where the program
// made the call.
func (g *guestProgram) throwToolError(call *pendingCall, failure []byte) (exception lib.TJSValue) {
	var texts [3]lib.TJSValue
	for i, text := range [][]byte{failure, []byte(call.target.Server), []byte(call.target.Tool)} {
		texts[i] = g.js.newText(text)
		defer g.js.freeValue(texts[i])
		if isException(texts[i]) {
			return texts[i]
		}
	}
	g.js.callWithTrace(call.from, func() { exception = g.js.callFunction(g.js.unwrapValue(g.failed), texts[:]...) })
	if isException(exception) {
		return exception
	}
	return lib.XJS_Throw(g.js.tls, g.js.context, exception)
}

// failureOf returns the error in a result as JSON, or nil.
func failureOf(f wire.Frame) []byte {
	var head wire.AnswerHead
	if len(f.Head) == 0 || json.Unmarshal(f.Head, &head) != nil || head.Error == nil {
		return nil
	}
	text, err := json.Marshal(head.Error)
	if err != nil {
		return []byte(`{}`)
	}
	return text
}

// encodeAnswer encodes the result of a synchronous call as a letter followed by text, for the guest's JavaScript
// code. "v" means JSON, "b" means JSON with integers that may be too long for a number, and "e" means an error as
// JSON.
func encodeAnswer(f wire.Frame) string {
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

// hasLongInteger reports whether JSON contains a run of digits long enough that it may be an integer beyond 2^53.
func hasLongInteger(data []byte) bool {
	const digits = 16
	for i := digits - 1; i < len(data); i++ {
		if !unicode.IsDigit(rune(data[i])) {
			i += digits - 1 // no run of digits that covers this position can be long enough
			continue
		}
		first := i
		for first > 0 && unicode.IsDigit(rune(data[first-1])) {
			first--
		}
		last := i
		for last+1 < len(data) && unicode.IsDigit(rune(data[last+1])) {
			last++
		}
		if last-first+1 >= digits {
			return true
		}
		i = last + digits
	}
	return false
}
