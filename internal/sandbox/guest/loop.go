package guest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	lib "modernc.org/libquickjs"
	"modernc.org/quickjs"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

const (
	// flushWithin is the maximum time for which output and calls stay queued in the guest while the program computes.
	flushWithin = 5 * time.Millisecond
	// lingerTimeout is how long calls that the program did not await may continue after the program has ended.
	lingerTimeout = time.Second
	// firstCollectionBytes is the number of bytes that the JavaScript engine allocates before it first searches for
	// garbage cycles.
	firstCollectionBytes = 16 << 20
	// preludeMemory is the memory in bytes that the engine has in addition to the program's. It is for the prelude,
	// the JavaScript code that forms the program's environment, and for the report that the program's own memory is
	// used up.
	preludeMemory = 8 << 20
)

// guestProgram runs one program. Only the goroutine of serveProgram uses its fields, except the connection.
type guestProgram struct {
	conn     *wire.FrameConn
	posted   chan struct{} // holds a token when there may be queued frames to send
	inbox    frameInbox
	stash    []wire.Frame // results of other calls that arrived during a synchronous call
	js       *jsEngine
	compiled compiledModules // bytecode of the prelude's modules; nil if the host has sent none
	program  wire.ProgramStart
	reseeded bool
	code     string
	started  time.Time
	timers   *timerSet

	targets  []*callTarget
	pending  map[uint32]*pendingCall
	made     uint32 // number of calls so far
	underWay int    // number of calls that have no result yet, without synchronous calls
	gone     bool   // the host has closed the connection, so no report can be sent
	warnings []string

	// preload and the fields after it hold functions of the guest's own JavaScript code.
	preload, prepare, importModule, exported, startLater, parsed, revived, failed, fire, finish, describe quickjs.Value
}

// serveProgram creates the JavaScript engine, waits for the program and runs it.
func serveProgram(conn *wire.FrameConn, in frameInbox, compiled compiledModules, restored bool) error {
	js, err := newEngine()
	if err != nil {
		return err
	}
	if restored { // the processor is most likely an emulated one
		lib.XJS_SetGCThreshold(js.tls, js.runtime, firstCollectionBytes)
	}
	g := &guestProgram{
		conn: conn, posted: make(chan struct{}, 1), inbox: in, js: js, compiled: compiled, timers: newTimers(),
		pending: map[uint32]*pendingCall{},
	}
	if err := g.loadPrelude(); err != nil {
		return err
	}
	if err := conn.SendFrame(wire.ReadyFrame("quickjs")); err != nil {
		return err
	}
	g.preloadWarm()
	rehearsed := error(nil)
	if p, ok := in.(*portConn); ok && restored {
		p.idle = func() { rehearsed = g.finishWaking() }
	}
	start, ok, _ := in.waitFrame(time.Time{})
	if !ok || rehearsed != nil {
		return rehearsed
	}
	if err := json.Unmarshal(start.Head, &g.program); err != nil {
		return err
	}
	if restored && !g.reseeded {
		if err := g.reseedRandom(); err != nil {
			return err
		}
	}
	stop := g.flushAlways()
	defer stop()
	g.started = time.Now()
	done, value := g.runProgram(string(start.Body))
	if g.gone {
		return nil
	}
	done.Warnings = append(done.Warnings, g.warnings...)
	if g.underWay > 0 {
		done.Warnings = append(
			done.Warnings,
			fmt.Sprintf("calls still running when the program ended: %d; it is unknown whether they took effect", g.underWay),
		)
	}
	err = conn.SendFrame(wire.DoneFrame(done, value))
	for open := true; open; { // these results are not needed any more
		_, _, open = in.waitFrame(time.Time{})
	}
	return err
}

