package relay

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"retort/internal/base/jsonscan"
	"retort/internal/core"
)

// Fetcher extends Upstream with answers that are too large for memory. Exactly one of the two answers is nil.
type Fetcher interface {
	Fetch(ctx context.Context, server, tool string, arguments json.RawMessage) (json.RawMessage, *core.Spooled, error)
}

// Incoming is a file that is being written. It exists after Commit. Abort after Commit does nothing.
type Incoming interface {
	io.Writer
	Commit() (path string, bytes int64, err error)
	Abort()
}

// large writes the large parts of an answer to files.
type large struct {
	ctx     context.Context
	server  string
	spooled *core.Spooled
	answer  answer
	x       Execution // Files hide nothing
	made    []*filed
}

// filed describes a large part as a program sees it.
type filed struct {
	Path     string          `json:"path"`
	MIMEType string          `json:"mimeType"`
	Bytes    int64           `json:"bytes"`
	Rows     *int64          `json:"rows,omitempty"`   // of an array, a row to a line
	Member   string          `json:"member,omitempty"` // of the object, whose array this is
	Others   json.RawMessage `json:"others,omitempty"` // members of that object
	Preview  string          `json:"preview"`
	incoming Incoming
}

// value returns the answer as a program sees it and adds notes to the Outcome.
func (l *large) value() (json.RawMessage, error) {
	defer func() {
		for _, f := range l.made {
			f.incoming.Abort()
		}
	}()
	if err := l.answer.read(l.spooled.Result); err != nil {
		return nil, core.Errorf(core.KindToolError, "relay.value", "the server's answer is not a tool result: %v", err)
	}
	if l.answer.IsError {
		return nil, l.toolError()
	}
	values, err := l.values()
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

func (l *large) values() (values []any, err error) {
	if p, ok := l.part(-1); ok {
		v, err := l.file(p, "")
		return []any{v}, err
	}
	if s := l.answer.StructuredContent; len(s) > 0 && string(s) != "null" {
		v, err := shown(l.x, l.server, s)
		return []any{v.Value}, err
	}
	files := l.x.Files
	if l.x.Privacy != nil {
		files = hiding{files, l.x.Privacy, l.server}
	}
	for i := range l.answer.Content {
		c := &l.answer.Content[i]
		var v any
		if p, ok := l.part(i); ok {
			v, err = l.file(p, cmp.Or(c.MIMEType, c.Resource.MIMEType))
		} else if v, err = c.value(l.ctx, files); err == nil {
			var hidden core.Result
			hidden, err = shown(l.x, l.server, v.(json.RawMessage))
			v = hidden.Value
		}
		if err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, nil
}

// part returns the large part at an index of content, or structuredContent for -1.
func (l *large) part(index int) (core.SpooledPart, bool) {
	for _, p := range l.spooled.Parts {
		if p.Index == index {
			return p, true
		}
	}
	return core.SpooledPart{}, false
}

// file creates the file of a part and writes it.
func (l *large) file(p core.SpooledPart, mime string) (f *filed, err error) {
	switch p.Member {
	case core.SpooledData, core.SpooledBlob:
		return l.bytes(p, mime)
	case core.SpooledText:
		return l.text(func() io.Reader { return jsonscan.Text(l.spooled.Part(p)) }, mime)
	}
	open := func() io.Reader { return l.spooled.Part(p) }
	shape, err := survey(l.reader(open()))
	if err != nil {
		return nil, errBroken(err)
	}
	return l.json(open, shape)
}

// text writes a part that is text, which may be JSON.
func (l *large) text(open func() io.Reader, mime string) (*filed, error) {
	shape, err := survey(l.reader(open()))
	var none *jsonscan.Error
	switch {
	case err == nil && shape.container:
		return l.json(open, shape)
	case err == nil || errors.Is(err, errNoContainer) || errors.As(err, &none) && (none.Trailing || none.At < likely):
		return l.lines(open, cmp.Or(mime, "text/plain"))
	}
	return nil, errBroken(err)
}

// likely bounds how far into a text that begins like JSON an error may still show that it is not JSON.
const likely = 1 << 20

func errBroken(err error) error {
	var none *jsonscan.Error
	if !errors.As(err, &none) {
		return err
	}
	return core.Errorf(core.KindToolError, "relay.large", "the answer begins as JSON and is none: %v", none).
		WithHint("the server cut it off or produced it incorrectly: ask for less, with a filter, a page size, a range")
}

// json writes JSON. An array gets one line per row.
func (l *large) json(open func() io.Reader, s shape) (*filed, error) {
	suffix, mime := ".json", "application/json"
	if s.rows {
		suffix, mime = ".jsonl", "application/jsonl"
	}
	f, err := l.create(suffix, mime)
	if err != nil {
		return nil, err
	}
	from := l.reader(open())
	if s.rows {
		f.Member = s.member
		if _, err := io.CopyN(io.Discard, from, s.from); err != nil {
			return nil, err
		}
		from = io.LimitReader(from, s.to-s.from)
	}
	if len(s.others) > 0 {
		hidden, err := shown(l.x, l.server, s.others)
		if err != nil {
			return nil, err
		}
		f.Others = hidden.Value
	}
	w := &pieces{out: l.writer(f), lines: s.rows}
	if err := w.copy(from); err != nil {
		return nil, err
	}
	if s.rows {
		f.Rows = &w.rows
	}
	return f, nil
}

// lines writes plain text.
func (l *large) lines(open func() io.Reader, mime string) (*filed, error) {
	suffix := extension(mime)
	if suffix == ".bin" || suffix == ".json" {
		suffix = ".txt"
	}
	f, err := l.create(suffix, mime)
	if err != nil {
		return nil, err
	}
	return f, copyText(l.writer(f), l.reader(open()))
}

// bytes writes base64 data. If it is text, personal data in it is hidden.
func (l *large) bytes(p core.SpooledPart, mime string) (*filed, error) {
	open := func() io.Reader {
		return base64.NewDecoder(base64.StdEncoding, jsonscan.Text(l.spooled.Part(p)))
	}
	valid, err := isText(l.reader(open()))
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, core.Errorf(core.KindToolError, "relay.blob", "the server sent bytes that are not base64: %v", err)
	}
	if err != nil {
		return nil, err
	}
	f, err := l.create(extension(mime), mime)
	if err != nil {
		return nil, err
	}
	if valid {
		return f, copyText(l.writer(f), l.reader(open()))
	}
	_, err = io.Copy(f.incoming, l.reader(open()))
	return f, err
}

func (l *large) create(suffix, mime string) (*filed, error) {
	in, err := l.x.Files.Create(l.ctx, suffix)
	if err != nil {
		return nil, err
	}
	f := &filed{MIMEType: mime, incoming: in}
	l.made = append(l.made, f)
	return f, nil
}

// reader returns a reader that ends with the call.
func (l *large) reader(r io.Reader) io.Reader { return cancelled{l.ctx, r} }

type cancelled struct {
	ctx context.Context
	io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if c.ctx.Err() != nil {
		return 0, core.Errorf(core.KindCancelled, "relay.large", "cancelled: %w", context.Cause(c.ctx))
	}
	if err := core.ClaimOf(c.ctx).Yield(c.ctx); err != nil { // large answers take turns
		return 0, core.Errorf(core.KindCancelled, "relay.large", "cancelled: %w", err)
	}
	return c.Reader.Read(p)
}

// toolError returns a tool's long error message.
func (l *large) toolError() error {
	for i := range l.answer.Content {
		if p, ok := l.part(i); ok && p.Member == core.SpooledText {
			p.Bytes = min(p.Bytes, 2*maxErrorText)
			head, _ := io.ReadAll(jsonscan.Text(l.spooled.Part(p))) // the cut may go through an escape
			l.answer.Content[i].Text = string(head)
		}
	}
	return toolError(l.answer)
}

// notes adds notes on the files to the Outcome.
func (l *large) notes(tool string) {
	if l.x.Note == nil {
		return
	}
	for _, f := range l.made {
		text := fmt.Sprintf("the answer of %s.%s (%d bytes) is too large to be a value: it is in ./workspace/%s, and the value says so", l.server, tool, l.spooled.Bytes, f.Path)
		if f.Rows != nil {
			text += fmt.Sprintf(", a row to a line: for await (const line of (await fs.open('%s')).readLines()) { const row = JSON.parse(line) }, with import fs from 'node:fs/promises'; in Python: for line in open('%s')", f.Path, f.Path)
		}
		l.x.Note(text)
	}
}
