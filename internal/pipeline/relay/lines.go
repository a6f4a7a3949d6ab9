package relay

import (
	"bytes"
	"errors"
	"io"
	"unicode/utf8"

	"retort/internal/core"
)

// longestHeader bounds the first line of a text, in bytes, that is repeated before each batch. The line may name the
// columns, which helps to recognize personal data in them.
const longestHeader = 4 << 10

// texts writes text in batches of whole lines.
type texts struct {
	out    batches
	buf    []byte
	none   int    // bytes of buf in which no line ends
	header []byte // the first line, with its newline
	hidden []byte // the same with personal data hidden
}

func copyText(out batches, r io.Reader) error {
	w := &texts{out: out}
	for {
		if cap(w.buf)-len(w.buf) < 64<<10 {
			w.buf = append(make([]byte, 0, max(2*cap(w.buf), 2*w.out.size)), w.buf...)
		}
		n, err := r.Read(w.buf[len(w.buf) : len(w.buf)+64<<10])
		w.buf = w.buf[:len(w.buf)+n]
		if errors.Is(err, io.EOF) {
			return w.flush(len(w.buf))
		}
		if err != nil {
			return err
		}
		if len(w.buf) < w.out.size {
			continue
		}
		if err := w.flush(w.lineEnd()); err != nil {
			return err
		}
	}
}

// lineEnd returns the end of the last whole line. It prefers an empty line near the end, because keys and addresses
// span several lines.
func (w *texts) lineEnd() int {
	end := bytes.LastIndexByte(w.buf[w.none:], '\n') + 1
	if end == 0 {
		w.none = len(w.buf)
		return 0
	}
	late := len(w.buf) - len(w.buf)/4
	if i := bytes.LastIndex(w.buf[late:], []byte("\n\n")); i >= 0 {
		return late + i + 2
	}
	return w.none + end
}

// flush writes the first n bytes. If n is 0, the line is either too long or not complete yet.
func (w *texts) flush(n int) error {
	if n == 0 && len(w.buf) > longest {
		if w.out.hide != nil {
			return core.Errorf(core.KindLimit, "relay.large", "the answer has a line of more than %d MB, in which personal data cannot be hidden", longest>>20).
				WithHint("ask for less, or for another format")
		}
		n = whole(w.buf)
	}
	if n == 0 {
		return nil
	}
	out, err := w.hide(w.buf[:n])
	if err != nil {
		return err
	}
	if err := w.out.write(out); err != nil {
		return err
	}
	w.buf, w.none = w.buf[:copy(w.buf, w.buf[n:])], 0
	return nil
}

// hide hides a batch together with the text's header line, which gives it context.
func (w *texts) hide(p []byte) ([]byte, error) {
	if w.header == nil {
		out, err := w.out.hidden(p, 0, 0)
		if i := bytes.IndexByte(p, '\n') + 1; i > 0 && i < longestHeader && w.out.hide != nil {
			w.header = bytes.Clone(p[:i])
			w.hidden = bytes.Clone(out[:bytes.IndexByte(out, '\n')+1])
		} else {
			w.header = []byte{}
		}
		return out, err
	}
	if len(w.header) == 0 || !bytes.Equal(w.header, w.hidden) {
		return w.out.hidden(p, 0, 0) // a header that contains personal data is not used
	}
	out, err := w.out.hidden(append(bytes.Clone(w.header), p...), len(w.header), 0)
	return out, err
}

// whole returns how many bytes of a text end with a complete character.
func whole(p []byte) int {
	for n := len(p); n > len(p)-utf8.UTFMax && n > 0; n-- {
		if utf8.RuneStart(p[n-1]) {
			if utf8.FullRune(p[n-1:]) {
				return len(p)
			}
			return n - 1
		}
	}
	return len(p)
}

// isText reports whether all of r is valid UTF-8.
func isText(r io.Reader) (bool, error) {
	valid, rest := true, 0
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf[rest:])
		p := buf[:rest+n]
		if errors.Is(err, io.EOF) {
			return valid && utf8.Valid(p), nil
		}
		if err != nil {
			return false, err
		}
		end := whole(p)
		valid = valid && utf8.Valid(p[:end])
		rest = copy(buf, p[end:])
	}
}
