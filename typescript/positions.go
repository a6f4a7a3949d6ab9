package tsc

import (
	"sort"
	"strings"

	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/scanner"
	"github.com/microsoft/typescript-go/internal/sourcemap"
)

// emitted maps offsets in the emitted JavaScript to offsets in the text of the unit from which the JavaScript was
// made. It contains only the offsets for which the compiler's source map has an entry.
type emitted struct {
	from, to []int // offsets in the emitted text, ascending; and in the unit's
}

func newEmitted(u *unit, js, mappings string) *emitted {
	e := &emitted{}
	generated := textLines(js)
	for m := range sourcemap.DecodeMappings(mappings).Values() {
		if !m.IsSourceMapping() || m.GeneratedLine >= len(generated) {
			continue
		}
		start, text := generated[m.GeneratedLine].start, generated[m.GeneratedLine].text
		e.from = append(e.from, start+utf16Offset(text, int(m.GeneratedCharacter)))
		e.to = append(e.to, scanner.GetECMAPositionOfLineAndUTF16Character(u.file, m.SourceLine, core.UTF16Offset(m.SourceCharacter)))
	}
	return e
}

// source returns the offset in the unit's text that corresponds to the offset pos in the emitted text. If the source
// map has no entry for pos, it uses the nearest entry before pos, and exact is false.
func (e *emitted) source(pos int) (offset int, exact bool) {
	i := sort.SearchInts(e.from, pos+1) - 1
	if i < 0 {
		return 0, false
	}
	return e.to[i], e.from[i] == pos
}

type textLine struct {
	start int
	text  string
}

// textLines splits a text into lines as ECMAScript defines them, because the compiler's emitter counts lines in that
// way.
func textLines(text string) []textLine {
	starts := core.ComputeECMALineStarts(text)
	lines := make([]textLine, len(starts))
	for i, s := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = int(starts[i+1])
		}
		lines[i] = textLine{int(s), text[s:end]}
	}
	return lines
}

// utf16Offset converts a UTF-16 column of a line to a byte offset.
func utf16Offset(line string, column int) int {
	if column <= 0 {
		return 0
	}
	for i, r := range line {
		if column <= 0 {
			return i
		}
		column--
		if r > 0xffff {
			column--
		}
	}
	return len(line)
}

// positionMap maps positions of the final code to the text given to Parse.
type positionMap struct {
	code  *lineTable
	shift offsets // from the final code to the emitted one
	// from and to describe the mapped positions, in ascending order: from holds offsets in the emitted code, and to
	// holds the offsets in the text given to Parse that correspond to them. Both are nil if shift alone maps offsets
	// of the final code to that text.
	from, to []int
	text     *lineTable
}

func newPositionMap(u *unit, e *emitted, code string, shift offsets) *positionMap {
	p := &positionMap{code: newCodeTable(code), shift: shift, from: e.from, to: make([]int, len(e.to)), text: u.src.lines}
	for i, at := range e.to {
		p.to[i] = u.written(at)
	}
	return p
}

// newCodeTable returns the lineTable of JavaScript code. Lines end with \n only, because JavaScript engines number
// lines in this way in the positions of errors.
func newCodeTable(code string) *lineTable {
	starts := []int{0}
	for at := 0; ; {
		i := strings.IndexByte(code[at:], '\n')
		if i < 0 {
			return &lineTable{code, starts}
		}
		at += i + 1
		starts = append(starts, at)
	}
}

func (p *positionMap) locate(line, column int) (int, int) {
	at := p.shift.back(p.code.offset(line, column))
	if p.from == nil {
		return p.text.position(at)
	}
	i := sort.SearchInts(p.from, at+1) - 1
	if i < 0 {
		return 1, 1
	}
	return p.text.position(p.to[i])
}
