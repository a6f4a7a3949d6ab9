package jsonscan

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// DecodeText returns a reader that decodes the escapes of a JSON string. The reader r must yield the contents of a
// valid string without its quotes. Unpaired surrogates become U+FFFD.
func DecodeText(r io.Reader) io.Reader { return &textReader{in: r, raw: make([]byte, 0, 64<<10)} }

type textReader struct {
	in   io.Reader
	raw  []byte // input that is not decoded yet
	out  []byte // decoded text that Read has not returned yet
	buf  []byte // memory that out uses
	done error
}

func (t *textReader) Read(p []byte) (int, error) {
	for len(t.out) == 0 {
		if t.done != nil && len(t.raw) == 0 {
			return 0, t.done
		}
		if t.done == nil {
			n, err := t.in.Read(t.raw[len(t.raw):cap(t.raw)])
			t.raw, t.done = t.raw[:len(t.raw)+n], err
		}
		if err := t.decodeBuffered(); err != nil {
			return 0, err
		}
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	return n, nil
}

var errEscape = errors.New("an invalid escape")

// longest is the length in bytes of the longest escape sequence: a surrogate pair such as \ud83d\ude00.
const longest = 12

// decodeBuffered decodes all complete characters and escapes in the raw input and appends them to buf.
func (t *textReader) decodeBuffered() error {
	t.buf = t.buf[:0]
	raw := t.raw
	for len(raw) > 0 {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			t.buf, raw = append(t.buf, raw...), nil
			break
		}
		t.buf, raw = append(t.buf, raw[:i]...), raw[i:]
		if len(raw) < longest && t.done == nil {
			break // the rest of the escape may be to come
		}
		n, err := t.decodeEscape(raw)
		if err != nil {
			return err
		}
		raw = raw[n:]
	}
	t.raw = t.raw[:copy(t.raw[:cap(t.raw)], raw)]
	t.out = t.buf
	return nil
}

// decodeEscape decodes the escape sequence at the start of the raw input and returns its length.
func (t *textReader) decodeEscape(raw []byte) (int, error) {
	if len(raw) < 2 {
		return 0, errEscape
	}
	if i := bytes.IndexByte([]byte(`"\/bfnrt`), raw[1]); i >= 0 {
		t.buf = append(t.buf, "\"\\/\b\f\n\r\t"[i])
		return 2, nil
	}
	r, ok := parseUnit(raw)
	if !ok {
		return 0, errEscape
	}
	n := 6
	if utf16.IsSurrogate(r) {
		low, _ := parseUnit(raw[6:])
		if r = utf16.DecodeRune(r, low); r != utf8.RuneError {
			n = 12
		}
	}
	t.buf = utf8.AppendRune(t.buf, r)
	return n, nil
}

// parseUnit parses the escape \uXXXX at the start of p.
func parseUnit(p []byte) (r rune, ok bool) {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p[2:6]), 16, 16)
	return rune(n), err == nil
}
