package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// PrivacyFilter replaces personal data in servers' answers by tokens, and replaces tokens in arguments by the
// personal data that they stand for.
type PrivacyFilter interface {
	// Incoming returns a document or text from a server as programs may see it, with personal data replaced by
	// tokens.
	Incoming(server string, document []byte) ([]byte, error)
	// Restore replaces tokens in a call's arguments by the personal data that they stand for, before the call goes to a
	// server. If some of that data did not come from this server, crosses describes it, and the call needs approval.
	// Otherwise crosses is "". schema is the tool's input schema, or nil if there is no schema.
	Restore(
		server string, arguments, schema json.RawMessage,
	) (restored json.RawMessage, crosses string, refused *core.Error)
}

// privacyGuard returns the guard that replaces tokens in arguments by values. The later guards and the server see
// real values, so privacyGuard hides personal data in the errors that come back from them.
func privacyGuard(x ExecutionContext) CallGuard {
	return func(next sandbox.ToolHost) sandbox.ToolHost {
		if x.Privacy == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.ToolCall) (core.CallResult, error) {
			var schema json.RawMessage
			if t, ok := x.Tools.FindExact(c.Server, c.Tool); ok {
				schema = t.InputSchema
			}
			arguments, crosses, refused := x.Privacy.Restore(c.Server, c.Arguments, schema)
			if refused != nil {
				return core.CallResult{}, refused.AtTool(c.Server, c.Tool)
			}
			c.Restored = !bytes.Equal(arguments, c.Arguments)
			c.Arguments, c.Crosses = arguments, crosses
			result, err := next.Call(ctx, c)
			if err != nil {
				return core.CallResult{}, hideError(x.Privacy, c.Server, core.AsError(err))
			}
			return result, nil
		})
	}
}

// hideError returns a copy of e with personal data hidden in its message and hint.
func hideError(p PrivacyFilter, server string, e *core.Error) *core.Error {
	c := *e
	for _, text := range []*string{&c.Message, &c.Hint} {
		shown, err := p.Incoming(server, []byte(*text))
		if err != nil {
			return unhiddenError("the error could not be shown", err).AtTool(e.Server, e.Tool)
		}
		*text = cutText(string(shown))
	}
	return &c
}

// unhiddenError returns the error for data in which personal data could not be hidden. If the cause is a limit, the
// error has the kind and hint of the cause.
func unhiddenError(what string, cause error) *core.Error {
	e := core.Errorf(core.KindInternal, "relay.private", "%s, because personal data in it could not be hidden: %w", what, cause)
	if limit := core.AsError(cause); limit.Kind == core.KindLimit {
		e.Kind, e.Hint = limit.Kind, limit.Hint
	}
	return e
}

// hidingFiles stores files from a server. It hides personal data in a file that is text, and stores other files
// unchanged.
type hidingFiles struct {
	FileStore
	privacy PrivacyFilter
	server  string
}

func (h hidingFiles) Save(ctx context.Context, suffix string, data []byte) (string, error) {
	path, _, err := h.saveAs(ctx, "", suffix, data)
	return path, err
}

// saveAs stores a file with a MIME type. It returns the path of the file and the number of bytes in it. A text in which
// personal data was hidden is stored in UTF-8, whatever its original encoding was.
func (h hidingFiles) saveAs(
	ctx context.Context, mime, suffix string, data []byte,
) (path string, stored int, err error) {
	hide := func(text []byte) ([]byte, error) { return h.privacy.Incoming(h.server, text) }
	if data, _, err = hideBytes(mime, data, hide); err != nil {
		return "", 0, err
	}
	path, err = h.FileStore.Save(ctx, suffix, data)
	return path, len(data), err
}

// maxMessage bounds the error message that a program sees, in bytes.
const maxMessage = 4 << 10

func cutText(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}

// showAnswer returns a tool result with personal data hidden, as the program gets it.
func showAnswer(x ExecutionContext, server string, value json.RawMessage) (core.CallResult, error) {
	if x.Privacy == nil {
		return core.CallResult{Value: value}, nil
	}
	hidden, err := x.Privacy.Incoming(server, value)
	if err != nil {
		return core.CallResult{}, unhiddenError("the answer was withheld", err)
	}
	return core.CallResult{Value: hidden}, nil
}
