package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

// LargeFetcher is an Upstream that can store a result that is too large for memory in a file. Fetch returns exactly
// one of three values: the result, the file with the result, or an error.
type LargeFetcher interface {
	Fetch(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, *core.SpooledAnswer, error)
}

// IncomingFile is a workspace file that is being written. It becomes visible with Commit. Calling Abort after Commit
// has no effect.
type IncomingFile interface {
	io.Writer
	Commit() (path string, bytes int64, err error)
	Abort()
}

// largeAnswer writes the large parts of a tool result to workspace files.
type largeAnswer struct {
	ctx     context.Context
	server  string
	spooled *core.SpooledAnswer
	answer  toolAnswer
	x       ExecutionContext // Files hide nothing
	made    []*savedPart
}

// savedPart describes a part of a result that was written to a file. The program gets this description in place of
// the part.
type savedPart struct {
	Path     string          `json:"path"`
	MIMEType string          `json:"mimeType"`
	Bytes    int64           `json:"bytes"`
	Rows     *int64          `json:"rows,omitempty"`   // of an array, a row to a line
	Member   string          `json:"member,omitempty"` // of the object, whose array this is
	Others   json.RawMessage `json:"others,omitempty"` // members of that object
	Preview  string          `json:"preview"`
	incoming IncomingFile
}

// buildValue returns the value that the program gets, with descriptions in place of the large parts. It commits the
// files of these parts only if all could be written.
func (l *largeAnswer) buildValue() (json.RawMessage, error) {
	defer func() {
		for _, f := range l.made {
			f.incoming.Abort()
		}
	}()
	if err := l.answer.readResult(l.spooled.Result); err != nil {
		return nil, core.Errorf(core.KindToolError, "relay.value", "the server's answer is not a tool result: %v", err)
	}
	if l.answer.IsError {
		return nil, l.toolError()
	}
	values, err := l.buildValues()
	if err != nil {
		return nil, err
	}
	for _, f := range l.made {
		if f.Path, f.Bytes, err = f.incoming.Commit(); err != nil {
			return nil, err
		}
	}
	if len(values) == 1 {
		return json.Marshal(values[0])
	}
	return json.Marshal(values)
}