// flushAlways starts a goroutine that sends queued frames while the program is busy, until stop is called. The
// goroutine sleeps while there are no queued frames.
func (g *guestProgram) flushAlways() (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-g.posted:
			case <-done:
				return
			}
			select {
			case <-time.After(flushWithin):
				g.flushFrames()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// Errors of the connection are not looked at where they occur: they mean that
// the host is gone, which the reader sees and ends the process for.

func (g *guestProgram) flushFrames() { _ = g.conn.Flush() }

func (g *guestProgram) postFrame(f wire.Frame) {
	_ = g.conn.QueueFrame(f)
	select {
	case g.posted <- struct{}{}:
	default:
	}
}

func (g *guestProgram) printText(text string) {
	const part = 64 << 10
	for len(text) > 0 {
		n := min(len(text), part)
		g.postFrame(wire.OutputFrame([]byte(text[:n])))
		text = text[n:]
	}
}

// runProgram runs the program to its end and returns the done frame's head and body.
func (g *guestProgram) runProgram(code string) (wire.ProgramDone, []byte) {
	g.code = code
	g.js.SetMemoryLimit(uintptr(g.program.Memory + preludeMemory))
	promise, failed := g.startProgram(code)
	if failed != nil {
		return *failed, nil
	}
	for phase := 0; ; phase++ {
		value, fulfilled, err := g.awaitPromise(promise)
		switch {
		case err != nil:
			return g.reportFailure(err), nil
		case !fulfilled:
			return g.reportThrown(value), nil
		case phase == 0:
			// The function has returned; its value becomes JSON.
			promise, err = g.finish.CallValue(quickjs.UndefinedValue, value)
			if err != nil {
				return g.reportFailure(err), nil
			}
		default:
			return g.concludeProgram(value, promise)
		}
	}
}

// startProgram compiles the program and calls its function, which returns a promise.
func (g *guestProgram) startProgram(code string) (promise quickjs.Value, failed *wire.ProgramDone) {
	fail := func(d wire.ProgramDone) (quickjs.Value, *wire.ProgramDone) { return promise, &d }
	function, ok, err := g.js.evaluateScript(programHead+code+programTail, g.fileName())
	if err != nil {
		return fail(g.reportFailure(err))
	}
	if !ok {
		return fail(asSyntax(g.reportThrown(function)))
	}
	namespaces, err := json.Marshal(g.namespaceNames())
	if err != nil {
		return fail(g.reportFailure(err))
	}
	modules, err := json.Marshal(g.moduleNames())
	if err != nil {
		return fail(g.reportFailure(err))
	}
	meta, err := g.prepare.CallValue(quickjs.UndefinedValue, string(namespaces), g.fileName(), string(modules))
	if err != nil {
		return fail(g.reportFailure(err))
	}
	if slices.ContainsFunc(g.program.Modules, func(m core.SkillModule) bool { return m.Global != "" }) {
		promise, err = g.startLater.CallValue(quickjs.UndefinedValue, function, meta)
	} else {
		promise, err = function.CallValue(quickjs.UndefinedValue, g.importModule, g.exported, meta)
	}
	if err != nil {
		return fail(g.reportFailure(err))
	}
	return promise, nil
}

// namespaceNames returns a list of the namespaces of the program's tool servers, without the functions in them.
func (g *guestProgram) namespaceNames() []wire.ToolNamespace {
	names := make([]wire.ToolNamespace, len(g.program.Namespaces))
	for i, n := range g.program.Namespaces {
		names[i] = wire.ToolNamespace{Server: n.Server, Global: n.Global, Modules: n.Modules, Functions: json.RawMessage("[]")}
	}
	return names
}

// moduleNames returns the modules that the program can import, with their names and files. These are saved modules,
// called skills. It omits their code, which is compiled only when it is needed.
func (g *guestProgram) moduleNames() []core.SkillModule {
	names := make([]core.SkillModule, len(g.program.Modules))
	for i, m := range g.program.Modules {
		names[i] = core.SkillModule{Name: m.Name, Global: m.Global, File: m.File}
	}
	return names
}

var (
	errDeadlock = errors.New("deadlock")
	errGone     = errors.New("the host is gone")
)

// awaitPromise runs the event loop until promise is settled.
func (g *guestProgram) awaitPromise(promise quickjs.Value) (value quickjs.Value, fulfilled bool, err error) {
	for {
		if err := g.runJobs(); err != nil {
			return value, false, err
		}
		if value, fulfilled, settled := g.js.promiseState(promise); settled {
			return value, fulfilled, nil
		}
		if g.underWay == 0 && len(g.timers.queue) == 0 {
			return value, false, errDeadlock
		}
		if err := g.waitForEvent(time.Time{}); err != nil {
			return value, false, err
		}
	}
}

// runJobs runs the engine's pending jobs, including those that the jobs themselves add. It needs no limit of its own,
// because the host ends the process at the program's deadline. The QuickJS library returns an error after a million
// jobs but keeps the remaining jobs, which runJobs then runs. A job throws only if memory runs out or the engine is
// faulty, because exceptions of programs become rejected promises.
func (g *guestProgram) runJobs() error {
	for {
		n, err := g.js.ExecutePendingJobs()
		var thrown *quickjs.Error
		if n == 0 || errors.As(err, &thrown) {
			return err
		}
	}
}

// waitForEvent waits for one event and passes it to the program. It stops waiting at deadline, unless deadline is
// zero.
func (g *guestProgram) waitForEvent(deadline time.Time) error {
	if id, due := g.timers.takeDue(time.Now()); due {
		_, err := g.fire.Call(quickjs.UndefinedValue, id)
		return err
	}
	f, ok, err := g.nextResult(deadline)
	if !ok {
		return err
	}
	g.underWay--
	return g.resolveCall(f)
}

// nextResult returns the next result of a call and, if necessary, waits for it. Before it waits, it sends queued
// frames. ok is false if a timer becomes due or the deadline passes first.
func (g *guestProgram) nextResult(deadline time.Time) (f wire.Frame, ok bool, err error) {
	if len(g.stash) > 0 {
		f, g.stash = g.stash[0], g.stash[1:]
		return f, true, nil
	}
	if f, ok, open := g.inbox.takeFrame(); ok || !open {
		return g.checkReceived(f, ok, open)
	}
	g.flushFrames()
	if due, ok := g.timers.nextDue(); ok && (deadline.IsZero() || due.Before(deadline)) {
		deadline = due
	}
	return g.checkReceived(g.inbox.waitFrame(deadline))
}

func (g *guestProgram) checkReceived(f wire.Frame, ok, open bool) (wire.Frame, bool, error) {
	if !open {
		g.gone = true
		return f, false, errGone
	}
	return f, ok, nil
}

// waitForCalls waits up to lingerTimeout for calls that the program did not await.
func (g *guestProgram) waitForCalls() error {
	deadline := time.Now().Add(lingerTimeout)
	for g.underWay > 0 && time.Now().Before(deadline) {
		if err := g.waitForEvent(deadline); err != nil {
			return err
		}
		if err := g.runJobs(); err != nil {
			return err
		}
	}
	return nil
}

// concludeProgram builds the report of a program whose promise was fulfilled. rendered is the program's value as JSON
// text.
func (g *guestProgram) concludeProgram(rendered, promise quickjs.Value) (wire.ProgramDone, []byte) {
	if err := g.waitForCalls(); err != nil {
		return g.reportFailure(err), nil
	}
	if reason, found := g.js.firstUnhandled(promise); found {
		return g.reportThrown(reason), nil
	}
	value, err := rendered.Any()
	if err != nil {
		return g.reportFailure(err), nil
	}
	text, has := value.(string)
	if size := int64(len(text)); size > g.program.Result {
		stop := wire.ResultStop(size, g.program.Result)
		return wire.ProgramDone{Status: stop.Status, Error: stop.Reason}, nil
	}
	return wire.ProgramDone{Status: core.StatusOK, HasValue: has}, []byte(text)
}
