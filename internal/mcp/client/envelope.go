package client

import (
	"errors"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

// keptInline is the maximum size in bytes of a value that stays in the outline of a message that is stored on disk.
// Larger texts and data of a result are left out of the outline and read from disk when needed.
const keptInline = 64 << 10

// envelopeReader reads a message piece by piece. It keeps the envelope (outline) of the message, which is the message
// without the large texts and data of its result, and the positions of the omitted parts in the message.
type envelopeReader struct {
	scan     jsonscan.Scanner
	limit    int // maximum size of the skeleton (outline), in bytes
	keep     int // maximum size in bytes of a value that stays in the skeleton
	skeleton []byte
	parts    []core.SpooledPart
	levels   []openContainer
	part     *candidatePart
	err      error
}

// openContainer represents a JSON object or array that the reader is currently in, with the position in it.
type openContainer struct {
	key   []byte // the last key in this object, with its quotes, possibly truncated
	index int    // index of the current element, if this is an array
	seen  map[string]bool
}

// candidatePart represents a text or other value of a result that is being read, and that is left out of the
// message's outline if it becomes too large.
type candidatePart struct {
	core.SpooledPart
	mark  int // offset in the skeleton at which the value begins
	depth int
	cut   bool
}

const (
	deepestLevel = 5 // depth of the deepest value that may be left out: result.content[i].resource.blob
	longestKey   = 32
)

var (
	errTwice = errors.New("a member occurs twice")
	errBulky = errors.New("it is too large in parts other than text, bytes and structuredContent")
)

// writeBytes scans p, the next bytes of the message. If it finds an error, it stores the error in the field err and
// returns the part of p that was not scanned. After an earlier error it scans nothing and returns p.
func (e *envelopeReader) writeBytes(p []byte) (rest []byte) {
	for len(p) > 0 && e.err == nil {
		kind, n, err := e.scan.Next(p)
		if err != nil {
			e.err = err
			return p
		}
		e.handlePiece(kind, p[:n])
		p = p[n:]
	}
	return p
}

func (e *envelopeReader) handlePiece(kind jsonscan.Kind, p []byte) {
	if e.part == nil {
		e.beginPart(kind)
	}
	if c := e.part; c != nil {
		e.growPart(c, kind, p)
	} else {
		e.skeleton = append(e.skeleton, p...)
		e.trackPath(kind, p)
	}
	if len(e.skeleton) > e.limit {
		e.err = errBulky
	}
}

// trackPath updates the path to the current position in the message.
func (e *envelopeReader) trackPath(kind jsonscan.Kind, p []byte) {
	depth := e.scan.NestingDepth()
	switch kind {
	case jsonscan.Open:
		if depth <= deepestLevel {
			e.levels = append(e.levels[:depth-1], openContainer{})
		}
	case jsonscan.Close:
		e.levels = e.levels[:min(depth, len(e.levels))]
	case jsonscan.Comma:
		if depth <= len(e.levels) {
			l := &e.levels[depth-1]
			l.index++
			l.key = l.key[:0]
		}
	case jsonscan.Key:
		if depth > len(e.levels) {
			return
		}
		l := &e.levels[depth-1]
		l.key = append(l.key, p[:min(len(p), longestKey-min(len(l.key), longestKey))]...)
		if !e.scan.InString() {
			e.checkUnique(l)
		}
	}
}

// checkUnique refuses a message in which the name of a member that contains a result's texts or data occurs twice,
// because it would be unclear which occurrence counts.
func (e *envelopeReader) checkUnique(l *openContainer) {
	name := string(l.key)
	switch name {
	case `"result"`, `"content"`, `"structuredContent"`, `"text"`, `"data"`, `"resource"`, `"blob"`:
	default:
		return
	}
	if l.seen == nil {
		l.seen = map[string]bool{}
	}
	if l.seen[name] {
		e.err = errTwice
	}
	l.seen[name] = true
}

// beginPart records where a value of a result begins, if values of its kind may be left out of the message's outline:
// structured content, and the texts and data of content items.
func (e *envelopeReader) beginPart(kind jsonscan.Kind) {
	depth := e.scan.NestingDepth()
	if kind != jsonscan.String && kind != jsonscan.Open || depth < 2 {
		return
	}
	if kind == jsonscan.Open {
		depth-- // it is open already
	}
	if depth > len(e.levels) || string(e.levels[0].key) != `"result"` {
		return
	}
	way := e.levels[:depth]
	c := &candidatePart{SpooledPart: core.SpooledPart{Index: -1}, mark: len(e.skeleton), depth: depth}
	switch {
	case depth == 2 && string(way[1].key) == `"structuredContent"`:
		c.Member = core.SpooledStructured
	case kind != jsonscan.String || depth < 4 || string(way[1].key) != `"content"`:
		return
	case depth == 4 && string(way[3].key) == `"text"`:
		c.Member = core.SpooledText
	case depth == 4 && string(way[3].key) == `"data"`:
		c.Member = core.SpooledData
	case depth == 5 && string(way[3].key) == `"resource"` && string(way[4].key) == `"text"`:
		c.Member = core.SpooledText
	case depth == 5 && string(way[3].key) == `"resource"` && string(way[4].key) == `"blob"`:
		c.Member = core.SpooledBlob
	default:
		return
	}
	if depth > 2 {
		c.Index = way[2].index
	}
	e.part = c
}

// growPart adds bytes to the value c, which is being read. A value that becomes too large is removed from the
// message's outline, and its position is recorded when it ends.
func (e *envelopeReader) growPart(c *candidatePart, kind jsonscan.Kind, p []byte) {
	if size := len(e.skeleton) - c.mark + len(p); !c.cut && size <= e.keep {
		e.skeleton = append(e.skeleton, p...)
	} else if !c.cut {
		c.cut = true
		c.Offset = e.scan.ByteOffset() - int64(size)
		placeholder := `null`
		if c.Member != core.SpooledStructured {
			placeholder = `""`
		}
		e.skeleton = append(e.skeleton[:c.mark], placeholder...)
	}
	ended := e.scan.NestingDepth() == c.depth && (kind == jsonscan.Close || kind == jsonscan.String && !e.scan.InString())
	if !ended {
		return
	}
	e.part = nil
	if !c.cut {
		return
	}
	c.Bytes = e.scan.ByteOffset() - c.Offset
	if c.Member != core.SpooledStructured { // a string without its quotes
		c.Offset, c.Bytes = c.Offset+1, c.Bytes-2
	}
	e.parts = append(e.parts, c.SpooledPart)
}

// checkEnd returns an error if the message is incomplete or invalid. It is called after the last byte.
func (e *envelopeReader) checkEnd() error {
	if e.err == nil {
		e.err = e.scan.CheckEnd()
	}
	return e.err
}
