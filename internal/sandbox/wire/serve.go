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

// maxReady and the following constants are the maximum sizes of a guest's messages, in bytes. The size of the
// program's value is limited by core.Limits.Result instead.
const (
	maxReady     = 4 << 10
	maxOutput    = 256 << 10
	maxArguments = 16 << 20
	maxDoneHead  = 256 << 10
	maxError     = 64 << 10 // maximum number of bytes in an error's message or stack
)

// MaxHarness bounds the size of a compiled harness (the code that runs programs in a guest), in bytes.
const MaxHarness = 4 << 20

// maxAnswer bounds the size of the result of one call, in bytes.
const maxAnswer = 512 << 20

// GuestSizes returns the kinds of frames that a guest accepts, with their maximum sizes.
func GuestSizes() FrameSizes { return FrameSizes{KindStart: 256 << 20, KindResult: maxAnswer} }

// HarnessSizes returns the kinds of frames, with their maximum sizes, that a guest accepts while it waits for its
// compiled harness, the code that runs programs in it.
func HarnessSizes() FrameSizes { return FrameSizes{KindHarness: MaxHarness} }

// ReadGreeting reads the first frame of a guest. The frame says that the guest is ready and which runtime it has. It
// returns an error if the guest has another protocol version.
func ReadGreeting(conn *FrameConn) (GuestReady, error) {
	conn.Accept(FrameSizes{KindReady: maxReady})
	f, err := conn.Read()
	if err != nil {
		return GuestReady{}, err
	}
	var ready GuestReady
	if err := decodeHead(f, &ready); err != nil {
		return GuestReady{}, err
	}
	if ready.Protocol != Protocol {
		return GuestReady{}, newViolation("the guest uses protocol %d, the host %d", ready.Protocol, Protocol)
	}
	return ready, nil
}

// ProgramEnd describes how a program ended.
type ProgramEnd struct {
	Status   core.OutcomeStatus
	Value    json.RawMessage // value of the program as JSON; nil if the program has none
	Error    *core.Error
	Output   []byte // console output of the program: valid UTF-8, cut at the output limit
	Warnings []string
}

// ServeProgram runs p on the guest at the other end of conn and lets h answer its calls, until the program ends, ctx
// ends or a limit is reached. The guest must have sent its ready frame. p.Limits must be complete. When ServeProgram
// returns, no call is in progress. It closes conn, unless the guest has sent its last frame and waits for the
// connection to close. If ctx ends with a *StopReason as its cause, the program ends with the status in that
// StopReason, otherwise as cancelled. What the guest sends afterwards is ignored. The error is ErrGone if the guest
// closed its connection before the program was done. In that case ProgramEnd contains the output so far. Otherwise
// the error is nil.
func ServeProgram(ctx context.Context, conn *FrameConn, p core.CheckedProgram, h CallHost) (ProgramEnd, error) {
	s := &hostSession{conn: conn, limits: p.Limits}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	release := context.AfterFunc(s.ctx, func() { _ = conn.Close() })
	defer release()
	s.clock = startClock(p.Limits.Timeout, func() { s.stop(TimeoutStop(p.Limits.Timeout)) })
	defer s.clock.stopClock()
	if p.Limits.Computing > 0 && p.Limits.Computing < p.Limits.Timeout {
		s.busy = startClock(p.Limits.Computing, func() { s.stop(ComputingStop(p.Limits.Computing)) })
		defer s.busy.stopClock()
	}
	s.calls = newCalls(core.WithPause(s.ctx, s.pauseClocks), h, p.Limits.Concurrency, s.sendAnswer)
	conn.Accept(s.acceptedSizes())
	conn.admit = s.admitValue
	defer func() { conn.admit = nil }()

	if ctx.Err() != nil { // a short program could end before the goroutine runs
		_ = conn.Close()
		return s.endOf(nil, context.Cause(ctx))
	}
	err := s.conn.SendFrame(Frame{Kind: KindStart, Head: encodeHead(startOf(p)), Body: []byte(p.Code)})
	for err == nil && !s.done {
		err = s.receiveFrame()
	}
	cause := context.Cause(s.ctx)
	if !s.done || s.calls.hasCalls() || !release() {
		_ = conn.Close()
	}
	s.stop(nil)
	s.calls.waitIdle()
	return s.endOf(err, cause)
}

