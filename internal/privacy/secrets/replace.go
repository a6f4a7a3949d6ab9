package secrets

import (
	"encoding/json"

	"retort/internal/base/jsonscan"
)

// replacePieces returns the text with the found pieces replaced by their labels. Valid JSON stays valid.
func replacePieces(text []byte, found []textPiece) []byte {
	r := pieceReplacer{in: text, found: found, out: make([]byte, 0, len(text)+len(text)/8+maxLabel)}
	if json.Valid(text) {
		r.replaceJSON()
	} else {
		r.replacePlain()
	}
	return r.out
}

// pieceReplacer copies a text and writes labels in place of the found pieces.
type pieceReplacer struct {
	in, out []byte
	found   []textPiece
	written bool // the label of the first piece
}

func (r *pieceReplacer) replacePlain() {
	from := 0
	for _, p := range r.found {
		r.out = append(append(r.out, r.in[from:p.start]...), p.label...)
		from = p.end
	}
	r.out = append(r.out, r.in[from:]...)
}

// replaceJSON replaces pieces in JSON without changing its structure. If a piece begins in one string and ends in
// another, its label is written to the first string, and the rest of the piece is removed from the others.
func (r *pieceReplacer) replaceJSON() {
	for i := 0; i < len(r.in); {
		end := i + 1
		switch c := r.in[i]; {
		case c == '"':
			quote, _ := jsonscan.StringEnd(r.in, i+1)
			r.out = append(r.out, '"')
			r.writeContent(i+1, quote)
			r.out = append(r.out, '"')
			end = quote + 1
		case isAlnum(c) || c == '-':
			for end < len(r.in) && (isAlnum(r.in[end]) || r.in[end] == '.' || r.in[end] == '+' || r.in[end] == '-') {
				end++
			}
			r.writeBare(i, end)
		default:
			r.out = append(r.out, c)
		}
		i = end
	}
}

// overlappingPiece reports whether the next piece to replace overlaps the range from start to end of the text. It
// first drops the pieces that end before start.
func (r *pieceReplacer) overlappingPiece(start, end int) bool {
	for len(r.found) > 0 && r.found[0].end <= start {
		r.found, r.written = r.found[1:], false
	}
	return len(r.found) > 0 && r.found[0].start < end
}

// writeContent writes the content of a JSON string, from i to end, with its pieces replaced.
func (r *pieceReplacer) writeContent(i, end int) {
	for i < end {
		if !r.overlappingPiece(i, end) {
			r.out = append(r.out, r.in[i:end]...)
			return
		}
		next := i + 1
		if r.in[i] == '\\' {
			next = i + escapeAt(r.in, i)
		}
		if r.overlappingPiece(i, next) {
			r.writeLabel()
		} else {
			r.out = append(r.out, r.in[i:next]...)
		}
		i = next
	}
}

func (r *pieceReplacer) writeLabel() {
	if !r.written {
		r.out, r.written = append(r.out, r.found[0].label...), true
	}
}

// writeBare writes a JSON number or literal. If a piece overlaps it, writeBare writes a string with the label
// instead.
func (r *pieceReplacer) writeBare(i, end int) {
	if !r.overlappingPiece(i, end) {
		r.out = append(r.out, r.in[i:end]...)
		return
	}
	r.out = append(r.out, '"')
	r.writeLabel()
	r.out = append(r.out, '"')
}
