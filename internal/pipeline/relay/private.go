package relay

import (
	"context"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"retort/internal/pipeline/isolate"
	"retort/internal/run"
)

// Privacy puts tokens in the place of what is personal in answers, and values in the
// place of tokens in arguments.
type Privacy interface {
	// Incoming is a document of a server, or a text, as programs may see it.
	Incoming(server string, document []byte) ([]byte, error)
	// Restore is the arguments as the server gets them. crosses is why a person is
	// asked, as values go where they do not come from; "" if nobody is.
	Restore(server string, arguments json.RawMessage) (restored json.RawMessage, crosses string, refused *run.Error)
}

// private restores what goes out. What guards behind it say of real arguments comes back
// hidden.
func private(x Execution) Guard {
	return func(next isolate.Host) isolate.Host {
		if x.Privacy == nil {
			return next
		}
		return isolate.HostFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			arguments, crosses, refused := x.Privacy.Restore(c.Server, c.Arguments)
			if refused != nil {
				return run.Result{}, refused.At(c.Server, c.Tool)
			}
			c.Arguments, c.Crosses = arguments, crosses
			result, err := next.Call(ctx, c)
			if err != nil {
				return run.Result{}, hidden(x.Privacy, c.Server, run.AsError(err))
			}
			return result, nil
		})
	}
}

// hidden is an error without what is personal in it.
func hidden(p Privacy, server string, e *run.Error) *run.Error {
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
func unhidden(what string, cause error) *run.Error {
	e := run.Errorf(run.KindInternal, "relay.private", "%s, since what is personal in it could not be hidden: %w", what, cause)
	if limit := run.AsError(cause); limit.Kind == run.KindLimit {
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
func shown(x Execution, server string, value json.RawMessage) (run.Result, error) {
	if x.Privacy == nil {
		return run.Result{Value: value}, nil
	}
	hidden, err := x.Privacy.Incoming(server, value)
	if err != nil {
		return run.Result{}, unhidden("the answer was held back", err)
	}
	return run.Result{Value: hidden}, nil
}