// pauseClocks stops the clock of the program and the clock in the context of ServeProgram's caller, if there is one,
// until resume is called.
func (s *hostSession) pauseClocks() (resume func()) {
	outer, own := core.PauseClock(s.ctx), s.clock.pauseClock()
	return func() { own(); outer() }
}

// pauseComputeClock stops the clock that measures the program's computing time until resume is called.
func (s *hostSession) pauseComputeClock() (resume func()) {
	if s.busy == nil {
		return func() {}
	}
	return s.busy.pauseClock()
}

func startOf(p core.CheckedProgram) ProgramStart {
	start := ProgramStart{Name: p.Name, Modules: p.Modules, Memory: p.Limits.Memory, Result: p.Limits.Result}
	for _, n := range p.Namespaces {
		start.Namespaces = append(start.Namespaces, ToolNamespace{
			Server: n.Server, Global: n.Global, Modules: n.Modules, Functions: encodeHead(n.Functions),
		})
	}
	return start
}

// hostSession represents the host's side of a running program.
type hostSession struct {
	ctx    context.Context
	stop   context.CancelCauseFunc
	conn   *FrameConn
	limits core.Limits
	clock  *activeClock
	// busy measures computing time: it runs while the guest waits neither for a call nor for a wake frame. It is nil
	// if the backend measures computing time itself.
	busy   *activeClock
	calls  *callQueue
	denied sentDenials

	// made is the number of tool calls so far. Only the goroutine of ServeProgram uses this field and those after it.
	made   int
	head   []byte
	target CallHead   // decoded form of the field head
	waker  *wakeTimer // nil until the guest first requests a wake frame
	output []byte
	done   bool
	end    ProgramEnd
}

func (s *hostSession) acceptedSizes() FrameSizes {
	return FrameSizes{KindOutput: maxOutput, KindCall: maxArguments, KindWake: 0, KindDone: int(s.limits.Result) + maxDoneHead}
}

// admitValue waits until the engine's memory budget has room for the program's value.
func (s *hostSession) admitValue(k FrameKind, size int64) error {
	if k != KindDone {
		return nil
	}
	return core.ClaimOf(s.ctx).AdmitResult(s.ctx, size)
}

// receiveFrame handles one frame from the guest. An error ends the session.
func (s *hostSession) receiveFrame() error {
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
		return s.printText(f.Body)
	case KindCall:
		return s.dispatchCall(f)
	case KindWake:
		if s.waker == nil {
			s.waker = newWaker(s.ctx, s.conn, s.pauseComputeClock)
		}
		s.waker.wakeAfter(time.Duration(f.ID) * time.Millisecond)
		return nil
	default:
		if s.ctx.Err() != nil { // it reports this because it was told to end
			return context.Cause(s.ctx)
		}
		return s.finishProgram(f)
	}
}

