// Package mux carries several streams over one connection. A stream that is not read does not block the others,
// because each side sends only as many bytes in a stream as the other side has room for. Stream 0 exists from the
// beginning. One side opens the others. The format of a frame, in big-endian order:
//
//	u8 kind · u32 stream · u32 number · after kindData: number bytes of data
//
// Neither side trusts the other: the memory of a stream and the number of streams are bounded.
package mux

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
)

const (
	kindData   = iota + 1
	kindWindow // number says how many more bytes the receiver of this frame may send
	kindOpen
	kindEnd   // the sender of this frame sends no more data in the stream
	kindClose // like kindEnd, and the sender of this frame discards data that it receives in the stream
)

const (
	// MaxStreams bounds the number of concurrently open streams. Stream 0 does not count.
	MaxStreams = 128
	// windowSize bounds the number of bytes of a stream that have arrived but have not been read yet.
	windowSize   = 256 << 10
	maxFrameData = 32 << 10 // maximum number of data bytes in one frame
	headerSize   = 1 + 4 + 4
)

// StreamMux represents one end of a connection that carries several streams. It is safe for concurrent use.
type StreamMux struct {
	rw     io.ReadWriteCloser
	accept func(*MuxStream)

	// opening is held while a stream is numbered and announced, so that streams are announced in the order of their
	// numbers.
	opening sync.Mutex
	writing sync.Mutex
	frame   []byte // buffer for the frame that is being written

	mu    sync.Mutex
	lanes map[uint32]*MuxStream
	next  uint32
	err   error         // the reason why the connection ended; nil while it works
	over  chan struct{} // closed when the connection has ended
}

// New returns one end of the connection rw. If accept is not nil, the other end can open streams. accept is then
// called for each new stream in a goroutine and must close the stream. The caller must call ServeFrames.
func New(rw io.ReadWriteCloser, accept func(*MuxStream)) *StreamMux {
	m := &StreamMux{rw: rw, accept: accept, lanes: map[uint32]*MuxStream{}, frame: make([]byte, 0, headerSize+maxFrameData), over: make(chan struct{})}
	m.addStream(0)
	return m
}

// FirstStream returns stream 0, which exists from the beginning.
func (m *StreamMux) FirstStream() *MuxStream {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lanes[0]
}

// Done returns a channel that is closed when the connection has ended.
func (m *StreamMux) Done() <-chan struct{} { return m.over }

// addStream registers a new stream. The caller must hold m.mu, unless m is not shared yet.
func (m *StreamMux) addStream(id uint32) *MuxStream {
	l := &MuxStream{mux: m, id: id, credit: windowSize}
	l.changed.L = &m.mu
	m.lanes[id] = l
	return l
}

var errFull = errors.New("mux: too many streams")

// Open opens a new stream. It returns an error if MaxStreams streams are open or the connection has ended.
func (m *StreamMux) Open() (*MuxStream, error) {
	m.opening.Lock()
	defer m.opening.Unlock()
	m.mu.Lock()
	switch {
	case m.err != nil:
		defer m.mu.Unlock()
		return nil, m.err
	case len(m.lanes) > MaxStreams:
		defer m.mu.Unlock()
		return nil, errFull
	}
	m.next++
	l := m.addStream(m.next)
	m.mu.Unlock()
	if err := m.sendFrame(kindOpen, l.id, 0, nil); err != nil {
		return nil, err
	}
	return l, nil
}

// ServeFrames reads the connection until it ends, and then ends all streams. It never blocks because of a stream that
// is not read.
func (m *StreamMux) ServeFrames() error {
	err := m.serveFrames()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
	for _, l := range m.lanes {
		l.ended = true
		l.changed.Broadcast()
	}
	close(m.over)
	return err
}

func (m *StreamMux) serveFrames() error {
	in := bufio.NewReaderSize(m.rw, 64<<10)
	var header [headerSize]byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return err
		}
		kind, id, n := header[0], binary.BigEndian.Uint32(header[1:]), binary.BigEndian.Uint32(header[5:])
		if kind != kindData {
			if err := m.handleFrame(kind, id, n); err != nil {
				return err
			}
			continue
		}
		if n > maxFrameData {
			return fmt.Errorf("mux: %d bytes in one frame", n)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(in, data); err != nil {
			return io.ErrUnexpectedEOF
		}
		if err := m.addData(id, data); err != nil {
			return err
		}
	}
}

// addData appends received data to the buffer of the stream to which it was sent. It returns an error if the other
// side has sent more than the buffer has room for.
func (m *StreamMux) addData(id uint32, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lanes[id]
	switch {
	case l == nil || l.closed || l.ended:
		return nil // it was closed in the meantime, or while the other side was writing
	case l.waiting+len(data) > windowSize:
		return errors.New("mux: more data than there is room for")
	case len(data) > 0:
		l.in = append(l.in, data)
		l.waiting += len(data)
		l.changed.Broadcast()
	}
	return nil
}

// handleFrame handles a received frame of any kind other than data.
func (m *StreamMux) handleFrame(kind byte, id, n uint32) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lanes[id]
	switch {
	case kind == kindOpen:
		if m.accept == nil || l != nil || id == 0 || id <= m.next || len(m.lanes) > MaxStreams {
			return errors.New("mux: a stream that cannot be opened")
		}
		m.next = id
		opened := m.addStream(id)
		go m.accept(opened)
	case kind < kindData || kind > kindClose:
		return fmt.Errorf("mux: a frame of unknown kind %d", kind)
	case l == nil: // it was closed in the meantime
	case kind == kindWindow:
		if n > windowSize || l.credit+int(n) > windowSize {
			return errors.New("mux: more room than there can be")
		}
		l.credit += int(n)
		l.changed.Broadcast()
	default:
		l.ended = true
		l.gone = l.gone || kind == kindClose
		l.changed.Broadcast()
		m.forgetStream(l)
	}
	return nil
}

// forgetStream removes a stream that both sides have closed. The caller must hold m.mu.
func (m *StreamMux) forgetStream(l *MuxStream) {
	if l.closed && l.gone && l.id != 0 {
		delete(m.lanes, l.id)
	}
}

// sendFrame writes a frame to the connection.
func (m *StreamMux) sendFrame(kind byte, id uint32, n int, data []byte) error {
	m.writing.Lock()
	defer m.writing.Unlock()
	m.frame = binary.BigEndian.AppendUint32(append(m.frame[:0], kind), id)
	m.frame = binary.BigEndian.AppendUint32(m.frame, uint32(n))
	_, err := m.rw.Write(append(m.frame, data...))
	return err
}

// PeekFirst returns a reader of the first data in stream 0, without a StreamMux. It is for a caller that inspects
// this data before a StreamMux reads the whole connection again. The caller must read less than windowSize bytes,
// because PeekFirst sends no acknowledgements.
func PeekFirst(stream io.Reader) io.Reader { return &peekReader{in: stream} }

type peekReader struct {
	in   io.Reader
	left uint32 // number of unread data bytes of the current frame
}

func (b *peekReader) Read(p []byte) (int, error) {
	for b.left == 0 && len(p) > 0 {
		var header [headerSize]byte
		if _, err := io.ReadFull(b.in, header[:]); err != nil {
			return 0, err
		}
		if binary.BigEndian.Uint32(header[1:]) != 0 || header[0] != kindData {
			return 0, errors.New("mux: the first frame is not data of the first stream")
		}
		b.left = binary.BigEndian.Uint32(header[5:])
	}
	n, err := b.in.Read(p[:min(len(p), int(b.left))])
	b.left -= uint32(n)
	return n, err
}
