package wire

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net"
	"sync"

	"retort/internal/core"
)

// FrameConn sends and receives frames. One goroutine may read while others write. If a goroutine finds that another
// one is writing, it only queues its frame, and the writing goroutine writes the queue afterwards. A thousand small
// frames thus need only a few write calls.
type FrameConn struct {
	rw    io.ReadWriteCloser
	in    *bufio.Reader
	sizes FrameSizes
	// admit is called with a frame's size before memory is allocated for the frame. It may be nil.
	admit func(k FrameKind, size int64) error

	mu     sync.Mutex
	room   sync.Cond           // signalled when queued shrinks or err is set, so that blocked writers continue
	queue  net.Buffers         // encoded frames that are waiting to be written
	queued int                 // number of bytes in queue
	claims []*core.MemoryClaim // memory claims of the frames in queue, released once the queue is written
	// spare holds empty buffers for collecting small frames. There are at most two, because one is written while
	// another fills.
	spare   [][]byte
	writing bool
	err     error // error of the first failed write; every later write returns it

	closing  sync.Once
	closeErr error
}

const (
	bufferSize = 64 << 10
	// copyBelow is the size in bytes below which heads and bodies are copied into one buffer and written together.
	copyBelow   = 16 << 10
	highWater   = 1 << 20  // number of queued bytes above which writers wait
	gatherBytes = 64 << 10 // capacity in bytes of a buffer that collects small frames
)

// NewConn returns a FrameConn that sends and receives frames over rw. Until Accept is called, Read accepts no frames.
func NewConn(rw io.ReadWriteCloser) *FrameConn {
	c := &FrameConn{rw: rw, in: bufio.NewReaderSize(rw, bufferSize)}
	c.room.L = &c.mu
	return c
}

// Accept sets which kinds of frames Read accepts from now on, and their maximum sizes. It must not be called during
// Read.
func (c *FrameConn) Accept(sizes FrameSizes) { c.sizes = sizes }

// Read returns the next frame, whose memory belongs to the caller. The error is io.EOF at the end of the input, or a
// *ProtocolViolation if the other side violates the protocol.
func (c *FrameConn) Read() (Frame, error) { return readFrame(c.in, c.sizes, c.admit) }

// SendFrame queues f and writes the queue. If another goroutine is already writing, that goroutine writes f, too. The
// FrameConn takes ownership of f.Body and f.Claim.
func (c *FrameConn) SendFrame(f Frame) error {
	if err := c.QueueFrame(f); err != nil {
		return err
	}
	return c.Flush()
}

// QueueFrame queues f. It writes the queue only once the queued frames together exceed bufferSize. Call Flush to write
// them earlier.
func (c *FrameConn) QueueFrame(f Frame) error {
	if len(f.Head)+len(f.Body) > math.MaxUint32-fixedSize {
		f.Claim.Free()
		return fmt.Errorf("wire: a frame of %d bytes", len(f.Head)+len(f.Body))
	}
	c.mu.Lock()
	for c.queued > highWater && c.writing && c.err == nil {
		c.room.Wait()
	}
	if c.err == nil {
		c.addFrame(f)
	} else {
		f.Claim.Free()
	}
	err, full := c.err, c.queued > highWater
	c.mu.Unlock()
	if err == nil && full {
		return c.Flush()
	}
	return err
}

// addFrame appends f to the queue. The caller must hold c.mu.
func (c *FrameConn) addFrame(f Frame) {
	c.queued += headerSize + len(f.Head) + len(f.Body)
	if f.Claim != nil {
		c.claims = append(c.claims, f.Claim)
	}
	last := len(c.queue) - 1
	if last < 0 || cap(c.queue[last])-len(c.queue[last]) < headerSize+len(f.Head)+min(len(f.Body), copyBelow) {
		c.queue = append(c.queue, c.gatherBuffer(headerSize+len(f.Head)))
		last++
	}
	c.queue[last] = append(appendHeader(c.queue[last], f), f.Head...)
	if len(f.Body) < copyBelow {
		c.queue[last] = append(c.queue[last], f.Body...)
		return
	}
	c.queue = append(c.queue, f.Body[:len(f.Body):len(f.Body)])
}

// gatherBuffer returns an empty buffer in which several small frames can be collected for one write. It has room for
// size bytes and for a frame body that is short enough to be copied. The caller must hold c.mu.
func (c *FrameConn) gatherBuffer(size int) []byte {
	last := len(c.spare) - 1
	if size+copyBelow > gatherBytes || last < 0 {
		return make([]byte, 0, max(gatherBytes, size+copyBelow))
	}
	b := c.spare[last]
	c.spare = c.spare[:last]
	return b
}

// Flush writes the queue, unless another goroutine is writing it.
func (c *FrameConn) Flush() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.writing {
		return c.err
	}
	c.writing = true
	for c.queued > 0 && c.err == nil {
		queue, first, claims := c.queue, c.queue[0], c.claims
		c.queue, c.queued, c.claims = nil, 0, nil
		c.room.Broadcast()
		c.mu.Unlock()
		_, err := queue.WriteTo(c.rw)
		releaseClaims(claims)
		c.mu.Lock()
		c.err = err
		if len(c.spare) < 2 {
			c.spare = append(c.spare, first[:0])
		}
	}
	if c.err != nil {
		releaseClaims(c.claims)
		c.claims = nil
	}
	c.writing = false
	c.room.Broadcast()
	return c.err
}

func releaseClaims(claims []*core.MemoryClaim) {
	for _, c := range claims {
		c.Free()
	}
}

// FlushAndWait writes the queue and waits until no goroutine is writing.
func (c *FrameConn) FlushAndWait() {
	_ = c.Flush()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.writing && c.err == nil {
		c.room.Wait()
	}
}

// HasBuffered reports whether Read can return a whole frame without waiting for the other side.
func (c *FrameConn) HasBuffered() bool {
	if c.in.Buffered() < headerSize {
		return false
	}
	length, err := c.in.Peek(lengthSize)
	return err == nil && int64(c.in.Buffered()-lengthSize) >= int64(binary.BigEndian.Uint32(length))
}

// Close closes the underlying connection, which makes Read and SendFrame fail. It is idempotent.
func (c *FrameConn) Close() error {
	c.closing.Do(func() { c.closeErr = c.rw.Close() })
	return c.closeErr
}

// encodeHead encodes a frame's head as JSON. It panics if that fails, which is impossible for the structs of this
// package.
func encodeHead(head any) []byte {
	data, err := json.Marshal(head)
	if err != nil {
		panic("wire: " + err.Error())
	}
	return data
}

func decodeHead(f Frame, head any) error {
	if err := json.Unmarshal(f.Head, head); err != nil {
		return newViolation("the head of frame %q: %v", f.Kind, err)
	}
	return nil
}
