package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// skipFactor and leastSkip bound how much of an oversized line is skipped before the stream counts as broken. The
// bound is skipFactor times the size limit, and at least leastSkip bytes.
const (
	skipFactor = 8
	leastSkip  = 64 << 20
)

// tooLong is the error for a line over the size limit. Normally the line has been skipped, and reading can continue.
// If endless is set, the end of the line was not found, and reading cannot continue.
type tooLong struct {
	limit   int64
	id      jsonrpc.ID // id of the call that the skipped line answers, if the id was found
	endless bool
}

func (e *tooLong) Error() string { return fmt.Sprintf("message over %d bytes", e.limit) }

// lineReader reads the lines of a stream, in bounded memory.
type lineReader struct {
	in     *bufio.Reader
	limit  int64
	spool  *spoolDir // folder for lines that do not fit into memory; if nil, such lines are skipped
	prefix []byte    // only lines with this prefix may be stored on disk, and they are stored without it
	ctx    context.Context
	messageMemory
}

// newFrames returns a lineReader for r, which splits the stream into lines. When the reader waits for memory or disk
// space, it gives up if ctx ends.
func newFrames(ctx context.Context, r io.Reader, limit int64, a memoryAccount, place *spoolDir) *lineReader {
	return &lineReader{
		in: bufio.NewReaderSize(r, 64<<10), limit: limit, ctx: ctx, messageMemory: messageMemory{memoryAccount: a},
		spool: place,
	}
}

