package mux

import (
	"io"
	"net"
	"os"
	"sync"
	"time"
)

// MuxStream represents one stream of a StreamMux. It implements net.Conn, and its directions can be closed
// separately.
type MuxStream struct {
	mux     *StreamMux
	id      uint32
	changed sync.Cond // signalled when any field below changes; uses the mutex of mux

	in      [][]byte // received data that has not been read yet
	waiting int      // number of bytes in the field in
	owed    int      // number of bytes that were read but not yet acknowledged to the other side
	credit  int      // number of bytes that the other side currently has room for
	ended   bool     // the other side has announced that it sends no more data
	gone    bool     // the other side has closed the stream
	done    bool     // this side has announced that it sends no more data
	closed  bool
	read    waitDeadline
	write   waitDeadline
}

// waitDeadline represents a deadline of a stream. When it passes, waiting reads or writes of the stream return with
// an error.
type waitDeadline struct {
	passed bool
	timer  *time.Timer
	turn   int // number of the current timer, so that an earlier timer that fires late is ignored
}

// Read implements net.Conn.
func (l *MuxStream) Read(b []byte) (int, error) {
	n, owed, err := l.takeData(b)
	if owed > 0 {
		_ = l.mux.sendFrame(kindWindow, l.id, owed, nil) // the next read reports a failure
	}
	return n, err
}

// takeData waits for received data and copies it to b. It returns n, the number of copied bytes, and owed, the number
// of received bytes that the caller must now acknowledge to the other side.
func (l *MuxStream) takeData(b []byte) (n, owed int, err error) {
	l.mux.mu.Lock()
	defer l.mux.mu.Unlock()
	for l.waiting == 0 && !l.ended && !l.closed && !l.read.passed && len(b) > 0 {
		l.changed.Wait()
	}
	switch {
	case l.closed:
		return 0, 0, net.ErrClosed
	case l.read.passed:
		return 0, 0, os.ErrDeadlineExceeded
	case l.waiting == 0 && len(b) > 0:
		return 0, 0, io.EOF
	}
	for n < len(b) && len(l.in) > 0 {
		some := copy(b[n:], l.in[0])
		n += some
		if l.in[0] = l.in[0][some:]; len(l.in[0]) == 0 {
			l.in[0], l.in = nil, l.in[1:]
		}
	}
	l.waiting -= n
	if l.owed += n; l.owed >= windowSize/2 && !l.ended {
		owed, l.owed = l.owed, 0
	}
	return n, owed, nil
}

// Write implements net.Conn. It waits until the other side has room for the data.
func (l *MuxStream) Write(b []byte) (int, error) {
	written := 0
	for written < len(b) {
		n, err := l.waitRoom(len(b) - written)
		if err != nil {
			return written, err
		}
		if err := l.mux.sendFrame(kindData, l.id, n, b[written:written+n]); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}

// waitRoom waits until the other side has room for data. It returns how many of the bytes that the caller wants to
// send may be sent now.
func (l *MuxStream) waitRoom(want int) (int, error) {
	l.mux.mu.Lock()
	defer l.mux.mu.Unlock()
	for l.credit == 0 && !l.gone && !l.done && l.mux.err == nil && !l.write.passed {
		l.changed.Wait()
	}
	switch {
	case l.done:
		return 0, net.ErrClosed
	case l.gone || l.mux.err != nil:
		return 0, io.ErrClosedPipe
	case l.write.passed:
		return 0, os.ErrDeadlineExceeded
	}
	n := min(want, l.credit, maxFrameData)
	l.credit -= n
	return n, nil
}

// CloseWrite closes the sending direction. Data can still be read.
func (l *MuxStream) CloseWrite() error {
	l.mux.mu.Lock()
	was := l.done
	l.done = true
	l.changed.Broadcast()
	l.mux.mu.Unlock()
	if was {
		return nil
	}
	return l.mux.sendFrame(kindEnd, l.id, 0, nil)
}

// Close implements net.Conn. It is idempotent.
func (l *MuxStream) Close() error {
	l.mux.mu.Lock()
	was := l.closed
	l.closed, l.done, l.in, l.waiting = true, true, nil, 0
	l.changed.Broadcast()
	l.mux.forgetStream(l)
	l.mux.mu.Unlock()
	if was {
		return nil
	}
	return l.mux.sendFrame(kindClose, l.id, 0, nil)
}

// SetDeadline implements net.Conn.
func (l *MuxStream) SetDeadline(t time.Time) error {
	l.setDeadline(&l.read, t)
	l.setDeadline(&l.write, t)
	return nil
}

// SetReadDeadline implements net.Conn.
func (l *MuxStream) SetReadDeadline(t time.Time) error {
	l.setDeadline(&l.read, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (l *MuxStream) SetWriteDeadline(t time.Time) error {
	l.setDeadline(&l.write, t)
	return nil
}

func (l *MuxStream) setDeadline(d *waitDeadline, t time.Time) {
	l.mux.mu.Lock()
	defer l.mux.mu.Unlock()
	if d.timer != nil {
		d.timer.Stop()
	}
	d.turn++
	d.passed, d.timer = false, nil
	if t.IsZero() {
		return
	}
	turn := d.turn
	d.timer = time.AfterFunc(time.Until(t), func() {
		l.mux.mu.Lock()
		defer l.mux.mu.Unlock()
		if d.turn == turn {
			d.passed = true
			l.changed.Broadcast()
		}
	})
}

type laneAddress struct{}

func (laneAddress) Network() string { return "lane" }
func (laneAddress) String() string  { return "lane" }

// LocalAddr implements net.Conn.
func (l *MuxStream) LocalAddr() net.Addr { return laneAddress{} }

// RemoteAddr implements net.Conn.
func (l *MuxStream) RemoteAddr() net.Addr { return laneAddress{} }
