package secrets

import (
	"maps"
	"slices"
	"sync"
	"unicode"
	"unicode/utf8"

	"retort/internal/core"
)

// searchTable indexes the forms and spellings of all secrets for searching. It is immutable.
type searchTable struct {
	forms  []encodedForm
	loose  windowIndex // windows of forms in lower case
	exact  windowIndex // beginnings of spellings
	spelt  []valueSpelling
	retain int // of the longest form
}

// valueSpelling represents a spelling of a secret that is searched byte for byte.
type valueSpelling struct {
	text, label string
	alone       bool // it counts only where it is no part of a word
}

// windowPlace says where a window, which is a short sequence of bytes, occurs in the secrets to search for. The field
// of is the number of the form or spelling of a secret, and at is the offset in it.
type windowPlace struct{ of, at int }

// windowIndex maps windows, which are sequences of up to eight bytes, to the places in secrets where they occur. A
// bit filter tells quickly, without a map lookup, that most other windows occur in no secret.
type windowIndex struct {
	filter []uint64
	shift  uint
	places map[uint64][]windowPlace
}

// maxAlike bounds how many places are stored for one window, a sequence of a few bytes. Tokens with a common prefix
// have many equal windows. Such a token is still found by the windows that it has alone.
const maxAlike = 64

func (x *windowIndex) addWindow(w uint64, p windowPlace) {
	if x.places == nil {
		x.places = map[uint64][]windowPlace{}
	}
	if alike := x.places[w]; len(alike) < maxAlike {
		x.places[w] = append(alike, p)
	}
}

// buildFilter builds the filter with about sixteen bits per window.
func (x *windowIndex) buildFilter() {
	bits := uint(12)
	for 1<<bits < 16*len(x.places) && bits < 22 {
		bits++
	}
	x.filter, x.shift = make([]uint64, 1<<bits/64), 64-bits
	for w := range x.places {
		h := hashWindow(w) >> x.shift
		x.filter[h>>6] |= 1 << (h & 63)
	}
}

func hashWindow(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 }

func (x *windowIndex) mayContain(w uint64) bool {
	h := hashWindow(w) >> x.shift
	return x.filter[h>>6]>>(h&63)&1 != 0
}

// exactWindow is a bit mask that keeps only the last minValue bytes that were read of a text. No secret is shorter
// than minValue bytes. The spellings of secrets are therefore indexed by their first minValue bytes.
const exactWindow = 1<<(8*minValue) - 1

func windowOf(text string) (w uint64) {
	for i := range len(text) {
		w = w<<8 | uint64(text[i])
	}
	return w
}

// compileTable builds the search table for the secrets in labels, which maps the value of each secret to its label.
// The result does not depend on the order in which secrets were added.
func compileTable(labels map[string]string) *searchTable {
	t := &searchTable{}
	for _, value := range slices.Sorted(maps.Keys(labels)) {
		label := "[SECRET " + labels[value] + "]"
		for _, f := range formsOf(value, label) {
			t.retain = max(t.retain, len(f.text))
			t.forms = append(t.forms, f)
			for at := 0; at+indexWindow <= len(f.text); at += f.step {
				t.loose.addWindow(windowOf(lowerCase(f.text[at:at+indexWindow])), windowPlace{len(t.forms) - 1, at})
			}
		}
		all := spellingsOf(value)
		slices.Sort(all)
		for _, text := range slices.Compact(all) {
			t.exact.addWindow(windowOf(text[:minValue]), windowPlace{of: len(t.spelt)})
			t.spelt = append(t.spelt, valueSpelling{text, label, len(value) < indexWindow})
		}
	}
	t.loose.buildFilter()
	t.exact.buildFilter()
	return t
}

func lowerCase(s string) string {
	b := []byte(s)
	for i, c := range b {
		b[i] = folded[c]
	}
	return string(b)
}