// nextLine returns the next line that is not empty, in newly allocated memory. The last line needs no newline. A line
// that was stored on disk is returned as an error of type *spooledMessage.
func (f *lineReader) nextLine() ([]byte, error) {
	for {
		line, err := f.readLine()
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// readLine returns the next line. The line counts as memory of the server until the next line is read.
func (f *lineReader) readLine() ([]byte, error) {
	f.releaseBytes()
	var line []byte
	for {
		part, err := f.in.ReadSlice('\n')
		n := int64(len(line) + len(part))
		room := int64(cap(line))
		if n > room {
			room = max(2*int64(len(line)), n)
		}
		fits := f.reserveBytes(room)
		if (f.spool.fitsSpool(n) || !fits) && f.spool != nil && f.mayUseSpool(line, part) {
			return nil, f.moveToSpool(line, part, err)
		}
		if n > f.limit || !fits {
			return nil, f.skipLine(line, part, err)
		}
		if n > int64(cap(line)) {
			line = slices.Grow(line, int(room)-len(line)) // append would go in small steps, with much to throw away
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// mayUseSpool reports whether a line that is too long for memory may be stored on disk. head and part are the two
// pieces of the line that were read so far.
func (f *lineReader) mayUseSpool(head, part []byte) bool {
	if len(head) < len(f.prefix) {
		head = part // a part has more bytes than the prefix
	}
	return bytes.HasPrefix(head, f.prefix)
}

// moveToSpool stores a line on disk, in the folder for messages that are too large for memory. head and part are the
// two pieces of the line that were read so far. If the stream ends within the line, the next attempt to read a line
// returns an error.
func (f *lineReader) moveToSpool(head, part []byte, err error) error {
	if len(head) == 0 {
		head, part = part, nil
	}
	head = head[len(f.prefix):]
	m := f.spool.readMessage(f.ctx, f.memoryAccount, head, func() ([]byte, error) {
		if next := part; next != nil {
			part = nil
			f.releaseBytes() // head is on disk
			return next, nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, io.EOF
		}
		var next []byte
		next, err = f.in.ReadSlice('\n')
		return next, nil
	}, f.limit)
	f.releaseBytes()
	if err != nil && m.broken == nil && m.checkEnd() != nil { // and not a last line without newline
		m.breakOff(err)
	}
	return m
}

// skipLine skips the rest of a line that is too long. The arguments head and part are the pieces of the line that
// were read before. skipLine searches the whole line for the id of the message, so that the call with this id can
// fail.
func (f *lineReader) skipLine(head, part []byte, err error) error {
	var id idFinder
	id.scanBytes(head)
	id.scanBytes(part)
	for n := int64(0); errors.Is(err, bufio.ErrBufferFull); {
		part, err = f.in.ReadSlice('\n')
		id.scanBytes(part)
		if n += int64(len(part)); n > max(skipFactor*f.limit, leastSkip) {
			return &tooLong{limit: f.limit, id: id.foundID(), endless: true}
		}
	}
	if err != nil {
		return err
	}
	return &tooLong{limit: f.limit, id: id.foundID()}
}

// idFinder reads a JSON object piece by piece and stores the value of its member "id" (in upper or lower case) if
// that is a number or a short string. It stores and checks nothing else.
type idFinder struct {
	depth   int
	quoted  bool
	escaped bool
	value   bool   // the reader is behind a colon at depth 1, so a member's value comes next
	token   []byte // string or number at depth 1 that is being read, possibly truncated
	key     []byte // last key at depth 1, possibly truncated
	found   []byte
	answers bool // the object has a member "jsonrpc" or "result", as a response has
	asks    bool // the object has a member "method", as a request has
}

const idWidth = 64

func (f *idFinder) scanBytes(p []byte) {
	for len(p) > 0 {
		if f.quoted && !f.escaped && f.depth != 1 {
			p = p[plainPrefix(p):] // the bulk of it
		}
		if len(p) > 0 {
			f.scanByte(p[0])
			p = p[1:]
		}
	}
}

// plainPrefix returns the length of the prefix of a JSON string's content that contains neither a quote nor an
// escape.
func plainPrefix(p []byte) int {
	if n := bytes.IndexAny(p, `"\`); n >= 0 {
		return n
	}
	return len(p)
}

func (f *idFinder) scanByte(c byte) {
	switch {
	case f.quoted:
		f.inString(c)
	case c == '"':
		f.quoted = true
		f.keepByte(c)
	case c == '{' || c == '[':
		f.depth++
		f.token = f.token[:0]
	case c == '}' || c == ']':
		f.endValue()
		f.depth--
	case c == ',':
		f.endValue()
		f.value = false
	case c == ':' && f.depth == 1:
		f.key = append(f.key[:0], f.token...)
		f.token = f.token[:0]
		f.value = true
		f.answers = f.answers || isKeyNamed(f.key, `"jsonrpc"`) || isKeyNamed(f.key, `"result"`)
		f.asks = f.asks || isKeyNamed(f.key, `"method"`)
	case c > ' ':
		f.keepByte(c)
	}
}

// isKeyNamed reports whether a key equals a name, ignoring case.
func isKeyNamed(key []byte, name string) bool {
	return len(key) == len(name) && strings.EqualFold(string(key), name)
}

func (f *idFinder) inString(c byte) {
	f.keepByte(c)
	switch {
	case f.escaped:
		f.escaped = false
	case c == '\\':
		f.escaped = true
	case c == '"':
		f.quoted = false
	}
}

func (f *idFinder) keepByte(c byte) {
	if f.depth == 1 && len(f.token) < idWidth {
		f.token = append(f.token, c)
	}
}

func (f *idFinder) endValue() {
	if f.depth == 1 && f.value && isKeyNamed(f.key, `"id"`) {
		f.found = append(f.found[:0], f.token...)
	}
	if f.depth == 1 {
		f.token = f.token[:0]
	}
}

// foundID returns the id that was found, or an invalid one.
func (f *idFinder) foundID() jsonrpc.ID {
	probe := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":{}}`, f.found)
	if msg, err := jsonrpc.DecodeMessage(probe); err == nil && len(f.found) > 0 {
		if resp, ok := msg.(*jsonrpc.Response); ok {
			return resp.ID
		}
	}
	return jsonrpc.ID{}
}
