// Package secrets removes registered values from texts, so that no credential of a server appears in the audit log, a
// log file, an error or a result, however it is encoded.
//
// It finds a value unencoded, and through the escapes of JSON and other string literals, percent and HTML escapes. It
// finds it in Base64 at any offset, in hexadecimal and as decimal, octal, binary and U+ codes, in UTF-16 and UTF-32,
// in tag characters, in wide, styled and circled letters, and in another letter case. The characters may be separated
// by punctuation, blanks, invisible characters, combining marks, and HTML tags without attributes. Half of a long
// value is found, too.
//
// It does not find values that are reversed, compressed, encrypted or encoded in any other way. Except for escapes,
// it does not find encodings of encodings. It does not find pieces of less than half of a value.
package secrets

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// NamedSecret holds a value to remove from texts and the label that replaces it.
type NamedSecret struct {
	Label string // "github GITHUB_TOKEN"
	Value string
}

// Masker replaces registered secrets in texts by labels. The zero value and nil replace nothing. It is safe for
// concurrent use.
type Masker struct {
	mu     sync.Mutex
	labels map[string]string // by value
	table  atomic.Pointer[searchTable]
}

const (
	minValue  = 6       // bytes; shorter ones would match everywhere
	maxValue  = 8 << 10 // bytes; only the beginning of longer ones is used
	maxValues = 4096
	maxLabel  = 64
)

// Add registers secrets. The caller decides whether a value is a secret, for example with IsSecret or FromVariable.
// Add ignores values of fewer than minValue bytes, which would match ordinary text by chance, and all values after
// the first maxValues.
func (m *Masker) Add(all ...NamedSecret) {
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
			label = min(old, label) // whatever the order of calls
		}
		m.labels[v] = label
	}
	if len(m.labels) > before {
		m.table.Store(compileTable(m.labels))
	}
}

// DropValues removes values that are no longer secret, which makes room for others.
func (m *Masker) DropValues(values ...string) {
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

// plainLabel returns a label that needs no escapes in any format. It has at most maxLabel bytes.
func plainLabel(label string) string {
	label = strings.Map(func(r rune) rune {
		if r < 0x80 && isAlnum(byte(r)) || strings.ContainsRune(" _-.:", r) {
			return r
		}
		return '_'
	}, label)
	return strings.TrimSpace(label[:min(len(label), maxLabel)])
}

// Mask returns a copy of a text in which registered secrets are replaced by labels. JSON stays JSON of the same
// structure. If the text contains no secret, Mask returns text itself and allocates nothing. It never modifies text.
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

// MaskString works like Mask for a string.
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

// textPiece represents a part of a text that will be replaced by a label.
type textPiece struct {
	start, end int
	label      string
	value      int // length of what was found, which tells whose label counts
}

// mergePieces sorts the pieces of a text that are to be replaced, and merges those that overlap. A merged piece gets
// the label of the longest secret in it.
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
