package infer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"retort/internal/base/jsonscan"
)

// Bounds on an outline (the short form that OutlineDocument returns), and on the names in it.
const (
	maxOutlined    = 4 << 20 // bytes of a document; a larger one has no outline
	maxOutline     = 360     // bytes of an outline, which are about 120 tokens
	outlineName    = 30      // bytes of a name
	outlineWords   = 4       // words of a name
	maxCountedLeft = 100
)

// outlineDetails lists the levels of detail in which an outline is tried, most detailed first.
var outlineDetails = []struct {
	depth int // of objects in each other
	names int // of one object
}{{4, 24}, {3, 16}, {2, 16}, {2, 10}, {1, 24}, {1, 8}}

// OutlineDocument returns the names of a document's fields in short form, such as {data: {id, amount}[], has_more}. It
// shows objects and arrays but no scalar types, and never values. It omits keys that are long or are not plain
// identifiers, and shows only their number: {id, +2}. If one key of an object is personal, it omits all keys of the
// object. The result is empty if the document has no names. The function private means the same as in ObserveDocument.
func OutlineDocument(document []byte, private func(key string) bool) string {
	if len(document) > maxOutlined {
		return ""
	}
	w := documentWalker{
		text: jsonscan.Cursor{Text: document}, private: private, names: map[string]keyKind{}, counts: true,
	}
	root := newPlace()
	if !w.walkValue(root, 0) || !root.hasNames() {
		return ""
	}
	text := ""
	for _, d := range outlineDetails {
		if text = root.outline(d.depth, d.names); len(text) <= maxOutline {
			break
		}
	}
	return text
}

// isPlainName reports whether a name is a short identifier of few words, and so cannot be a sentence.
func isPlainName(name string) bool {
	words, last := 0, byte('_')
	for i := range len(name) {
		c := name[i]
		if c == '-' || c == '@' || c == '$' {
			return false
		}
		if isLetter(c) && (!isLetter(last) || isUpper(c) && !isUpper(last)) {
			words++
		}
		last = c
	}
	return len(name) <= outlineName && words <= outlineWords
}

func (p *valueCollector) countLeft(key []byte) {
	if len(p.omitted) >= maxCountedLeft {
		return
	}
	if p.omitted == nil {
		p.omitted = map[string]bool{}
	}
	p.omitted[string(key)] = true
}

func (p *valueCollector) hasNames() bool {
	if p == nil {
		return false
	}
	if len(p.fields) > 0 || p.items.hasNames() {
		return true
	}
	return p.others.hasNames()
}

// outline returns the outline of the values at one place. It is empty for scalars. It has at most the first most
// names of each object, and objects nested up to depth.
func (p *valueCollector) outline(depth, most int) string {
	switch {
	case p == nil:
		return ""
	case p.kinds&array != 0:
		return p.items.outlineItem(depth, most) + "[]"
	case p.kinds&object == 0:
		return ""
	case depth == 0:
		return "{…}"
	}
	names := slices.Sorted(maps.Keys(p.fields))
	if p.private {
		most = 0
	}
	left := len(p.omitted) + max(0, len(names)-most)
	var parts []string
	for _, name := range names[:min(len(names), most)] {
		if inside := p.fields[name].of.outline(depth-1, most); inside != "" {
			name += ": " + inside
		}
		parts = append(parts, name)
	}
	if left > 0 {
		parts = append(parts, fmt.Sprintf("+%d", left))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// outlineItem returns the outline of the items of an array.
func (p *valueCollector) outlineItem(depth, most int) string {
	if p == nil {
		return "any"
	}
	if inside := p.outline(depth, most); inside != "" {
		return inside
	}
	for _, w := range typeNames {
		if p.kinds == w.kind && w.kind != null {
			return w.name
		}
	}
	return "any"
}
