package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/sandbox/wire/shm"
)

// Maximum sizes of what a guest sends, except the value, whose limit is the program's.
const (
	maxReady     = 4 << 10
	maxOutput    = 256 << 10
	maxArguments = 16 << 20
	maxDoneHead  = 256 << 10
	maxError     = 64 << 10 // bytes of an error's message or stack
)

// MaxHarness limits the size of a compiled harness, in bytes.
const MaxHarness = 4 << 20

// maxAnswer limits the size of the result of one call, in bytes.
const maxAnswer = 512 << 20

// GuestSizes returns the frames that a guest accepts.
func GuestSizes() Sizes { return Sizes{KindStart: 256 << 20, KindResult: maxAnswer} }

// HarnessSizes returns the frames that a guest accepts while it waits for its harness.
func HarnessSizes() Sizes { return Sizes{KindHarness: MaxHarness} }

// Greet reads the first frame of a guest, which says that it is ready and which runtime it is.
func Greet(conn *Conn) (Ready, error) {
	conn.Accept(Sizes{KindReady: maxReady})
	f, err := conn.Read()
	if err != nil {
		return Ready{}, err
	}
	var ready Ready
	if err := decode(f, &ready); err != nil {
		return Ready{}, err
	}
	if ready.Protocol != Protocol {
		return Ready{}, violation("the guest speaks protocol %d, the host %d", ready.Protocol, Protocol)
	}
	return ready, nil
}

// End describes how a program ended.
type End struct {
	Status   core.Status
	Value    json.RawMessage // nil if the program has none
	Error    *core.Error
	Output   []byte // valid UTF-8, cut at the limit
	Warnings []string
}

// Serve runs p on the guest at the other end of conn, which has been greeted,
// and answers its calls from h, until the program ends, ctx ends or a limit is
// reached. When it returns, no call is under way, and conn is closed unless the
// guest has said its last word and waits for that. p.Limits must be complete.
//
// A context that ends with a *Stop as its cause ends the program that way, any
// other as cancelled, whatever the guest says after that. The error is nil, or ErrGone when the guest closed its
// end before the program was done; End then holds the output so far.
func Serve(ctx context.Context, conn *Conn, p core.Program, h Host) (End, error) {
	s := &session{conn: conn, limits: p.Limits}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	release := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer release()
	s.clock = startClock(p.Limits.Timeout, func() { s.stop(TimeoutStop(p.Limits.Timeout)) })
	defer s.clock.stop()
	if p.Limits.Computing > 0 && p.Limits.Computing < p.Limits.Timeout {
		s.busy = startClock(p.Limits.Computing, func() { s.stop(ComputingStop(p.Limits.Computing)) })
		defer s.busy.stop()
	}
	s.calls = newCalls(core.WithPause(s.ctx, s.pause), h, p.Limits.Concurrency, s.answer)
	conn.Accept(s.sizes())
	conn.admit = s.admit
	defer func() { conn.admit = nil }()

	if ctx.Err() != nil { // a short program could end before the goroutine runs
		_ = conn.Close()
		return s.settle(nil, context.Cause(ctx))
	}
	err := s.conn.Send(Frame{Kind: KindStart, Head: encode(startOf(p)), Body: []byte(p.Code)})
	for err == nil && !s.done {
		err = s.receive()
	}
	cause := context.Cause(s.ctx)
	if !s.done || s.calls.some() || !release() {
		_ = conn.Close()
	}
	s.stop(nil)
	s.calls.wait()
	return s.settle(err, cause)
}

// pause stops the clock of the program and the clock that the caller of Serve keeps, if there is one.
func (s *session) pause() (resume func()) {
	outer, own := core.Pause(s.ctx), s.clock.pause()
	return func() { own(); outer() }
}

// waits stops the clock of the program's computing time until resume is called.
func (s *session) waits() (resume func()) {
	if s.busy == nil {
		return func() {}
	}
	return s.busy.pause()
}

func startOf(p core.Program) Start {
	start := Start{Name: p.Name, Modules: p.Modules, Memory: p.Limits.Memory, Result: p.Limits.Result}
	for _, n := range p.Namespaces {
		start.Namespaces = append(start.Namespaces, Namespace{Server: n.Server, Global: n.Global, Modules: n.Modules, Functions: encode(n.Functions)})
	}
	return start
}

// session is the host's side of one program.
type session struct {
	ctx    context.Context
	stop   context.CancelCauseFunc
	conn   *Conn
	limits core.Limits
	clock  *clock
	busy   *clock // runs while the guest waits neither for a call nor to be woken; nil if the backend measures that
	calls  *calls
	denied denials

	// Only the goroutine of Serve uses the following fields.
	made   int // tool calls
	head   []byte
	target Call   // what head says
	waker  *waker // once the guest has asked for it
	output []byte
	done   bool
	end    End
}

