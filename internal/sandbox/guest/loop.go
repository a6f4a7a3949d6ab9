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
	// flushWithin sets how long output and calls may wait in the guest while the program computes.
	flushWithin = 5 * time.Millisecond
	// lingering sets how long calls that were not awaited may continue after the program has ended.
	lingering = time.Second
	// firstCollection sets the number of bytes allocated before the first search for garbage cycles.
	firstCollection = 16 << 20
	// ownMemory reserves memory for the prelude, and for the report that the program's memory is used up, in bytes.
	ownMemory = 8 << 20
)

// guest runs one program. Everything except the connection belongs to the goroutine of serve.
type guest struct {
	conn     *wire.Conn
	posted   chan struct{} // has a value when there may be something to flush
	inbox    inbox
	stash    []wire.Frame // results that arrived during a synchronous call
	js       *engine
	compiled modules // modules of the prelude, as far as received
	program  wire.Start
	reseeded bool
	code     string
	started  time.Time
	timers   *timers

	targets  []*target
	pending  map[uint32]*pending
	made     uint32 // calls so far
	underWay int    // calls without a result so far, except synchronous ones
	gone     bool   // the host is gone, so that no report can be sent
	warnings []string

	// Functions of the prelude.
	preload, prepare, importModule, exported, startLater, parsed, revived, failed, fire, finish, describe quickjs.Value
}

// serve creates the engine, waits for the program and runs it.
func serve(conn *wire.Conn, in inbox, compiled modules, restored bool) error {
	js, err := newEngine()
	if err != nil {
		return err
	}
	if restored { // the processor is most likely an emulated one
		lib.XJS_SetGCThreshold(js.tls, js.runtime, firstCollection)
	}
	g := &guest{conn: conn, posted: make(chan struct{}, 1), inbox: in, js: js, compiled: compiled, timers: newTimers(), pending: map[uint32]*pending{}}
	if err := g.load(); err != nil {
		return err
	}
	if err := conn.Send(wire.ReadyFrame("quickjs")); err != nil {
		return err
	}
	g.preloadWarm()
	rehearsed := error(nil)
	if p, ok := in.(*port); ok && restored {
		p.idle = func() { rehearsed = g.wake() }
	}
	start, ok, _ := in.wait(time.Time{})
	if !ok || rehearsed != nil {
		return rehearsed
	}
	if err := json.Unmarshal(start.Head, &g.program); err != nil {
		return err
	}
	if restored && !g.reseeded {
		if err := g.reseed(); err != nil {
			return err
		}
	}
	stop := g.flushAlways()
	defer stop()
	g.started = time.Now()
	done, value := g.run(string(start.Body))
	if g.gone {
		return nil
	}
	done.Warnings = append(done.Warnings, g.warnings...)
	if g.underWay > 0 {
		done.Warnings = append(done.Warnings, fmt.Sprintf("calls still under way when the program ended: %d; whether they have had their effects is not known", g.underWay))
	}
	err = conn.Send(wire.DoneFrame(done, value))
	for open := true; open; { // these results are not needed any more
		_, _, open = in.wait(time.Time{})
	}
	return err
}

// flushAlways starts a goroutine that sends queued frames while the program is busy, until stop is called. A waiting
// program does not wake it.
func (g *guest) flushAlways() (stop func()) {
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
				g.flush()
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}

// Errors of the connection are not looked at where they occur: they mean that
// the host is gone, which the reader sees and ends the process for.

func (g *guest) flush() { _ = g.conn.Flush() }

func (g *guest) post(f wire.Frame) {
	_ = g.conn.Post(f)
	select {
	case g.posted <- struct{}{}:
	default:
	}
}

func (g *guest) print(text string) {
	const part = 64 << 10
	for len(text) > 0 {
		n := min(len(text), part)
		g.post(wire.OutputFrame([]byte(text[:n])))
		text = text[n:]
	}
}

// run runs the program to its end.
func (g *guest) run(code string) (wire.Done, []byte) {
	g.code = code
	g.js.SetMemoryLimit(uintptr(g.program.Memory + ownMemory))
	promise, failed := g.begin(code)
	if failed != nil {
		return *failed, nil
	}
	for phase := 0; ; phase++ {
		value, fulfilled, err := g.await(promise)
		switch {
		case err != nil:
			return g.failure(err), nil
		case !fulfilled:
			return g.thrown(value), nil
		case phase == 0:
			// The function has returned; its value becomes JSON.
			promise, err = g.finish.CallValue(quickjs.UndefinedValue, value)
			if err != nil {
				return g.failure(err), nil
			}
		default:
			return g.conclude(value, promise)
		}
	}
}

