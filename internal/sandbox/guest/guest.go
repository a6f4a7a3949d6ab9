// Package guest implements the program that runs inside a sandbox: a QuickJS engine with the environment that
// programs expect, and nothing else. It has no file system, no environment variables and no network of its own. A
// program can reach the outside only by calls to the host (package wire).
//
// A program's Code is the body of an async function with the parameters __import, __exports and __meta, in strict
// mode. Its value is what the function returns. If that is undefined, the value is __exports.default, which is called
// first if it is a function. Times are UTC.
//
// # Values
//
// The value and the arguments of calls are converted to JSON. A BigInt becomes an integer literal with all its
// digits, a Date its ISO string, a Map with string keys an object and any other Map the list of its entries. A Set,
// typed array or ArrayBuffer becomes a list, an Error {name, message} with its own properties, an iterator the list
// of its elements, and a RegExp its text. toJSON is used. NaN, infinities and invalid Dates become null. Functions,
// symbols and undefined are omitted. A warning says what was lost of a value or of arguments (module losses), except
// for undefined. A promise inside the value is awaited. A value that contains itself causes an error that names the
// place. Integers beyond 2^53 in the results of calls are BigInts in the program.
//
// # When a program is over
//
// A program is over when its function has returned or thrown, or when it waits although there is no call and no timer
// that could wake it. Calls that it did not await get a second to end, in which their handlers run. Timers are not
// waited for. An unhandled rejection at that time, or an exception in a timer's callback at any time, ends the
// program with an error.
package guest

import (
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"retort/internal/sandbox/wire"
)

// Main serves one program. It prepares the guest, sends a ready frame on out, reads the program from in and runs it.
// It returns when in is closed, even if no program has arrived. The caller must then exit the process, because a busy
// program cannot be stopped otherwise. An error means a fault of the guest itself. If in is os.Stdin, Main assumes
// that the process serves only as a guest, and limits the resources of Go's runtime.
func Main(in io.Reader, out io.Writer) error { return beginGuest(in, out, guestOptions{}) }

// MainRestored works like Main for a guest in a virtual machine that is saved and copied while the guest waits for a
// program. Each copy gets its own random numbers.
func MainRestored(in io.Reader, out io.Writer) error {
	return beginGuest(in, out, guestOptions{restored: true})
}

// MainCompiled works like Main for a guest that first receives the output of CompilePrelude. Because the prelude is
// then already compiled, the guest starts in a fraction of the time.
func MainCompiled(in io.Reader, out io.Writer) error {
	return beginGuest(in, out, guestOptions{compiled: true})
}

// guestOptions holds the settings of a guest that has no program yet.
type guestOptions struct{ compiled, restored bool }

func beginGuest(in io.Reader, out io.Writer, o guestOptions) error {
	if in == io.Reader(os.Stdin) {
		goThrifty()
		if p, ok := openPort(in, out); ok {
			return beginPort(p, o)
		}
		in = pollableFile(os.Stdin)
	}
	conn := wire.NewConn(&duplexConn{in, out})
	code, err := o.prepareGuest(conn)
	if err != nil {
		return err
	}
	frames, gone, failed := make(chan wire.Frame, 256), make(chan struct{}), make(chan error, 1)
	go func() {
		if err := serveProgram(conn, channelInbox(frames), code, o.restored); err != nil {
			failed <- err
		}
	}()
	go receiveFrames(conn, frames, gone)
	select {
	case <-gone:
		return nil
	case err := <-failed:
		return err
	}
}

// prepareGuest prepares the guest for its program. If the host sends the prelude (the JavaScript environment of
// programs) in compiled form, prepareGuest receives it. Then it sets which frames the connection accepts, and their
// maximum sizes.
func (o guestOptions) prepareGuest(conn *wire.FrameConn) (code compiledModules, err error) {
	if o.compiled {
		code, err = receiveModules(conn)
	}
	conn.Accept(wire.GuestSizes())
	return code, err
}

// beginPort works like beginGuest, but the goroutine that waits for frames reads the connection itself. In a virtual
// machine, beginPort lets Go collect garbage only near the memory limit. Few programs reach that limit, because the
// guest runs a single program and ends with the machine.
func beginPort(p *portConn, o guestOptions) error {
	code, err := o.prepareGuest(p.conn)
	if err != nil {
		return err
	}
	if o.restored {
		p.setEmulated()
		debug.SetGCPercent(-1)
		return serveProgram(p.conn, p, code, true)
	}
	ended := make(chan error, 2)
	go func() { ended <- serveProgram(p.conn, p, code, false) }()
	go func() {
		p.hangUp()
		ended <- nil
	}()
	return <-ended
}

// goThrifty limits Go's runtime to one thread at a time that runs Go code, which suffices for the program, and to 64
// MiB of memory. Go allocates mostly short-lived copies of sent and received data.
func goThrifty() {
	const threads, memory = 1, 64 << 20
	if runtime.GOMAXPROCS(0) > threads {
		runtime.GOMAXPROCS(threads)
	}
	debug.SetMemoryLimit(memory)
}

// receiveFrames passes received frames on through a channel until the input ends or is invalid.
func receiveFrames(conn *wire.FrameConn, frames chan<- wire.Frame, gone chan<- struct{}) {
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

// duplexConn combines an input and an output into one connection.
type duplexConn struct {
	io.Reader
	io.Writer
}

// Close does nothing, because the guest ends the conversation by exiting.
func (*duplexConn) Close() error { return nil }