// findPieces returns the parts of a text that contain secrets, in order and without overlaps.
func (t *searchTable) findPieces(text []byte) []textPiece {
	if len(text) < minValue {
		return nil
	}
	found := t.findSpellings(text, nil)
	s := scannerPool.Get().(*formScanner)
	found = s.findForms(t, text, found)
	scannerPool.Put(s)
	if len(found) == 0 {
		return nil
	}
	for i := range found {
		found[i] = expandPiece(text, found[i])
	}
	return mergePieces(found)
}

// findSpellings searches a text, byte for byte, for the spellings of secrets. It appends what it has found to the
// list found.
func (t *searchTable) findSpellings(text []byte, found []textPiece) []textPiece {
	var w uint64
	for i, c := range text {
		w = (w<<8 | uint64(c)) & exactWindow
		if !t.exact.mayContain(w) {
			continue
		}
		for _, p := range t.exact.places[w] {
			s := &t.spelt[p.of]
			start := i + 1 - minValue
			if start < 0 || len(text)-start < len(s.text) || string(text[start:start+len(s.text)]) != s.text {
				continue
			}
			end := start + len(s.text)
			if s.alone && (start > 0 && isAlnum(text[start-1]) || end < len(text) && isAlnum(text[end])) {
				continue
			}
			found = append(found, textPiece{start, end, s.label, len(s.text)})
		}
	}
	return found
}

// expandPiece extends a piece so that its ends do not split a UTF-8 character or a JSON escape.
func expandPiece(text []byte, p textPiece) textPiece {
	for p.start > 0 && !utf8.RuneStart(text[p.start]) && text[p.start-1] >= utf8.RuneSelf {
		p.start--
	}
	for p.end < len(text) && !utf8.RuneStart(text[p.end]) {
		p.end++
	}
	for i := max(0, p.start-longestEscape); i < p.start; i++ {
		if text[i] != '\\' {
			continue
		}
		if u := escapeAt(text, i); i+u > p.start {
			p.start = i
			break
		} else if u > 1 {
			i += u - 1
		}
	}
	return p
}

const longestEscape = 5

// escapeAt returns the length of the JSON escape at i.
func escapeAt(text []byte, i int) int {
	switch {
	case i+1 >= len(text):
		return 1
	case text[i+1] != 'u':
		return 2
	}
	if _, ok := parseHex(text, i+2, 4); ok {
		return 6
	}
	return 2
}

// formScanner holds a part of a text in decoded form: its letters and digits, and for each of their bytes the offset
// in the original text.
type formScanner struct {
	text  []byte // what counts
	start []uint32
}

var scannerPool = sync.Pool{New: func() any { return &formScanner{} }}

const batchBytes = 32 << 10

// findForms appends the places where an encoded form of a secret occurs to the list found. It reads the text in
// batches. Each batch begins with the end of the previous one, so that forms across the boundary are found.
func (s *formScanner) findForms(t *searchTable, text []byte, found []textPiece) []textPiece {
	room := batchBytes + 2*t.retain + utf8.UTFMax
	if cap(s.text) < room {
		s.text, s.start = make([]byte, 0, room), make([]uint32, 0, room)
	}
	s.text, s.start = s.text[:0], s.start[:0]
	next, w, at := 0, uint64(0), 0 // at: up to where windows have been looked up
	done := -1
	for {
		next = s.readSignificant(text, next, room-utf8.UTFMax)
		last := next == len(text)
		to := len(s.text)
		if !last {
			to -= t.retain
		}
		for ; at < to; at++ {
			w = w<<8 | uint64(folded[s.text[at]])
			if at <= done || !t.loose.mayContain(w) {
				continue
			}
			if places, ok := t.loose.places[w]; ok && at+1 >= indexWindow {
				found, done = s.verifyPlaces(t, text, places, at+1-indexWindow, found, done)
			}
		}
		if last {
			return found
		}
		drop := at - t.retain
		s.text = s.text[:copy(s.text, s.text[drop:])]
		s.start = s.start[:copy(s.start, s.start[drop:])]
		at, done = at-drop, done-drop
	}
}

