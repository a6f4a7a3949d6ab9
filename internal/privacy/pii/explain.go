package pii

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// FoundReason says why a value counts as personal data.
type FoundReason string

// The reasons for which values count as personal data.
const (
	FoundByWords    FoundReason = "words"    // Options.Words lists the value
	FoundByPattern  FoundReason = "pattern"  // the value matches the pattern of a custom type in Options.Types
	FoundByForm     FoundReason = "form"     // the value has a certain format or checksum, or contains names
	FoundByKey      FoundReason = "key"      // the key of the JSON member says so
	FoundByContext  FoundReason = "context"  // words in the same line say so
	FoundInDocument FoundReason = "document" // the rest of the document says so, for example the heading of a column
)

// ExplainedValue represents a personal value in a document, with the reason why it counts as personal data.
type ExplainedValue struct {
	Start, End int // byte offsets in the document
	Type       Type
	Text       string // the value without escapes, as a person would write it
	Reason     FoundReason
	Evidence   string // the key, the words or the pattern that the reason refers to; may be empty
}

// Explain returns the personal data that ReplaceValues finds in a document with these options, in order. For each
// value, it also returns the reason why the value was found. To learn the reasons, Explain searches parts of the
// document again. If a value occurs several times with the same type, all occurrences get the reason of the first one.
func Explain(o Options, document []byte) []ExplainedValue {
	x := &explainer{Options: o, scanner: New(o), document: document, known: map[string]ExplainedValue{}}
	found := x.findValues()
	x.keys = findMemberKeys(document)
	for i := range found {
		x.addReason(&found[i])
	}
	return found
}

// explainer finds the reasons why values in one document count as personal data.
type explainer struct {
	Options
	scanner  *Scanner
	document []byte
	keys     []memberKeys
	known    map[string]ExplainedValue // first occurrence of each value, by type and text
}

// collectingMinter implements TokenMinter. It replaces each value by a text that contains the index of the value in
// found.
type collectingMinter struct {
	prefix string
	found  []FoundValue
}

func (m *collectingMinter) Mint(v FoundValue) (string, bool) {
	m.found = append(m.found, v)
	return fmt.Sprintf("%s%d]", m.prefix, len(m.found)-1), true
}

func (m *collectingMinter) Foreign(string) (string, bool) { return "", false }

// findValues returns the values in the document without reasons. It computes their offsets from the offsets of the
// tokens in the result of ReplaceValues. This is possible because all bytes between the tokens are unchanged.
func (x *explainer) findValues() []ExplainedValue {
	m := &collectingMinter{prefix: "[V"}
	for bytes.Contains(x.document, []byte(m.prefix)) {
		m.prefix += "V"
	}
	replaced := x.scanner.ReplaceValues(x.document, nil, m)
	var found []ExplainedValue
	at, offset := 0, 0 // offsets in replaced and in document
	for {
		i := bytes.Index(replaced[at:], []byte(m.prefix))
		if i < 0 {
			return found
		}
		var number, n int
		n, _ = fmt.Sscanf(string(replaced[at+i+len(m.prefix):min(len(replaced), at+i+len(m.prefix)+20)]), "%d]", &number)
		if n != 1 || number >= len(m.found) {
			return found
		}
		v, token := m.found[number], fmt.Sprintf("%s%d]", m.prefix, number)
		start := offset + i
		at += i + len(token)
		if v.Number { // the token is a string, so quotes are around it
			start--
			at++
		}
		offset = start + len(v.Raw)
		found = append(found, ExplainedValue{Start: start, End: offset, Type: v.Type, Text: v.Text})
	}
}

// addReason sets the reason and the evidence of a value. It copies both from the first occurrence of the same value.
func (x *explainer) addReason(v *ExplainedValue) {
	id := string(v.Type) + "\x00" + v.Text
	if first, ok := x.known[id]; ok {
		v.Reason, v.Evidence = first.Reason, first.Evidence
		return
	}
	v.Reason, v.Evidence = x.findReason(v)
	x.known[id] = *v
}

// findReason returns the reason why a value counts as personal data, and the evidence for it.
func (x *explainer) findReason(v *ExplainedValue) (FoundReason, string) {
	for _, word := range x.Words[v.Type] {
		if strings.EqualFold(word, v.Text) {
			return FoundByWords, word
		}
	}
	if pattern := x.Types[v.Type]; pattern != nil && pattern.MatchString(v.Text) {
		return FoundByPattern, pattern.String()
	}
	if x.isFoundIn([]byte(v.Text), 0, len(v.Text), v.Type) {
		return FoundByForm, ""
	}
	for _, key := range x.keysOf(v) {
		if x.scanner.OfKey(key) == v.Type {
			return FoundByKey, key
		}
	}
	if words, ok := x.findContext(v); ok {
		return FoundByContext, words
	}
	return FoundInDocument, ""
}

// isFoundIn reports whether the scanner finds a value of the type t in a text that covers the bytes from start to end.
func (x *explainer) isFoundIn(text []byte, start, end int, t Type) bool {
	return slices.ContainsFunc(x.scanner.FindText(nil, text), func(s TypedSpan) bool {
		return s.Type == t && s.Start <= start && s.End >= end
	})
}

