// Package guest is the code that runs inside a sandbox: a QuickJS machine with
// the surroundings that programs expect, and nothing else. It has no file
// system, no environment and no network of its own; everything that a program
// can reach is a call over the wire.
//
// A program's Code is the body of an async function with the parameters
// __import, __exports and __meta, in strict mode. Its value is what the
// function returns; if that is undefined, it is __exports.default, called first
// if it is a function. Times are UTC.
//
// # Values
//
// The value becomes JSON, and so do the arguments of calls: a BigInt becomes an
// integer literal with all its digits, a Date its ISO string, a Map with string
// keys an object and any other the list of its entries, a Set, typed array or
// ArrayBuffer a list, an Error {name, message} and its own properties, an iterator
// the list of what it gives, a RegExp its text; toJSON is honoured; NaN, infinities and
// invalid Dates become null; functions, symbols and undefined are left out. What is lost
// of a value or of arguments is told as a warning (module losses), but for undefined. A
// promise inside of the value is awaited. A value that contains itself is an error that
// names the place. Integers beyond 2^53 in what calls
// return are BigInts in the program.
//
// # When a program is over
//
// A program is over when its function has returned, thrown, or waits while
// nothing is under way that could wake it: no call and no timer. Calls that it
// did not await are given a second to end, in which their handlers run; timers
// are not waited for. A rejection that nobody has handled by then, and an
// exception in a timer's callback at once, end the program with an error.
package guest

import (
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"retort/internal/sandbox/wire"
)

// Main serves one program: it prepares the guest, sends "ready" on out, reads the program from in and runs it. It
// returns when in is closed, whether or not a program has come. The caller must then exit, because a busy program
// cannot be stopped otherwise. An error means a fault of the guest itself. If in is os.Stdin, the process is assumed
// to be only a guest, and Go's runtime is set to use few resources.
func Main(in io.Reader, out io.Writer) error { return begin(in, out, options{}) }

// MainRestored is Main for a guest whose whole machine is copied while it waits for a program. Each copy gets random
// numbers of its own.
func MainRestored(in io.Reader, out io.Writer) error {
	return begin(in, out, options{restored: true})
}

// MainCompiled is Main for a guest that first receives the output of Compile, which saves most of its start time.
func MainCompiled(in io.Reader, out io.Writer) error { return begin(in, out, options{compiled: true}) }

// options are the settings of a guest before it has a program.
type options struct{ compiled, restored bool }

func begin(in io.Reader, out io.Writer, o options) error {
	if in == io.Reader(os.Stdin) {
		goThrifty()
		if p, ok := openPort(in, out); ok {
			return beginPort(p, o)
		}
		in = pollable(os.Stdin)
	}
	conn := wire.NewConn(&duplex{in, out})
	code, err := o.prepare(conn)
	if err != nil {
		return err
	}
	frames, gone, failed := make(chan wire.Frame, 256), make(chan struct{}), make(chan error, 1)
	go func() {
		if err := serve(conn, channel(frames), code, o.restored); err != nil {
			failed <- err
		}
	}()
	go receive(conn, frames, gone)
	select {
	case <-gone:
		return nil
	case err := <-failed:
		return err
	}
}

// prepare reads what comes before the program.
func (o options) prepare(conn *wire.Conn) (code modules, err error) {
	if o.compiled {
		code, err = receiveModules(conn)
	}
	conn.Accept(wire.GuestSizes())
	return code, err
}

// beginPort is begin for a guest that reads its connection when it waits. In a virtual machine, Go collects garbage
// only near the memory limit, which few programs reach, because the guest ends with the machine.
func beginPort(p *port, o options) error {
	code, err := o.prepare(p.conn)
	if err != nil {
		return err
	}
	if o.restored {
		p.emulated()
		debug.SetGCPercent(-1)
		return serve(p.conn, p, code, true)
	}
	ended := make(chan error, 2)
	go func() { ended <- serve(p.conn, p, code, false) }()
	go func() {
		p.hangUp()
		ended <- nil
	}()
	return <-ended
}

// goThrifty bounds what the Go side uses. One thread at a time runs its code: the
// program's. What Go allocates is mostly copies of what that sends and receives, which
// live for a moment.
func goThrifty() {
	const threads, memory = 1, 64 << 20
	runtime.GOMAXPROCS(min(threads, runtime.GOMAXPROCS(0)))
	debug.SetMemoryLimit(memory)
}

// receive passes frames on until the input ends or is invalid.
func receive(conn *wire.Conn, frames chan<- wire.Frame, gone chan<- struct{}) {
	defer close(gone)
	defer close(frames)
	for started := false; ; started = true {
		f, err := conn.Read()
		if err != nil || (f.Kind == wire.KindStart) == started {
			return
		}
		frames <- f
	}
}

// duplex joins the two halves of a connection.
type duplex struct {
	io.Reader
	io.Writer
}

// Close does nothing, because the process exits instead.
func (*duplex) Close() error { return nil }
