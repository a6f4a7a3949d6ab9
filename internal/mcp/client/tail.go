package client

import (
	"bytes"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	tailLines = 100
	tailWidth = 500 // maximum number of bytes that are kept of one line
)

// outputTail keeps the last lines written to it, for error messages. It cuts each line to tailWidth bytes and removes
// terminal sequences and control characters.
type outputTail struct {
	written atomic.Int64 // number of bytes written so far

	mu    sync.Mutex
	lines []string
	line  []byte // the unfinished last line, truncated
	esc   escapeState
}

func (t *outputTail) Write(p []byte) (int, error) {
	t.written.Add(int64(len(p)))
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range p {
		switch {
		case c == '\n':
			t.endLine()
		case t.esc.swallowsByte(c):
		case len(t.line) < tailWidth && (c >= ' ' && c != 0x7f || c == '\t'):
			t.line = append(t.line, c)
		}
	}
	return len(p), nil
}

func (t *outputTail) endLine() {
	t.esc = 0
	line := strings.ToValidUTF8(string(bytes.TrimRight(t.line, " \t")), "")
	t.line = t.line[:0]
	if line == "" {
		return
	}
	if len(t.lines) == tailLines {
		copy(t.lines, t.lines[1:])
		t.lines = t.lines[:tailLines-1]
	}
	t.lines = append(t.lines, line)
}

// lastLines returns the last n lines, oldest first. If the last line is not complete yet, it also counts.
func (t *outputTail) lastLines(n int) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if rest := strings.TrimSpace(strings.ToValidUTF8(string(t.line), "")); rest != "" {
		lines = append(lines[:len(lines):len(lines)], rest)
	}
	return append([]string(nil), lines[max(0, len(lines)-n):]...)
}

// escapeState describes how far a terminal sequence (ECMA-48) has been read.
type escapeState byte

const (
	escapeStart escapeState = iota + 1 // the last character was ESC
	// escapeControl means that a sequence is being read that begins with ESC [ and ends with a letter or similar
	// character.
	escapeControl
	// escapeString means that a sequence is being read that begins with ESC ] or the like and ends with BEL or ESC \.
	escapeString
)

func (e *escapeState) swallowsByte(c byte) bool {
	switch {
	case c == 0x1b:
		*e = escapeStart
	case *e == 0:
		return false
	case *e == escapeStart && c == '[':
		*e = escapeControl
	case *e == escapeStart && bytes.IndexByte([]byte("]PX^_"), c) >= 0:
		*e = escapeString
	case *e == escapeStart && c >= 0x20 && c <= 0x2f:
		// an intermediate byte: the final one follows
	case *e == escapeControl && (c < 0x40 || c > 0x7e):
	case *e == escapeString && c != 0x07:
	default:
		*e = 0
	}
	return true
}