// readSignificant decodes the text from offset i and appends its letters and digits to the scanner's own text. It
// stops when that text has the given number of bytes, and returns the offset at which it stopped.
func (s *formScanner) readSignificant(text []byte, i, room int) int {
	out, start := s.text, s.start
	for i < len(text) && len(out) < room {
		c := text[i]
		if !begins[c] {
			if kept[c] {
				out, start = append(out, c), append(start, uint32(i))
			}
			i++
			continue
		}
		u := unitAt(text, i)
		for _, c := range u.text[:u.n] {
			out, start = append(out, c), append(start, uint32(i))
		}
		i = u.end
	}
	s.text, s.start = out, start
	return i
}

// verifyPlaces checks whether the text around a window (a short sequence of bytes) contains a secret. It compares
// this text with each encoded form in which the window occurs, and appends the matches to the list found. The result
// done is the index of the last byte that is part of a match.
func (s *formScanner) verifyPlaces(
	t *searchTable, text []byte, places []windowPlace, at int, found []textPiece, done int,
) ([]textPiece, int) {
	for _, p := range places {
		f := &t.forms[p.of]
		from, to := s.pieceBounds(text, f, at, p.at)
		if n := to - from; n < f.least || n < len(f.text) && f.plain && !isMixed(f.text[p.at+from-at:p.at+to-at]) {
			continue
		}
		e := textPiece{int(s.start[from]), s.unitEnd(text, to-1), f.label, to - from}
		if f.coded {
			e = includeBase64Edges(text, e)
		}
		found = append(found, e)
		done = max(done, to-1)
	}
	return found, done
}

// pieceBounds returns the bounds of a match in the scanner's text. At first, only a window of a few bytes is known to
// match the form f. pieceBounds extends the match in both directions as far as the text and the form agree.
func (s *formScanner) pieceBounds(text []byte, f *encodedForm, at, of int) (from, to int) {
	same := func(i, j int) bool {
		a, b := s.text[i], f.text[j]
		return a == b || !f.cased && folded[a] == folded[b]
	}
	for from, to = at, at; to < len(s.text) && to-at+of < len(f.text) && same(to, to-at+of) &&
		(to == from || s.isNear(text, to, f.maxSeparators(to-at+of))); to++ {
	}
	if to-at < indexWindow {
		return at, at
	}
	for from > 0 && from-at+of > 0 && same(from-1, from-at+of-1) && s.isNear(text, from, f.maxSeparators(from-at+of)) {
		from--
	}
	return from, to
}

// maxUnseen bounds the distance, in bytes, between two neighbouring characters of a secret. Up to this distance, the
// text between them is examined for invisible characters, which do not count as separators.
const maxUnseen = 4 << 10

// isNear reports whether at most gap bytes lie between two neighbouring letters or digits: the one at index i and the
// one before it. Invisible characters, tags and escapes between them do not count.
func (s *formScanner) isNear(text []byte, i, gap int) bool {
	before, now := s.start[i-1], s.start[i]
	if before == now || now-before == 1 {
		return true
	}
	end := s.unitEnd(text, i-1)
	between := int(now) - end
	if between <= gap || between > maxUnseen {
		return between <= gap
	}
	for i := end; i < int(now); {
		u := unitAt(text, i)
		r, _ := utf8.DecodeRune(text[i:])
		if r < utf8.RuneSelf && u.end-i > 1 || core.IsInvisible(r) || r >= utf8.RuneSelf && unicode.In(r, unicode.Mn, unicode.Me) {
			between -= u.end - i
		}
		i = u.end
	}
	return between <= gap
}

// unitEnd returns the offset in the text at which a character or escape ends, namely the one from which byte i of the
// scanner was decoded.
func (s *formScanner) unitEnd(text []byte, i int) int { return unitAt(text, int(s.start[i])).end }

// includeBase64Edges extends a piece by the Base64 characters next to it, which encode bytes of the secret together
// with neighbouring bytes.
func includeBase64Edges(text []byte, p textPiece) textPiece {
	is := func(c byte) bool { return isAlnum(c) || c == '+' || c == '/' || c == '-' || c == '_' || c == '=' }
	if p.start > 0 && is(text[p.start-1]) {
		p.start--
	}
	for n := 0; n < 3 && p.end < len(text) && is(text[p.end]); n++ {
		p.end++
	}
	return p
}