func (s *hostSession) printText(text []byte) error {
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

// dispatchCall passes a call on to the host. Only tool calls count towards the call limit.
func (s *hostSession) dispatchCall(f Frame) error {
	head, err := s.callDestination(f)
	if err != nil {
		return err
	}
	if head.Server != "" || head.Tool == "call" {
		if err := s.countCall(); err != nil {
			return err
		}
	}
	if !isJSON(f.Body) {
		s.sendAnswer(
			f.ID, core.CallResult{},
			core.Errorf(core.KindInvalidArguments, "isolate.run", "the arguments of the call are %s", noJSON),
		)
		return nil
	}
	s.calls.submitCall(hostCall{f.ID, s.pauseComputeClock(), core.ToolCall{Server: head.Server, Tool: head.Tool, Arguments: f.Body}})
	return nil
}

// countCall counts one more call and returns an error if the call limit is exceeded.
func (s *hostSession) countCall() error {
	if s.made++; s.made > s.limits.ToolCalls {
		return callStop(s.limits.ToolCalls)
	}
	return nil
}

// refuseLarge answers a call that was discarded because its arguments are too large. Such a call always counts
// towards the call limit.
func (s *hostSession) refuseLarge(large *errLarge) error {
	if err := s.countCall(); err != nil {
		return err
	}
	s.sendAnswer(large.id, core.CallResult{}, core.Errorf(core.KindLimit, "isolate.run", "%w", large).
		WithHint("write the data to a file in ./workspace and pass its path, or send it in parts"))
	return nil
}

const noJSON = "not JSON in UTF-8, or nested more than 10,000 levels deep"

// isJSON reports whether data is JSON in valid UTF-8 that is not nested too deeply. json.Valid alone would accept
// invalid UTF-8 in strings.
func isJSON(data []byte) bool { return utf8.Valid(data) && json.Valid(data) }

// callDestination decodes the head of a call, which names the function to call. It caches the last head, because
// consecutive calls mostly have equal heads.
func (s *hostSession) callDestination(f Frame) (CallHead, error) {
	if s.head != nil && bytes.Equal(f.Head, s.head) {
		return s.target, nil
	}
	var head CallHead
	if err := decodeHead(f, &head); err != nil {
		return CallHead{}, err
	}
	s.head, s.target = bytes.Clone(f.Head), head
	return head, nil
}

// sendAnswer sends the result of a call to the guest. It ignores write errors, because the next read then also fails.
// When the session's context has ended, it sends nothing: a program that is stopped must not react to that.
func (s *hostSession) sendAnswer(id uint32, r core.CallResult, err error) {
	if s.ctx.Err() != nil {
		r.Claim.Free()
		return
	}
	if most := min(maxAnswer, s.limits.Memory); err == nil && int64(len(r.Value)) > most {
		err = &core.Error{
			Kind: core.KindLimit,
			Message: "the tool returned " + FormatBytes(int64(len(r.Value))) + ", but a program can receive at most " +
				FormatBytes(most) + " from one call",
			Hint: "request less data from the tool: a page, a filter, fewer fields",
		}
	}
	f := Frame{Kind: KindResult, ID: id, Body: r.Value}
	if err == nil && r.Claim.IsHolding() {
		f.Claim = r.Claim
	}
	if err != nil {
		r.Claim.Free()
		e := core.AsError(err)
		s.denied.addDenial(e)
		s.denied.addTool(e.Server, e.Tool)
		f.Head, f.Body = encodeHead(AnswerHead{Error: e}), nil
	} else if len(f.Body) == 0 {
		f.Body = []byte("null")
	}
	_ = s.conn.SendFrame(f)
}

// finishProgram handles the guest's last frame. It validates every field, because the guest may be hostile.
func (s *hostSession) finishProgram(f Frame) error {
	var head ProgramDone
	if err := decodeHead(f, &head); err != nil {
		return err
	}
	s.end = ProgramEnd{Status: head.Status, Error: s.sanitizeError(head.Error), Warnings: boundWarnings(head.Warnings)}
	switch head.Status {
	case core.StatusOK:
		s.end.Error = nil
	case core.StatusError, core.StatusMemoryLimit, core.StatusOutputLimit:
		if head.Status == core.StatusMemoryLimit && head.Error == nil && !head.HasValue {
			return MemoryStop(s.limits.Memory) // the guest had no memory for a message
		}
		if head.Error == nil || head.HasValue {
			return newViolation("a failed program without an error, or with a value")
		}
	default:
		return newViolation("a program that ended with status %q", head.Status)
	}
	if head.HasValue {
		if int64(len(f.Body)) > s.limits.Result {
			return ResultStop(int64(len(f.Body)), s.limits.Result)
		}
		if !isJSON(f.Body) {
			return &StopReason{Status: core.StatusError, Reason: core.Errorf(core.KindRuntime, "isolate.run", "the returned value is %s", noJSON).
				WithHint("return it in a flatter form, such as a list of rows")}
		}
		s.end.Value = f.Body
	}
	s.done = true
	return nil
}

// sentDenials records what a guest has learned from the errors that it received. A guest may report an error of a kind
// that only the host can produce, such as a policy error, only if it has received that error. Its errors may name only
// servers and tools that were named in the errors that it received.
type sentDenials struct {
	mu    sync.Mutex
	said  map[string]bool
	tools map[[2]string]bool
}

// addTool records the names of the server and the tool in an error that was sent to the guest.
func (d *sentDenials) addTool(server, tool string) {
	const most = 4096
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.tools == nil {
		d.tools = map[[2]string]bool{}
	}
	if len(d.tools) < most {
		d.tools[[2]string{server, tool}] = true
	}
}

func (d *sentDenials) hasTool(server, tool string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.tools[[2]string{server, tool}]
}

func (d *sentDenials) addDenial(e *core.Error) {
	const most = 256
	if guestErrorKinds[e.Kind] {
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

func (d *sentDenials) hasDenial(message string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.said[message]
}

// sanitizeError bounds the size of a guest's error and checks its kind. An error of a kind that only the host can
// produce, such as a policy error, must have been sent to the guest before. Otherwise it becomes a runtime error. The
// names of server and tool are removed if the host has not sent an error with these names, because a guest could write
// any text there.
func (s *hostSession) sanitizeError(e *core.Error) *core.Error {
	if e == nil {
		return nil
	}
	c := *e
	if !guestErrorKinds[c.Kind] && !s.denied.hasDenial(c.Message) {
		c.Kind = core.KindRuntime
	}
	c.Message, c.Hint, c.Stack, c.Frame = clipText(c.Message), clipText(c.Hint), clipText(c.Stack), ""
	if !s.denied.hasTool(c.Server, c.Tool) {
		c.Server, c.Tool = "", ""
	}
	if c.Line < 0 || c.Line > maxPosition || c.Column < 0 || c.Column > maxPosition {
		c.Line, c.Column = 0, 0
	}
	return &c
}

// boundWarnings limits the number and size of a guest's warnings. It replaces a long warning instead of cutting it,
// because personal data in a cut text might not be recognized.
func boundWarnings(warnings []string) []string {
	const most, long = 16, 4 << 10
	var kept []string
	for _, w := range warnings[:min(most, len(warnings))] {
		if len(w) > long {
			w = fmt.Sprintf("a warning of %d bytes was omitted", len(w))
		}
		kept = append(kept, w)
	}
	return kept
}

// maxPosition bounds the line and the column of an error. A larger number is not a position in a program, and could be
// personal data. It is replaced by 0.
const maxPosition = 1 << 20

// guestErrorKinds lists the kinds of errors that a guest may report for its own failures. Errors of other kinds come
// from the host or are forged.
var guestErrorKinds = map[core.Kind]bool{
	core.KindSyntax: true, core.KindType: true, core.KindRuntime: true, core.KindToolError: true,
	core.KindToolNotFound: true, core.KindInvalidArguments: true,
	core.KindUpstreamGone: true, core.KindUpstreamTimeout: true, core.KindLimit: true, core.KindCancelled: true,
}

func clipText(text string) string {
	if len(text) > maxError {
		text = text[:maxError] + "…"
	}
	return strings.ToValidUTF8(text, "�")
}

// endOf returns how the program ended. The argument err is the error at which the session stopped reading frames. The
// argument cause is the reason why the context had already ended, or nil.
func (s *hostSession) endOf(err, cause error) (ProgramEnd, error) {
	end := s.end
	end.Output = []byte(strings.ToValidUTF8(string(s.output), "�"))
	if s.done {
		return end, nil
	}
	if cause != nil {
		err = cause
	}
	var stopped *StopReason
	var broken *ProtocolViolation
	switch {
	case errors.As(err, &stopped):
	case cause != nil:
		stopped = cancelStop()
	case errors.As(err, &broken):
		stopped = protocolStop(broken)
	case errors.Is(err, shm.ErrBroken):
		stopped = protocolStop(err)
	default:
		return end, ErrGone
	}
	end.Status, end.Error, end.Value = stopped.Status, stopped.Reason, nil
	return end, nil
}

// protocolStop returns the StopReason for a guest that violates the protocol. Only a program that has got access to
// the guest's connection can cause this.
func protocolStop(err error) *StopReason {
	return &StopReason{Status: core.StatusError, Reason: core.Errorf(core.KindRuntime, "isolate.run", "the sandbox was killed: %w", err).
		WithHint("a program must not use the file descriptors with which it was started")}
}
