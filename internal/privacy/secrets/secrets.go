// Package secrets takes registered values out of texts: a credential of a server is to
// stand in no record, log, error or answer, however it is spelled.
//
// A value is found as it is, and through escapes of JSON and other string literals, percent and HTML
// escapes, in Base64 wherever it begins, in hexadecimal and as decimal, octal, binary and U+ codes, in UTF-16 and UTF-32, in tag characters, in wide,
// styled and circled letters, in another case, and with separators between its characters: signs,
// blanks, characters that are not seen, marks of letters, and tags of HTML without attributes. Of
// long values half is found, too. What is not found:
// values that are turned round, compressed, encrypted or spelled by any other rule, encodings
// of encodings but for escapes, and pieces of less than half.
package secrets

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Secret represents a value that is in no text, and the words that stand in its place.
type Secret struct {
	Label string // "github GITHUB_TOKEN"
	Value string
}

// Masker takes values out of texts. The zero value and nil know none; it is safe for
// concurrent use.
type Masker struct {
	mu     sync.Mutex
	labels map[string]string // by value
	table  atomic.Pointer[searchTable]
}

const (
	minValue  = 6       // bytes; shorter ones stand everywhere
	maxValue  = 8 << 10 // bytes; of longer ones the beginning counts
	maxValues = 4096
	maxLabel  = 64
)

// Add registers values, from now on. Whether a value is worth it is the caller's to say:
// see Worth, and Variable and its like; those that are too short to be told from others, and what comes
// when there are thousands, are passed over.
func (m *Masker) Add(all ...Secret) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.labels == nil {
		m.labels = map[string]string{}
	}
	before := len(m.labels)
	for _, s := range all {
		v := strings.TrimSpace(s.Value)
		if v = v[:min(len(v), maxValue)]; len(v) < minValue || len(m.labels) >= maxValues {
			continue
		}
		label := plainLabel(s.Label)
		if old, known := m.labels[v]; known {
			label = min(old, label) // whoever comes first
		}
		m.labels[v] = label
	}
	if len(m.labels) > before {
		m.table.Store(compileTable(m.labels))
	}
}

// Drop forgets values that are worth nothing any more, and so makes room for others.
func (m *Masker) Drop(values ...string) {
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	before := len(m.labels)
	for _, v := range values {
		v = strings.TrimSpace(v)
		delete(m.labels, v[:min(len(v), maxValue)])
	}
	if len(m.labels) < before {
		m.table.Store(compileTable(m.labels))
	}
}

// plainLabel returns what needs no escape in any format.
func plainLabel(label string) string {
	label = strings.Map(func(r rune) rune {
		if r < 0x80 && isAlnum(byte(r)) || strings.ContainsRune(" _-.:", r) {
			return r
		}
		return '_'
	}, label)
	return strings.TrimSpace(label[:min(len(label), maxLabel)])
}

// Mask returns a text without registered values. JSON stays JSON of the same structure. If there are none, it is text
// itself, and nothing was allocated; else text is left as it was.
func (m *Masker) Mask(text []byte) []byte {
	t := m.currentTable()
	if t == nil {
		return text
	}
	found := t.findPieces(text)
	if len(found) == 0 {
		return text
	}
	return replacePieces(text, found)
}

// MaskString returns Mask for a string.
func (m *Masker) MaskString(text string) string {
	t := m.currentTable()
	if t == nil {
		return text
	}
	raw := []byte(text)
	found := t.findPieces(raw)
	if len(found) == 0 {
		return text
	}
	return string(replacePieces(raw, found))
}

func (m *Masker) currentTable() *searchTable {
	if m == nil {
		return nil
	}
	return m.table.Load()
}

// textPiece represents a part of a text that a label takes the place of.
type textPiece struct {
	start, end int
	label      string
	value      int // length of what was found, which tells whose label counts
}

// mergePieces returns pieces in order, without overlaps.
func mergePieces(found []textPiece) []textPiece {
	slices.SortFunc(found, func(a, b textPiece) int {
		return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(b.end, a.end), strings.Compare(a.label, b.label))
	})
	out := found[:0]
	for _, p := range found {
		if n := len(out); n > 0 && p.start < out[n-1].end {
			last := &out[n-1]
			last.end = max(last.end, p.end)
			if p.value > last.value || p.value == last.value && p.label < last.label {
				last.label, last.value = p.label, p.value
			}
			continue
		}
		out = append(out, p)
	}
	return out
}
