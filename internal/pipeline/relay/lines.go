package relay

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"unicode/utf8"

	"retort/internal/core"
)

// longestHeader is the maximum length in bytes of a first line that is searched again together with every batch. The
// first line may contain column names, which help to recognise personal data.
const longestHeader = 4 << 10

// lineBatches writes text in batches of whole lines, each with personal data hidden.
type lineBatches struct {
	out    batchWriter
	buf    []byte
	none   int    // bytes of buf in which no line ends
	header []byte // the first line, with its newline
	hidden []byte // the same with personal data hidden
}

func copyText(out batchWriter, r io.Reader) error {
	w := &lineBatches{out: out}
	for {
		if cap(w.buf)-len(w.buf) < 64<<10 {
			w.buf = append(make([]byte, 0, max(2*cap(w.buf), 2*w.out.size)), w.buf...)
		}
		n, err := r.Read(w.buf[len(w.buf) : len(w.buf)+64<<10])
		w.buf = w.buf[:len(w.buf)+n]
		if errors.Is(err, io.EOF) {
			return w.flushBytes(len(w.buf))
		}
		if err != nil {
			return err
		}
		if len(w.buf) < w.out.size {
			continue
		}
		if err := w.flushBytes(w.lineEnd()); err != nil {
			return err
		}
	}
}

// lineEnd returns the offset in the buffer at which to end a batch. It prefers an empty line in the last quarter of
// the buffer, because addresses and cryptographic keys span several lines. Otherwise it returns the end of the last
// complete line, or 0 if none is found.
func (w *lineBatches) lineEnd() int {
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

// flushBytes writes the first n bytes of the buffer. If n is 0 although the buffer is full, one line is too long for
// a batch. Then it writes a part of the line or, if personal data must be hidden, returns an error.
func (w *lineBatches) flushBytes(n int) error {
	if n == 0 && len(w.buf) > maxValueSize {
		if w.out.hide != nil {
			return core.Errorf(
				core.KindLimit, "relay.large",
				"the answer contains a line of more than %d MB, in which personal data cannot be hidden", maxValueSize>>20,
			).
				WithHint("request less data, or another format")
		}
		n = wholeLength(w.buf)
	}
	if n == 0 {
		return nil
	}
	out, err := w.hideBatch(w.buf[:n])
	if err != nil {
		return err
	}
	if err := w.out.writeBatch(out); err != nil {
		return err
	}
	w.buf, w.none = w.buf[:copy(w.buf, w.buf[n:])], 0
	return nil
}

// hideBatch returns a batch with personal data hidden. It searches the batch together with the text's first line,
// which may contain column names, unless that line itself contains personal data.
func (w *lineBatches) hideBatch(p []byte) ([]byte, error) {
	if w.header == nil {
		out, err := w.out.hideWrapped(p, 0, 0)
		if i := bytes.IndexByte(p, '\n') + 1; i > 0 && i < longestHeader && w.out.hide != nil {
			w.header = bytes.Clone(p[:i])
			w.hidden = bytes.Clone(out[:bytes.IndexByte(out, '\n')+1])
		} else {
			w.header = []byte{}
		}
		return out, err
	}
	if len(w.header) == 0 || !bytes.Equal(w.header, w.hidden) {
		return w.out.hideWrapped(p, 0, 0) // a header that contains personal data is not used
	}
	out, err := w.out.hideWrapped(append(bytes.Clone(w.header), p...), len(w.header), 0)
	return out, err
}

// wholeLength returns the length of a text without a partial character at its end.
func wholeLength(p []byte) int {
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

// byteSurvey describes data that is too large for memory.
type byteSurvey struct {
	isUTF8      bool
	isPrintable bool  // the data has only control characters that texts have
	bytes       int64 // number of bytes
	firstHigh   int64 // offset of the first byte beyond ASCII, or -1 if all bytes are ASCII
}

// surveyBytes reads all of r and describes its bytes.
func surveyBytes(r io.Reader) (byteSurvey, error) {
	s, rest := byteSurvey{isUTF8: true, isPrintable: true, firstHigh: -1}, 0
	buf := make([]byte, 64<<10)
	for {
		n, err := r.Read(buf[rest:])
		p := buf[:rest+n]
		if errors.Is(err, io.EOF) {
			s.add(p)
			return s, nil
		}
		if err != nil {
			return s, err
		}
		end := wholeLength(p)
		s.add(p[:end])
		rest = copy(buf, p[end:])
	}
}

// add adds the next bytes. They must not end inside a UTF-8 character, except at the end of the data.
func (s *byteSurvey) add(p []byte) {
	s.isUTF8 = s.isUTF8 && utf8.Valid(p)
	s.isPrintable = s.isPrintable && isPrintable(p)
	if s.firstHigh < 0 {
		if i := slices.IndexFunc(p, func(b byte) bool { return b >= utf8.RuneSelf }); i >= 0 {
			s.firstHigh = s.bytes + int64(i)
		}
	}
	s.bytes += int64(len(p))
}
