package relay

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

const (
	batchSize      = 1 << 20  // bytes that are searched for personal data at once
	maxValueSize   = 16 << 20 // bytes of one value or line in which it can be
	maxSurrounding = 64 << 10 // bytes that may surround an array of rows
)

var errNoContainer = errors.New("neither an array nor an object")

// jsonShape describes the structure of a JSON text.
type jsonShape struct {
	container bool
	rows      bool // it is an array, or an object with little more than one
	from, to  int64
	member    string          // of the object
	others    json.RawMessage // an object
}

// shapeSurveyor determines the structure of a JSON text while the text is read.
type shapeSurveyor struct {
	scan   jsonscan.Scanner
	shape  jsonShape
	many   bool // there is too much around an array
	key    []byte
	member []byte // the beginning of the current one's value
	begin  int64  // of it; -1 before
	others []byte
}

// surveyJSON reads a JSON text to its end and returns its structure. If the text is not JSON, the error is a
// *jsonscan.Error.
func surveyJSON(r io.Reader) (jsonShape, error) {
	s := shapeSurveyor{begin: -1}
	err := scanPieces(r, &s.scan, s.takePiece)
	if err == nil && s.shape.container && !s.shape.rows && s.shape.to > 0 && !s.many {
		s.shape.rows = true
		s.shape.others = append(s.others, '}')
		if len(s.others) == 0 {
			s.shape.others = nil
		}
		return s.shape, nil
	}
	s.shape.member = ""
	return s.shape, err
}

// scanPieces splits a JSON text into tokens, or parts of long tokens, and calls take with each.
func scanPieces(r io.Reader, s *jsonscan.Scanner, take func(kind jsonscan.Kind, p []byte) error) error {
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf)
		for p := buf[:n]; len(p) > 0; {
			kind, n, err := s.Next(p)
			if err == nil {
				err = take(kind, p[:n])
			}
			if err != nil {
				return err
			}
			p = p[n:]
		}
		if errors.Is(err, io.EOF) {
			return s.CheckEnd()
		}
		if err != nil {
			return err
		}
	}
}

func (s *shapeSurveyor) takePiece(kind jsonscan.Kind, p []byte) error {
	at, depth := s.scan.ByteOffset(), s.scan.NestingDepth()
	if !s.shape.container && kind != jsonscan.Space {
		if kind != jsonscan.Open {
			return errNoContainer
		}
		s.shape.container = true
		if p[0] == '[' {
			s.shape.rows, s.shape.from = true, at-1
		}
		return nil
	}
	if s.shape.rows {
		if kind == jsonscan.Close && depth == 0 {
			s.shape.to = at
		}
		return nil
	}
	top := depth == 1 || depth == 0
	switch {
	case top && kind == jsonscan.Key:
		if s.key = append(s.key, p...); len(s.key) > maxSurrounding {
			s.many, s.key = true, s.key[:0]
		}
	case top && kind == jsonscan.Colon:
		s.begin, s.member = at, s.member[:0]
	case depth == 1 && kind == jsonscan.Comma, depth == 0 && kind == jsonscan.Close:
		s.endMember(at - 1)
	case s.begin >= 0 && len(s.member) <= maxSurrounding && kind != jsonscan.Space:
		s.member = append(s.member, p...)
	}
	return nil
}

// endMember adds the object member that has just ended to the structure.
func (s *shapeSurveyor) endMember(at int64) {
	switch {
	case s.begin < 0: // an empty object
	case len(s.member) <= maxSurrounding && len(s.others)+len(s.key)+len(s.member) <= maxSurrounding:
		sep := byte(',')
		if len(s.others) == 0 {
			sep = '{'
		}
		s.others = append(append(append(append(s.others, sep), s.key...), ':'), s.member...)
	case s.member[0] == '[' && s.shape.to == 0:
		s.shape.from, s.shape.to = s.begin, at
		_ = json.Unmarshal(s.key, &s.shape.member) // it is a string
	default:
		s.many = true
	}
	s.begin, s.key = -1, s.key[:0]
}

// batchWriter writes data in batches. It hides personal data in each batch.
type batchWriter struct {
	out     io.Writer
	hide    func([]byte) ([]byte, error) // nil: nothing is hidden
	size    int                          // bytes of a batch
	preview *string
}

const previewSize = 500

