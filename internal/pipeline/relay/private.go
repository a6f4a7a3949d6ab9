package relay

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/sandbox"
)

// Privacy puts tokens in the place of what is personal in answers, and values in the
// place of tokens in arguments.
type Privacy interface {
	// Incoming is a document of a server, or a text, as programs may see it.
	Incoming(server string, document []byte) ([]byte, error)
	// Restore is the arguments as the server gets them. crosses is why a person is
	// asked, as values go where they do not come from; "" if nobody is.
	Restore(server string, arguments json.RawMessage) (restored json.RawMessage, crosses string, refused *core.Error)
}

// private restores what goes out. What guards behind it say of real arguments comes back
// hidden.
func private(x Execution) Guard {
	return func(next sandbox.Host) sandbox.Host {
		if x.Privacy == nil {
			return next
		}
		return sandbox.HostFunc(func(ctx context.Context, c core.Call) (core.Result, error) {
			arguments, crosses, refused := x.Privacy.Restore(c.Server, c.Arguments)
			if refused != nil {
				return core.Result{}, refused.At(c.Server, c.Tool)
			}
			c.Arguments, c.Crosses = arguments, crosses
			result, err := next.Call(ctx, c)
			if err != nil {
				return core.Result{}, hidden(x.Privacy, c.Server, core.AsError(err))
			}
			return result, nil
		})
	}
}

// hidden is an error without what is personal in it.
func hidden(p Privacy, server string, e *core.Error) *core.Error {
	c := *e
	for _, text := range []*string{&c.Message, &c.Hint} {
		shown, err := p.Incoming(server, []byte(*text))
		if err != nil {
			return unhidden("the error could not be shown", err).At(e.Server, e.Tool)
		}
		*text = cut(string(shown))
	}
	return &c
}

// unhidden says what became of something that could not be hidden. Of a limit that was met
// it keeps the kind and the hint.
func unhidden(what string, cause error) *core.Error {
	e := core.Errorf(core.KindInternal, "relay.private", "%s, since what is personal in it could not be hidden: %w", what, cause)
	if limit := core.AsError(cause); limit.Kind == core.KindLimit {
		e.Kind, e.Hint = limit.Kind, limit.Hint
	}
	return e
}

// hiding keeps the bytes that a server sends as files. Where they are text, programs read
// in them what they see in answers. Nobody looks into other bytes.
type hiding struct {
	Files
	privacy Privacy
	server  string
}

func (h hiding) Save(ctx context.Context, suffix string, data []byte) (string, error) {
	if utf8.Valid(data) {
		hidden, err := h.privacy.Incoming(h.server, data)
		if err != nil {
			return "", unhidden("the file was held back", err)
		}
		data = hidden
	}
	return h.Files.Save(ctx, suffix, data)
}

// maxMessage bounds what a program sees of an error, in bytes.
const maxMessage = 4 << 10

func cut(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}

// shown is an answer as the program sees it.
func shown(x Execution, server string, value json.RawMessage) (core.Result, error) {
	if x.Privacy == nil {
		return core.Result{Value: value}, nil
	}
	hidden, err := x.Privacy.Incoming(server, value)
	if err != nil {
		return core.Result{}, unhidden("the answer was held back", err)
	}
	return core.Result{Value: hidden}, nil
}
