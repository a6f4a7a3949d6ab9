package tsc

import (
	"cmp"
	"slices"
	"sort"
	"strings"
)

// edit replaces text[pos:end] by the text insert. origin is the offset in the old text to which the inserted text
// corresponds. It differs from pos only for text that was moved from another place.
type edit struct {
	pos, end int
	insert   string
	origin   int
}

// edits collects edits of one text. They must not overlap. Several insertions at one position keep their order.
type edits struct{ list []edit }

func (e *edits) replace(pos, end int, with string) {
	e.list = append(e.list, edit{pos, end, with, pos})
}

func (e *edits) insert(pos int, text string) { e.replace(pos, pos, text) }

// move inserts text at the offset pos. Positions in the inserted text correspond to the offset origin of the old
// text, from which the text was moved.
func (e *edits) move(origin, pos int, text string) {
	e.list = append(e.list, edit{pos, pos, text, origin})
}

// piece describes a run of the new text. The run was copied from the old text at the offset old, or it was inserted
// and corresponds to that offset.
type piece struct {
	start, old int
	inserted   bool
}

// offsets maps offsets of an edited text back to those of the old one.
type offsets []piece

// apply returns the edited text and the map back to the old text. The map is nil if there are no edits.
func (e *edits) apply(text string) (string, offsets) {
	if len(e.list) == 0 {
		return text, nil
	}
	slices.SortStableFunc(e.list, func(a, b edit) int { return cmp.Compare(a.pos, b.pos) })
	var b strings.Builder
	var pieces offsets
	at := 0
	for _, x := range e.list {
		if x.pos > at {
			pieces = append(pieces, piece{b.Len(), at, false})
			b.WriteString(text[at:x.pos])
		}
		if x.insert != "" {
			pieces = append(pieces, piece{b.Len(), x.origin, true})
			b.WriteString(x.insert)
		}
		at = max(at, x.end)
	}
	pieces = append(pieces, piece{b.Len(), at, false})
	b.WriteString(text[at:])
	return b.String(), pieces
}

// back returns the offset in the old text that corresponds to pos in the new text.
func (o offsets) back(pos int) int {
	i := sort.Search(len(o), func(i int) bool { return o[i].start > pos }) - 1
	switch {
	case i < 0:
		return pos
	case o[i].inserted:
		return o[i].old
	}
	return o[i].old + pos - o[i].start
}