func (l *largeAnswer) newBatches(f *savedPart) batchWriter {
	b := batchWriter{out: f.incoming, preview: &f.Preview, size: batchSize}
	if l.x.Privacy != nil {
		b.hide = func(p []byte) ([]byte, error) { return l.x.Privacy.Incoming(l.server, p) }
	}
	carried := b.out
	b.out = writerFunc(func(p []byte) (int, error) {
		l.x.Reporter.AddCarried(p)
		return carried.Write(p)
	})
	return b
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// hideWrapped hides personal data in a document. Then it removes text from both ends of the document that was added
// only as context for the search. The arguments before and after are the lengths of that text in bytes.
func (b batchWriter) hideWrapped(document []byte, before, after int) ([]byte, error) {
	if !utf8.Valid(document) {
		document = bytes.ToValidUTF8(document, []byte("\uFFFD"))
	}
	out := document
	if b.hide != nil {
		var err error
		if out, err = b.hide(document); err != nil {
			return nil, unhiddenError("the answer was withheld", err)
		}
	}
	head, tail := document[:before], document[len(document)-after:]
	if len(out) < before+after || !bytes.HasPrefix(out, head) || !bytes.HasSuffix(out, tail) {
		return nil, core.Errorf(core.KindInternal, "relay.private", "the answer was withheld: there is personal data between its parts")
	}
	return out[before : len(out)-after], nil
}

func (b batchWriter) writeBatch(p []byte) error {
	if *b.preview == "" {
		head := p[:min(len(p), previewSize)]
		if len(p) > previewSize {
			*b.preview = string(bytes.ToValidUTF8(head, nil)) + "…"
		} else {
			*b.preview = string(head)
		}
	}
	_, err := b.out.Write(p)
	return err
}

// pieceWriter writes JSON without white space between tokens. Each item of a top-level array gets its own line.
// Personal data can be hidden only in a complete JSON document. Therefore each batch is completed before the search:
// the beginnings of the objects and arrays around the batch, with their keys, are added before it, and their ends
// after it.
type pieceWriter struct {
	out   batchWriter
	lines bool
	rows  int64

	scan   jsonscan.Scanner
	buf    []byte
	before int // bytes of buf that open the open containers
	open   []openContainer
	some   bool // a row has begun
}

type openContainer struct {
	with byte
	key  []byte // the last one
}

func (w *pieceWriter) copyFrom(r io.Reader) error {
	if w.lines {
		w.buf, w.before = append(w.buf, '['), 1
	}
	if err := scanPieces(r, &w.scan, w.takePiece); err != nil {
		return err
	}
	if w.some {
		w.rows++
	}
	return w.flushBatch(nil)
}

func (w *pieceWriter) takePiece(kind jsonscan.Kind, p []byte) error {
	depth := w.scan.NestingDepth()
	outer := w.lines && (depth == 1 && kind == jsonscan.Open && len(w.open) == 0 || depth == 0 && kind == jsonscan.Close)
	switch kind {
	case jsonscan.Space:
		return nil
	case jsonscan.Open:
		w.open = append(w.open, openContainer{with: p[0]})
	case jsonscan.Close:
		w.open = w.open[:depth]
	case jsonscan.Key:
		top := &w.open[depth-1]
		top.key = append(top.key, p...)
	case jsonscan.Comma:
		return w.writeComma(depth)
	}
	if outer {
		return nil
	}
	w.some = true
	if w.buf = append(w.buf, p...); len(w.buf) > maxValueSize {
		return core.Errorf(core.KindLimit, "relay.large", "the answer contains a value of more than %d MB", maxValueSize>>20).
			WithHint("request less data: leave out the column with such values")
	}
	return nil
}

// writeComma writes a comma. If the batch has become large, it ends the batch after the comma, preferably between
// rows. Only a much larger batch is ended within a row.
func (w *pieceWriter) writeComma(depth int) error {
	top := &w.open[depth-1]
	top.key = top.key[:0]
	separator := []byte(",")
	if w.lines && depth == 1 {
		separator = []byte(",\n")
		w.rows++
	}
	if size := len(w.buf) - w.before; size > w.out.size && (depth == 1 || size > 4*w.out.size) {
		return w.flushBatch(separator)
	}
	w.buf = append(w.buf, separator...)
	return nil
}

// flushBatch writes the batch, followed by the separator between it and the next batch.
func (w *pieceWriter) flushBatch(separator []byte) error {
	after := 0
	for i := len(w.open) - 1; i >= 0; i-- {
		w.buf = append(w.buf, w.open[i].with+2) // { } and [ ]
		after++
	}
	if len(w.open) == 0 && w.lines {
		w.buf, after = append(w.buf, ']'), 1
	}
	out, err := w.out.hideWrapped(w.buf, w.before, after)
	if err != nil {
		return err
	}
	if w.lines && len(out) > 0 {
		out = bytes.ReplaceAll(out, []byte(",\n"), []byte("\n"))
		if string(separator) != "," {
			separator = []byte("\n")
		}
	}
	if err := w.out.writeBatch(append(out, separator...)); err != nil {
		return err
	}
	w.buf = w.buf[:0]
	for i, o := range w.open {
		w.buf = append(w.buf, o.with)
		if o.with == '{' && i < len(w.open)-1 {
			w.buf = append(append(w.buf, bytes.ToValidUTF8(o.key, []byte("\uFFFD"))...), ':')
		}
	}
	w.before = len(w.buf)
	return nil
}