func (s *session) sizes() Sizes {
	return Sizes{KindOutput: maxOutput, KindCall: maxArguments, KindWake: 0, KindDone: int(s.limits.Result) + maxDoneHead}
}

// admit waits until there is memory for the value of the program.
func (s *session) admit(k Kind, size int64) error {
	if memory := core.MemoryOf(s.ctx); memory != nil && k == KindDone {
		return memory.Receive(s.ctx, core.ClaimOf(s.ctx), size)
	}
	return nil
}

// receive handles one frame. An error ends the session.
func (s *session) receive() error {
	f, err := s.conn.Read()
	var large *errLarge
	if errors.As(err, &large) {
		return s.refuseLarge(large)
	}
	if err != nil {
		return err
	}
	switch f.Kind {
	case KindOutput:
		return s.print(f.Body)
	case KindCall:
		return s.call(f)
	case KindWake:
		if s.waker == nil {
			s.waker = newWaker(s.ctx, s.conn, s.waits)
		}
		s.waker.after(time.Duration(f.ID) * time.Millisecond)
		return nil
	default:
		if s.ctx.Err() != nil { // it reports this because it was told to end
			return context.Cause(s.ctx)
		}
		return s.finish(f)
	}
}

func (s *session) print(text []byte) error {
	room := s.limits.Output - int64(len(s.output))
	if int64(len(text)) <= room {
		s.output = append(s.output, text...)
		return nil
	}
	for room > 0 && !utf8.RuneStart(text[room]) {
		room--
	}
	s.output = append(s.output, text[:room]...)
	return outputStop(s.limits.Output)
}

// call dispatches a call. Only calls to a tool count towards the limit.
func (s *session) call(f Frame) error {
	head, err := s.destination(f)
	if err != nil {
		return err
	}
	if head.Server != "" || head.Tool == "call" {
		if err := s.count(); err != nil {
			return err
		}
	}
	if !isJSON(f.Body) {
		s.answer(f.ID, core.Result{}, core.Errorf(core.KindInvalidArguments, "isolate.run", "the arguments of the call are %s", noJSON).At(head.Server, head.Tool))
		return nil
	}
	s.calls.submit(call{f.ID, s.waits(), core.Call{Server: head.Server, Tool: head.Tool, Arguments: f.Body}})
	return nil
}

// count counts one more call towards the limit.
func (s *session) count() error {
	if s.made++; s.made > s.limits.ToolCalls {
		return callStop(s.limits.ToolCalls)
	}
	return nil
}

// refuseLarge answers a call that was dropped because it is too large. It counts towards the limit in any case.
func (s *session) refuseLarge(large *errLarge) error {
	if err := s.count(); err != nil {
		return err
	}
	s.answer(large.id, core.Result{}, core.Errorf(core.KindLimit, "isolate.run", "%w", large).
		WithHint("write the data to a file in ./workspace and pass its path, or send it in parts"))
	return nil
}

const noJSON = "not JSON in UTF-8, or nested more than 10,000 levels deep"

// isJSON reports whether data is JSON in valid UTF-8 that is not nested too deeply. Package json alone accepts
// invalid UTF-8 in strings.
func isJSON(data []byte) bool { return utf8.Valid(data) && json.Valid(data) }

// destination decodes the head of a call. It is usually equal to the previous head, which is cached.
func (s *session) destination(f Frame) (Call, error) {
	if s.head != nil && bytes.Equal(f.Head, s.head) {
		return s.target, nil
	}
	var head Call
	if err := decode(f, &head); err != nil {
		return Call{}, err
	}
	s.head, s.target = bytes.Clone(f.Head), head
	return head, nil
}

// answer sends the result of a call. It ignores errors, because reading then fails, too.
func (s *session) answer(id uint32, r core.Result, err error) {
	if err == nil && int64(len(r.Value)) > min(maxAnswer, s.limits.Memory) {
		err = &core.Error{Kind: core.KindLimit, Message: "the tool returned " + Bytes(int64(len(r.Value))) + ", more than the program can hold",
			Hint: "ask the tool for less: a page, a filter, fewer fields"}
	}
	f := Frame{Kind: KindResult, ID: id, Body: r.Value}
	if err == nil && r.Claim.Holds() {
		f.Claim = r.Claim
	}
	if err != nil {
		r.Claim.Free()
		e := core.AsError(err)
		s.denied.add(e)
		f.Head, f.Body = encode(Answer{Error: e}), nil
	} else if len(f.Body) == 0 {
		f.Body = []byte("null")
	}
	_ = s.conn.Send(f)
}

