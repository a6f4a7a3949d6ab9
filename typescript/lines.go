package tsc

import (
	"sort"
	"unicode/utf8"
)

// lineTable converts between byte offsets in one text and pairs of line and column.
type lineTable struct {
	text   string
	starts []int // offset at which each line starts
}

// newLineTable returns the lineTable of a text. Lines end with \n, \r\n or \r, as in editors.
func newLineTable(text string) *lineTable {
	starts := []int{0}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\n':
			starts = append(starts, i+1)
		case '\r':
			if i+1 == len(text) || text[i+1] != '\n' {
				starts = append(starts, i+1)
			}
		}
	}
	return &lineTable{text, starts}
}

// position returns the 1-based line and column of an offset. Columns count code points.
func (t *lineTable) position(offset int) (line, column int) {
	offset = min(max(offset, 0), len(t.text))
	i := sort.SearchInts(t.starts, offset+1) - 1
	return i + 1, utf8.RuneCountInString(t.text[t.starts[i]:offset]) + 1
}

// offset returns the byte offset of a line and column, so it is the inverse of position. For positions outside the
// text, it returns the nearest offset in the text.
func (t *lineTable) offset(line, column int) int {
	if line < 1 {
		return 0
	}
	if line > len(t.starts) {
		return len(t.text)
	}
	at, end := t.starts[line-1], len(t.text)
	if line < len(t.starts) {
		end = t.starts[line] - 1
	}
	for ; column > 1 && at < end; column-- {
		_, size := utf8.DecodeRuneInString(t.text[at:])
		at += size
	}
	return at
}