// begin compiles the program and calls its function, which returns a promise.
func (g *guest) begin(code string) (promise quickjs.Value, failed *wire.Done) {
	fail := func(d wire.Done) (quickjs.Value, *wire.Done) { return promise, &d }
	function, ok, err := g.js.evaluate(programHead+code+programTail, g.fileName())
	if err != nil {
		return fail(g.failure(err))
	}
	if !ok {
		return fail(asSyntax(g.thrown(function)))
	}
	namespaces, err := json.Marshal(g.names())
	if err != nil {
		return fail(g.failure(err))
	}
	modules, err := json.Marshal(g.moduleNames())
	if err != nil {
		return fail(g.failure(err))
	}
	meta, err := g.prepare.CallValue(quickjs.UndefinedValue, string(namespaces), g.fileName(), string(modules))
	if err != nil {
		return fail(g.failure(err))
	}
	if slices.ContainsFunc(g.program.Modules, func(m core.Module) bool { return m.Global != "" }) {
		promise, err = g.startLater.CallValue(quickjs.UndefinedValue, function, meta)
	} else {
		promise, err = function.CallValue(quickjs.UndefinedValue, g.importModule, g.exported, meta)
	}
	if err != nil {
		return fail(g.failure(err))
	}
	return promise, nil
}

// names returns the namespaces without their functions.
func (g *guest) names() []wire.Namespace {
	names := make([]wire.Namespace, len(g.program.Namespaces))
	for i, n := range g.program.Namespaces {
		names[i] = wire.Namespace{Server: n.Server, Global: n.Global, Modules: n.Modules, Functions: json.RawMessage("[]")}
	}
	return names
}

// moduleNames returns the skills without their code.
func (g *guest) moduleNames() []core.Module {
	names := make([]core.Module, len(g.program.Modules))
	for i, m := range g.program.Modules {
		names[i] = core.Module{Name: m.Name, Global: m.Global, File: m.File}
	}
	return names
}

var (
	errDeadlock = errors.New("deadlock")
	errGone     = errors.New("the host is gone")
)

// await runs the event loop until promise is settled.
func (g *guest) await(promise quickjs.Value) (value quickjs.Value, fulfilled bool, err error) {
	for {
		if err := g.drain(); err != nil {
			return value, false, err
		}
		if value, fulfilled, settled := g.js.settled(promise); settled {
			return value, fulfilled, nil
		}
		if g.underWay == 0 && len(g.timers.queue) == 0 {
			return value, false, errDeadlock
		}
		if err := g.turn(time.Time{}); err != nil {
			return value, false, err
		}
	}
}

// drain runs the ready jobs and those that they add. It has no bound of its own: at the program's deadline the host
// ends the process. The library stops with an error after a million jobs but loses none of them. A job throws only if
// memory runs out or the engine is faulty; exceptions of programs become rejections.
func (g *guest) drain() error {
	for {
		n, err := g.js.ExecutePendingJobs()
		var thrown *quickjs.Error
		if n == 0 || errors.As(err, &thrown) {
			return err
		}
	}
}

// turn waits for one event, until deadline unless that is zero, and passes it to the program.
func (g *guest) turn(deadline time.Time) error {
	if id, due := g.timers.take(time.Now()); due {
		_, err := g.fire.Call(quickjs.UndefinedValue, id)
		return err
	}
	f, ok, err := g.next(deadline)
	if !ok {
		return err
	}
	g.underWay--
	return g.settle(f)
}

// next returns the next result, or none if a timer is due or the deadline passes first. It sends queued frames before
// it waits.
func (g *guest) next(deadline time.Time) (f wire.Frame, ok bool, err error) {
	if len(g.stash) > 0 {
		f, g.stash = g.stash[0], g.stash[1:]
		return f, true, nil
	}
	if f, ok, open := g.inbox.take(); ok || !open {
		return g.received(f, ok, open)
	}
	g.flush()
	if due, ok := g.timers.next(); ok && (deadline.IsZero() || due.Before(deadline)) {
		deadline = due
	}
	return g.received(g.inbox.wait(deadline))
}

func (g *guest) received(f wire.Frame, ok, open bool) (wire.Frame, bool, error) {
	if !open {
		g.gone = true
		return f, false, errGone
	}
	return f, ok, nil
}

// linger waits for calls that were not awaited.
func (g *guest) linger() error {
	deadline := time.Now().Add(lingering)
	for g.underWay > 0 && time.Now().Before(deadline) {
		if err := g.turn(deadline); err != nil {
			return err
		}
		if err := g.drain(); err != nil {
			return err
		}
	}
	return nil
}

// conclude builds the report of a program. rendered is its value, and promise was fulfilled with that value.
func (g *guest) conclude(rendered, promise quickjs.Value) (wire.Done, []byte) {
	if err := g.linger(); err != nil {
		return g.failure(err), nil
	}
	if reason, found := g.js.unhandled(promise); found {
		return g.thrown(reason), nil
	}
	value, err := rendered.Any()
	if err != nil {
		return g.failure(err), nil
	}
	text, has := value.(string)
	if size := int64(len(text)); size > g.program.Result {
		stop := wire.ResultStop(size, g.program.Result)
		return wire.Done{Status: stop.Status, Error: stop.Reason}, nil
	}
	return wire.Done{Status: core.StatusOK, HasValue: has}, []byte(text)
}