// finish handles the guest's last frame. It trusts nothing in it.
func (s *session) finish(f Frame) error {
	var head Done
	if err := decode(f, &head); err != nil {
		return err
	}
	s.end = End{Status: head.Status, Error: s.sanitize(head.Error), Warnings: bounded(head.Warnings)}
	switch head.Status {
	case core.StatusOK:
		s.end.Error = nil
	case core.StatusError, core.StatusMemoryLimit, core.StatusOutputLimit:
		if head.Status == core.StatusMemoryLimit && head.Error == nil && !head.HasValue {
			return MemoryStop(s.limits.Memory) // the guest had no memory for a message
		}
		if head.Error == nil || head.HasValue {
			return violation("a failed program without an error, or with a value")
		}
	default:
		return violation("a program that ended with status %q", head.Status)
	}
	if head.HasValue {
		if int64(len(f.Body)) > s.limits.Result {
			return ResultStop(int64(len(f.Body)), s.limits.Result)
		}
		if !isJSON(f.Body) {
			return &Stop{Status: core.StatusError, Reason: core.Errorf(core.KindRuntime, "isolate.run", "the returned value is %s", noJSON).
				WithHint("return it in a flatter form, such as a list of rows")}
		}
		s.end.Value = f.Body
	}
	s.done = true
	return nil
}

// denials stores the policy's errors, and other errors that only the host can produce, that were sent to a guest.
// Only these are accepted as the guest's final error.
type denials struct {
	mu   sync.Mutex
	said map[string]bool
}

func (d *denials) add(e *core.Error) {
	const most = 256
	if ofGuests[e.Kind] {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.said == nil {
		d.said = map[string]bool{}
	}
	if len(d.said) < most {
		d.said[e.Message] = true
	}
}

func (d *denials) has(message string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said[message]
}

// sanitize bounds the size of a guest's error and keeps it from blaming the host. A policy error, or another error
// that only the host can produce, must be one that was sent to the guest.
func (s *session) sanitize(e *core.Error) *core.Error {
	if e == nil {
		return nil
	}
	c := *e
	if !ofGuests[c.Kind] && !s.denied.has(c.Message) {
		c.Kind = core.KindRuntime
	}
	c.Message, c.Hint, c.Stack, c.Frame = clip(c.Message), clip(c.Hint), clip(c.Stack), ""
	c.Line, c.Column = max(c.Line, 0), max(c.Column, 0)
	return &c
}

// bounded bounds the number of a guest's warnings and the size of each. It replaces a long warning instead of cutting
// it, because personal data in a cut text would not be recognized.
func bounded(warnings []string) []string {
	const most, long = 16, 4 << 10
	var kept []string
	for _, w := range warnings[:min(most, len(warnings))] {
		if len(w) > long {
			w = fmt.Sprintf("a warning of %d bytes was left out", len(w))
		}
		kept = append(kept, w)
	}
	return kept
}

// ofGuests lists the kinds of errors that a guest may report for its own failures. Errors of other kinds come from
// the host or are forged.
var ofGuests = map[core.Kind]bool{
	core.KindSyntax: true, core.KindType: true, core.KindRuntime: true, core.KindToolError: true, core.KindToolNotFound: true, core.KindInvalidArguments: true,
	core.KindUpstreamGone: true, core.KindUpstreamTimeout: true, core.KindLimit: true, core.KindCancelled: true,
}

func clip(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// settle returns how the program ended. err is the error that ended reading, and cause the reason why the context had
// ended before, or nil.
func (s *session) settle(err, cause error) (End, error) {
	end := s.end
	end.Output = []byte(strings.ToValidUTF8(string(s.output), "�"))
	if s.done {
		return end, nil
	}
	if cause != nil {
		err = cause
	}
	var stopped *Stop
	var broken *Violation
	switch {
	case errors.As(err, &stopped):
	case cause != nil:
		stopped = cancelStop()
	case errors.As(err, &broken):
		stopped = breach(broken)
	case errors.Is(err, shm.ErrBroken):
		stopped = breach(err)
	default:
		return end, ErrGone
	}
	end.Status, end.Error, end.Value = stopped.Status, stopped.Reason, nil
	return end, nil
}

// breach returns the Stop for a guest that violates the protocol. The harnesses never do that, but programs can reach
// the descriptors of the wire.
func breach(err error) *Stop {
	return &Stop{Status: core.StatusError, Reason: core.Errorf(core.KindRuntime, "isolate.run", "the sandbox was ended: %w", err).
		WithHint("a program must not use the descriptors that it was started with")}
}
