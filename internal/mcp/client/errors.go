package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"retort/internal/core"
)

var (
	// errSessionGone means that the server no longer knows the session of a request, and so has not processed the
	// request.
	errSessionGone = errors.New("session gone")
	// errUnreachable means that no connection to the server could be made.
	errUnreachable = errors.New("unreachable")
)

const (
	codeHeaderMismatch   = -32020
	codeMissing          = -32021
	codeInputRequiredURL = -32042
)

// opReceive is the value of core.Error.Op in errors that occur while an answer of the server is received or read.
const opReceive = "upstream.receive"

func errClosed() *core.Error {
	return core.Errorf(core.KindUpstreamGone, "upstream", "the connection to the server was closed")
}

// errCancelled returns the error of an operation whose ctx has ended. when says in the message what the operation was
// doing, for example "while waiting for an instance of the server".
func errCancelled(ctx context.Context, when string) *core.Error {
	if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
		return core.Errorf(core.KindUpstreamTimeout, "upstream", "the time limit was reached %s: %w", when, context.Cause(ctx))
	}
	return core.Errorf(core.KindInternal, "upstream", "cancelled %s: %w", when, ctx.Err())
}

// explainError converts an error of the SDK or the connection to the error that people and models see.
func (s *serverConn) explainError(ctx context.Context, op string, limited context.Context, x *pendingCall, cause error) *core.Error {
	var e *core.Error
	var rpc *jsonrpc.Error
	switch {
	case errors.Is(cause, errUnadmittedAnswer) && errors.As(cause, &e):
		return e // the server is not to blame, and the outcome is known
	case ctx.Err() != nil:
		e = errCancelled(ctx, "while waiting for the server")
	case limited.Err() != nil:
		e = core.Errorf(core.KindUpstreamTimeout, op, "the server did not answer within %s", s.spec.CallTimeout).
			WithHint("it may still be working on it; request less data, or raise the server's call timeout")
	case errors.As(cause, &e):
		if e = s.withStderr(e); e.Hint == "" && errors.Is(e, errBrokenOff) {
			e = e.WithHint("it may be too much for the server: request less data, with a filter, a page size or a range")
		}
	case errors.As(cause, &rpc):
		e = explainRPC(op, rpc)
	default:
		e = core.Errorf(core.KindUpstreamGone, op, "the server cannot be used: %w", cause)
	}
	if lacks := s.spec.Client.lackingCapability(e); lacks != nil {
		c := *e
		c.Err = errors.Join(e.Err, lacks)
		return &c
	}
	if x.sent.Load() && (e.Kind == core.KindUpstreamGone || e.Kind == core.KindUpstreamTimeout || e.Op == opReceive || ctx.Err() != nil) {
		c := *e
		c.Err = errors.Join(e.Err, ErrOutcomeUnknown)
		return &c
	}
	return e
}

// maxMessage bounds the length of a server's error message, in bytes. It is larger than the part that is shown,
// because personal data is searched in the whole message before the message is cut.
const maxMessage = 64 << 10

// explainRPC converts a server's error response to the error that people and models see.
func explainRPC(op string, rpc *jsonrpc.Error) *core.Error {
	message := safePrefix(strings.TrimSpace(rpc.Message), maxMessage)
	if message == "" {
		message = fmt.Sprintf("the server answered with error %d", rpc.Code)
	}
	if detail := string(rpc.Data); len(detail) > len(`""`) && detail != "null" && !strings.Contains(message, strings.Trim(detail, `"`)) {
		message += " (" + safePrefix(detail, maxMessage) + ")"
	}
	e := &core.Error{Kind: core.KindToolError, Op: op, Message: message, Err: rpc}
	switch rpc.Code {
	case jsonrpc.CodeInvalidParams:
		e.Kind = core.KindInvalidArguments
	case codeMissing:
		return e.WithHint(
			"the server needs a client feature that the client does not support, or that the server's settings do not allow",
		)
	}
	return e
}

func isHeaderMismatch(err error) bool {
	var rpc *jsonrpc.Error
	return errors.As(err, &rpc) && rpc.Code == codeHeaderMismatch
}

// withStderr adds the last lines of the server's standard error to an error about the end of the server.
func (s *serverConn) withStderr(e *core.Error) *core.Error {
	if e.Kind != core.KindUpstreamGone && e.Kind != core.KindUpstreamTimeout || e.Hint != "" {
		return e
	}
	lines := s.stderr.lastLines(5)
	if len(lines) == 0 {
		return e
	}
	return e.WithHint("its last lines on standard error: %s", strings.Join(lines, " | "))
}

// errOpen returns the error for uses of the server while its circuit breaker is open. The caller must hold mu.
func (s *serverConn) errOpen() *core.Error {
	wait := time.Until(s.breaker.RetryAt).Round(time.Second)
	e := core.Errorf(core.KindUpstreamGone, "upstream.connect", "the server failed %d times in a row and is not called for %s; the last error: %w",
		s.breaker.Failures, max(wait, time.Second), s.lastErr)
	e.Message = strings.Replace(e.Message, s.lastErr.Error(), s.lastErr.Message, 1)
	e.Hint = s.lastErr.Hint
	return e
}

// bytesText formats a size for messages, such as 64 MB.
func bytesText(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

func firstByte(b []byte) byte {
	for _, c := range b {
		if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

// checkSpec returns an error unless spec has exactly one of Command, URL and Dial, a transport that fits it, and a
// valid URL.
func checkSpec(spec ServerSpec) *core.Error {
	set := 0
	for _, is := range []bool{spec.Command != "", spec.URL != "", spec.Dial != nil} {
		if is {
			set++
		}
	}
	e := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindUpstreamGone, "upstream", format, args...)
	}
	switch t := spec.Transport; {
	case set == 0:
		return e("the server has neither a command nor a url")
	case set > 1:
		return e("the server has both a command and a url")
	case t != "" && t != transportStdio && t != transportHTTP && t != transportSSE:
		return e("unknown transport %q of the server", t).WithHint("valid transports are stdio, http and sse")
	case t == transportStdio && spec.Command == "", (t == transportHTTP || t == transportSSE) && spec.URL == "":
		return e("the server's transport %q conflicts with its other settings", t)
	case spec.URL != "":
		return checkURL(spec.URL)
	}
	return nil
}