const (
	// maxEvidenceWords bounds how many words before and after a value are tried as the reason for it.
	maxEvidenceWords = 6
	// maxEvidence bounds the text, in bytes, that is searched before and after a value for the reason. Without it, a
	// long line would take quadratic time.
	maxEvidence = 2048
)

// findContext returns the words next to a value that the scanner needs to recognise it. These are words before the
// value or words after it, as few as possible. It looks only in the line of the value and, in a JSON document, only in
// the string of the value. ok is false if the scanner does not find the value there. words is empty if the scanner
// needs words on both sides.
func (x *explainer) findContext(v *ExplainedValue) (words string, ok bool) {
	borders := "\n"
	if len(x.keys) > 0 {
		borders = "\n\""
	}
	first, last := max(0, v.Start-maxEvidence), min(len(x.document), v.End+maxEvidence)
	first += bytes.LastIndexAny(x.document[first:v.Start], borders) + 1
	if i := bytes.IndexAny(x.document[v.End:last], borders); i >= 0 {
		last = v.End + i
	}
	starts, ends := wordsBefore(x.document[first:v.Start]), wordsAfter(x.document[v.End:last])
	for n := 1; n <= max(len(starts), len(ends)); n++ {
		if n <= len(starts) && x.isEnough(v, first+starts[n-1], v.End) {
			return cleanEvidence(x.document[first+starts[n-1] : v.Start]), true
		}
		if n <= len(ends) && x.isEnough(v, v.Start, v.End+ends[n-1]) {
			return cleanEvidence(x.document[v.End : v.End+ends[n-1]]), true
		}
	}
	return "", x.isEnough(v, first, last)
}

// isEnough reports whether the scanner finds the value if it gets only the bytes from from to to.
func (x *explainer) isEnough(v *ExplainedValue, from, to int) bool {
	return x.isFoundIn(x.document[from:to], v.Start-from, v.End-from, v.Type)
}

// wordsBefore returns the offsets in a text at which its last word, its last two words and so on begin.
func wordsBefore(text []byte) (starts []int) {
	for end := len(text); end > 0 && len(starts) < maxEvidenceWords; {
		trimmed := bytes.TrimRight(text[:end], " \t")
		end = bytes.LastIndexAny(trimmed, " \t") + 1
		if len(trimmed) > 0 {
			starts = append(starts, end)
		}
	}
	return starts
}

// wordsAfter returns the offsets in a text at which its first word, its first two words and so on end.
func wordsAfter(text []byte) (ends []int) {
	for start := 0; start < len(text) && len(ends) < maxEvidenceWords; {
		rest := bytes.TrimLeft(text[start:], " \t")
		start = len(text) - len(rest)
		if i := bytes.IndexAny(rest, " \t"); i >= 0 {
			start += i
		} else {
			start = len(text)
		}
		if len(rest) > 0 {
			ends = append(ends, start)
		}
	}
	return ends
}

// cleanEvidence returns a text with one space between its words.
func cleanEvidence(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }

// memberKeys holds the keys of the objects that contain a scalar of a JSON document, the innermost first. end is the
// offset at which the scalar ends.
type memberKeys struct {
	end  int
	keys []string
}

// keysOf returns the keys of the objects that contain a value, the innermost first.
func (x *explainer) keysOf(v *ExplainedValue) []string {
	i, _ := slices.BinarySearchFunc(x.keys, v.End, func(m memberKeys, end int) int { return m.end - end })
	if i == len(x.keys) {
		return nil
	}
	return x.keys[i].keys
}

// maxKeyDepth bounds the depth of JSON whose keys are read. findMemberKeys stops at a deeper value, so later values are
// explained without their keys.
const maxKeyDepth = 64

// findMemberKeys returns the keys of all scalars in a document, ordered by place. It stops at the first syntax error,
// so it returns nothing for a document that is not JSON.
func findMemberKeys(document []byte) (all []memberKeys) {
	type level struct {
		object, atKey bool
		key           string
	}
	var levels []level
	dec := json.NewDecoder(bytes.NewReader(document))
	for {
		token, err := dec.Token()
		if err != nil || len(levels) > maxKeyDepth {
			return all
		}
		if d, ok := token.(json.Delim); ok && (d == '{' || d == '[') {
			levels = append(levels, level{object: d == '{', atKey: d == '{'})
			continue
		} else if ok {
			levels = levels[:len(levels)-1]
		} else if n := len(levels); n > 0 && levels[n-1].atKey {
			levels[n-1].key, levels[n-1].atKey = token.(string), false
			continue
		} else {
			var keys []string
			for _, l := range slices.Backward(levels) {
				if l.object {
					keys = append(keys, l.key)
				}
			}
			all = append(all, memberKeys{int(dec.InputOffset()), keys})
		}
		if n := len(levels); n > 0 {
			levels[n-1].atKey = levels[n-1].object
		}
	}
}