func (l *largeAnswer) buildValues() (values []any, err error) {
	if p, ok := l.findPart(-1); ok {
		v, err := l.writePart(p, "")
		return []any{v}, err
	}
	if s := l.answer.StructuredContent; len(s) > 0 && string(s) != "null" {
		v, err := showAnswer(l.x, l.server, s)
		return []any{v.Value}, err
	}
	files := l.x.Files
	if l.x.Privacy != nil {
		files = hidingFiles{files, l.x.Privacy, l.server}
	}
	for i := range l.answer.Content {
		c := &l.answer.Content[i]
		var v any
		if p, ok := l.findPart(i); ok {
			v, err = l.writePart(p, cmp.Or(c.MIMEType, c.Resource.MIMEType))
		} else if v, err = c.programValue(l.ctx, files); err == nil {
			var hidden core.CallResult
			hidden, err = showAnswer(l.x, l.server, v.(json.RawMessage))
			v = hidden.Value
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// findPart returns the large part with this index in the result's content. Index -1 means structuredContent.
func (l *largeAnswer) findPart(index int) (core.SpooledPart, bool) {
	for _, p := range l.spooled.Parts {
		if p.Index == index {
			return p, true
		}
	}
	return core.SpooledPart{}, false
}

// writePart creates the file for a part and writes the part to it.
func (l *largeAnswer) writePart(p core.SpooledPart, mime string) (f *savedPart, err error) {
	switch p.Member {
	case core.SpooledData, core.SpooledBlob:
		return l.writeBytes(p, mime)
	case core.SpooledText:
		return l.writeText(func() io.Reader { return jsonscan.DecodeText(l.spooled.OpenPart(p)) }, mime)
	}
	open := func() io.Reader { return l.spooled.OpenPart(p) }
	shape, err := surveyJSON(l.contextReader(open()))
	if err != nil {
		return nil, errBroken(err)
	}
	return l.writeJSON(open, shape)
}

// writeText writes a text to a file, as JSON if it is JSON.
func (l *largeAnswer) writeText(open func() io.Reader, mime string) (*savedPart, error) {
	shape, err := surveyJSON(l.contextReader(open()))
	var none *jsonscan.Error
	switch {
	case err == nil && shape.container:
		return l.writeJSON(open, shape)
	case err == nil || errors.Is(err, errNoContainer) || errors.As(err, &none) && (none.Trailing || none.At < maxTextPrefix):
		return l.writeLines(open, cmp.Or(mime, "text/plain"))
	}
	return nil, errBroken(err)
}

// maxTextPrefix is an offset in a text that begins like JSON, in bytes. If the text has a syntax error before this
// offset, it is taken for plain text. If the error comes later, the text is damaged JSON and the call fails.
const maxTextPrefix = 1 << 20

func errBroken(err error) error {
	var none *jsonscan.Error
	if !errors.As(err, &none) {
		return err
	}
	return core.Errorf(core.KindToolError, "relay.large", "the answer starts like JSON but is not valid JSON: %v", none).
		WithHint("the server cut it off or produced it incorrectly: request less data, with a filter, a page size or a range")
}

// writeJSON writes JSON to a file. Each item of a top-level array gets its own line.
func (l *largeAnswer) writeJSON(open func() io.Reader, s jsonShape) (*savedPart, error) {
	suffix, mime := ".json", "application/json"
	if s.rows {
		suffix, mime = ".jsonl", "application/jsonl"
	}
	f, err := l.createFile(suffix, mime)
	if err != nil {
		return nil, err
	}
	from := l.contextReader(open())
	if s.rows {
		f.Member = s.member
		if _, err := io.CopyN(io.Discard, from, s.from); err != nil {
			return nil, err
		}
		from = io.LimitReader(from, s.to-s.from)
	}
	if len(s.others) > 0 {
		hidden, err := showAnswer(l.x, l.server, s.others)
		if err != nil {
			return nil, err
		}
		f.Others = hidden.Value
	}
	w := &pieceWriter{out: l.newBatches(f), lines: s.rows}
	if err := w.copyFrom(from); err != nil {
		return nil, err
	}
	if s.rows {
		f.Rows = &w.rows
	}
	return f, nil
}

// writeLines writes plain text to a file, in batches of whole lines.
func (l *largeAnswer) writeLines(open func() io.Reader, mime string) (*savedPart, error) {
	suffix := fileExtension(mime)
	if suffix == ".bin" || suffix == ".json" {
		suffix = ".txt"
	}
	f, err := l.createFile(suffix, mime)
	if err != nil {
		return nil, err
	}
	return f, copyText(l.newBatches(f), l.contextReader(open()))
}

// writeBytes decodes base64 data and writes it to a file. If the data is text, personal data in it is hidden.
func (l *largeAnswer) writeBytes(p core.SpooledPart, mime string) (*savedPart, error) {
	open := func() io.Reader {
		return base64.NewDecoder(base64.StdEncoding, jsonscan.DecodeText(l.spooled.OpenPart(p)))
	}
	survey, err := surveyBytes(l.contextReader(open()))
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, core.Errorf(core.KindToolError, "relay.blob", "the server sent bytes that are not base64: %v", err)
	}
	if err != nil {
		return nil, err
	}
	text, err := l.openText(open, mime, survey)
	if err != nil {
		return nil, err
	}
	f, err := l.createFile(fileExtension(mime), mime)
	if err != nil {
		return nil, err
	}
	if text != nil {
		return f, copyText(l.newBatches(f), l.contextReader(text))
	}
	_, err = io.Copy(f.incoming, l.contextReader(open()))
	return f, err
}

// openText returns a reader that converts the data to UTF-8, or nil if the data is not text. It finds out the encoding
// from the beginning of the data. If the beginning is ASCII, it uses the data from the first byte beyond ASCII on.
func (l *largeAnswer) openText(open func() io.Reader, mime string, s byteSurvey) (io.Reader, error) {
	sample, err := l.readSample(open())
	if err != nil {
		return nil, err
	}
	claimed, charset := declaredText(mime, sample)
	if isUTF7Name(charset) {
		return nil, errUnreadable(mime)
	}
	readings, readable := readText(mime, wholeCharacters(sample))
	if !s.isUTF8 && len(readings) > 0 && readings[0].encoding == nil {
		switch {
		case !s.isPrintable: // binary data can begin like a text
			readings, readable = nil, !claimed
		case isASCII(sample):
			if sample, err = l.sampleAt(open(), s.firstHigh); err != nil {
				return nil, err
			}
			readings, readable = readText(mime, sample)
		}
	}
	switch {
	case !readable:
		return nil, errUnreadable(mime)
	case len(readings) == 0:
		return nil, nil
	case readings[0].encoding == nil:
		return open(), nil
	}
	return readings[0].encoding.NewDecoder().Reader(open()), nil
}

// readSample returns the first bytes of r, at most encodingSample.
func (l *largeAnswer) readSample(r io.Reader) ([]byte, error) {
	sample := make([]byte, encodingSample)
	n, err := io.ReadFull(l.contextReader(r), sample)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = nil
	}
	return sample[:n], err
}

// sampleAt returns at most encodingSample bytes of r from an offset on. If r has more bytes, sampleAt cuts the result
// at its last line break, so that it ends with a whole character.
func (l *largeAnswer) sampleAt(r io.Reader, offset int64) ([]byte, error) {
	if _, err := io.CopyN(io.Discard, l.contextReader(r), offset); err != nil {
		return nil, err
	}
	sample, err := l.readSample(r)
	if end := bytes.LastIndexByte(sample, '\n'); end > 0 && len(sample) == encodingSample {
		sample = sample[:end]
	}
	return sample, err
}

// encodingSample is the number of bytes of large data that are read to find out its encoding. It is a multiple of 4, so
// that no code unit of UTF-16 or UTF-32 is cut off.
const encodingSample = 64 << 10

// wholeCharacters returns data without an incomplete UTF-8 character at its end.
func wholeCharacters(data []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(data); n++ {
		if c := data[len(data)-n]; utf8.RuneStart(c) {
			if !utf8.FullRune(data[len(data)-n:]) {
				return data[:len(data)-n]
			}
			break
		}
	}
	return data
}

func (l *largeAnswer) createFile(suffix, mime string) (*savedPart, error) {
	in, err := l.x.Files.Create(l.ctx, suffix)
	if err != nil {
		return nil, err
	}
	f := &savedPart{MIMEType: mime, incoming: in}
	l.made = append(l.made, f)
	return f, nil
}

// contextReader returns a reader that reads r and fails when the call's context ends.
func (l *largeAnswer) contextReader(r io.Reader) io.Reader { return cancelReader{l.ctx, r} }

type cancelReader struct {
	ctx context.Context
	io.Reader
}

func (c cancelReader) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, core.Errorf(core.KindCancelled, "relay.large", "cancelled: %w", context.Cause(c.ctx))
	}
	if err := core.ClaimOf(c.ctx).Yield(c.ctx); err != nil { // large answers take turns
		return 0, core.Errorf(core.KindCancelled, "relay.large", "cancelled: %w", err)
	}
	return c.Reader.Read(p)
}

