package wire

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"

	"retort/internal/core"
)

// FrameKind is the type of a frame.
type FrameKind uint8

// KindReady and the following constants are the kinds of frames. The package comment says who sends each of them, and
// when.
const (
	KindReady FrameKind = iota + 1
	KindStart
	KindOutput
	KindCall
	KindResult
	KindDone
	KindParse
	KindParsed
	KindWake
	KindHarness
	KindCompiled
)

var kindNames = [...]string{
	KindReady: "ready", KindStart: "start", KindOutput: "output", KindCall: "call", KindResult: "result",
	KindDone: "done", KindParse: "parse", KindParsed: "parsed", KindWake: "wake", KindHarness: "harness",
	KindCompiled: "compiled",
}

func (k FrameKind) String() string {
	if k > 0 && int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Frame represents one message. Its format, in big-endian order:
//
//	u32 length of the rest · u8 kind · u32 id · u32 length of head · head · body
type Frame struct {
	Kind FrameKind
	ID   uint32
	Head []byte // a small JSON object; may be empty
	Body []byte // raw bytes, which are not decoded; may be empty

	// Claim represents the memory of Body in the engine's memory budget. It is released once Body is written. It may
	// be nil.
	Claim *core.MemoryClaim
}

// FrameSizes maps the accepted kinds of frames to the maximum size of head and body together, in bytes.
type FrameSizes map[FrameKind]int

// ProtocolViolation is the error for a received frame that violates the protocol.
type ProtocolViolation struct{ What string }

func (v *ProtocolViolation) Error() string { return "protocol violation: " + v.What }

// errLarge is the error for a call whose arguments are too large. When it is returned, the bytes of the call have
// already been read and discarded, so that the next frame can be read.
type errLarge struct {
	id         uint32
	size, most int64 // size of the call and its permitted maximum, in bytes
}

func (e *errLarge) Error() string {
	return fmt.Sprintf("the arguments of the call have %s, more than the %s allowed", FormatBytes(e.size), FormatBytes(e.most))
}

func newViolation(format string, args ...any) error {
	return &ProtocolViolation{What: fmt.Sprintf(format, args...)}
}

const (
	lengthSize = 4
	fixedSize  = 1 + 4 + 4 // bytes of the fields after the length: kind, id and length of the head
	headerSize = lengthSize + fixedSize
)

// appendHeader appends the fixed-size fields at the start of f: length, kind, id and the length of the head.
func appendHeader(b []byte, f Frame) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(fixedSize+len(f.Head)+len(f.Body)))
	b = append(b, byte(f.Kind))
	b = binary.BigEndian.AppendUint32(b, f.ID)
	return binary.BigEndian.AppendUint32(b, uint32(len(f.Head)))
}

// readFrame reads one frame. The argument sizes contains the permitted kinds of frames with their maximum sizes. For
// a frame of another kind or a frame that is too large, the error is a *ProtocolViolation. For a call that is too
// large, it is an *errLarge instead. In these cases no memory is allocated. The error is io.EOF if the input ends
// between two frames, and io.ErrUnexpectedEOF within a frame. If the function admit is not nil, it is called before
// memory is allocated. It may wait until memory is free, or refuse.
func readFrame(r *bufio.Reader, sizes FrameSizes, admit func(FrameKind, int64) error) (Frame, error) {
	var header [headerSize]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Frame{}, err
	}
	length := int64(binary.BigEndian.Uint32(header[:]))
	f := Frame{Kind: FrameKind(header[4]), ID: binary.BigEndian.Uint32(header[5:])}
	headLen := int64(binary.BigEndian.Uint32(header[9:]))
	most, known := sizes[f.Kind]
	switch size := length - fixedSize; {
	case !known:
		return Frame{}, newViolation("unexpected frame %q", f.Kind)
	case size < 0 || headLen > size:
		return Frame{}, newViolation("frame %q with impossible lengths %d and %d", f.Kind, length, headLen)
	case size > int64(most) && f.Kind == KindCall:
		_, err := io.CopyN(io.Discard, r, size)
		if err != nil {
			return Frame{}, unexpectedEOF(err)
		}
		return Frame{}, &errLarge{f.ID, size, int64(most)}
	case size > int64(most):
		return Frame{}, newViolation("frame %q of %d bytes, at most %d are allowed", f.Kind, size, most)
	}
	if admit != nil {
		if err := admit(f.Kind, length-fixedSize); err != nil {
			return Frame{}, err
		}
	}
	data, err := readN(r, int(length-fixedSize))
	if err != nil {
		return Frame{}, err
	}
	f.Head, f.Body = data[:headLen:headLen], data[headLen:]
	return f, nil
}

// readN reads n bytes. It allocates up to a megabyte in advance. For more it allocates memory only as the bytes
// arrive, so that a false length costs no memory.
func readN(r io.Reader, n int) ([]byte, error) {
	const trusted = 1 << 20
	if n <= trusted {
		data := make([]byte, n)
		_, err := io.ReadFull(r, data)
		return data, unexpectedEOF(err)
	}
	var b bytes.Buffer
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return nil, unexpectedEOF(err)
	}
	return b.Bytes(), nil
}

func unexpectedEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