// toolError returns the error for a large result that the server marked as an error. It contains only the beginning
// of the server's error message.
func (l *largeAnswer) toolError() error {
	for i := range l.answer.Content {
		if p, ok := l.findPart(i); ok && p.Member == core.SpooledText {
			p.Bytes = min(p.Bytes, 2*maxErrorText)
			head, _ := io.ReadAll(jsonscan.DecodeText(l.spooled.OpenPart(p))) // the cut may go through an escape
			l.answer.Content[i].Text = string(head)
		}
	}
	return toolError(l.answer)
}

// addNotes adds a note to the Outcome for each workspace file to which a part of the result was written.
func (l *largeAnswer) addNotes(tool string) {
	for _, f := range l.made {
		text := fmt.Sprintf(
			"the result of %s.%s (%d bytes) is too large for a value: it is in ./workspace/%s, and the value names that file",
			l.server, tool, l.spooled.Bytes, f.Path,
		)
		if f.Rows != nil {
			text += fmt.Sprintf(
				", one row per line: for await (const line of (await fs.open('%s')).readLines()) { const row = JSON.parse(line) }, with import fs from 'node:fs/promises'; in Python: for line in open('%s')",
				f.Path, f.Path,
			)
		}
		l.x.Reporter.AddNote(text)
	}
}
