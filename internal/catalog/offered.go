package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
)

// Offered returns a tool's definition as received, without flagged parts and without members that the pin does not
// cover, because a server could change those unnoticed. If fits reports that the definition is too long, a shorter
// one is returned. A nil fits accepts everything. Offered returns nil if the tool is withheld or no shorter
// definition fits.
func Offered(t *core.Tool, fits func(definition string) bool) json.RawMessage {
	if t.Withheld != "" {
		return nil
	}
	d := node{raw: pinnedMembers(t.Raw)}
	if len(t.Flags) > 0 {
		d.raw = withoutFlagged(t)
	}
	if fits == nil || fits(string(d.raw)) {
		return d.raw
	}
	d = parse(d.raw, maxDepth)
	for _, most := range []int{64, 16, 4} {
		if short := abridged(d, most); fits(string(short)) {
			return short
		}
	}
	last := abridged(parse(withoutProse(d), maxDepth), 4)
	if !fits(string(last)) {
		return nil
	}
	return last
}

// pinnedMembers returns a definition reduced to the members that its pin covers. Of repeated members the last one
// counts.
func pinnedMembers(definition json.RawMessage) json.RawMessage {
	d := parse(definition, maxDepth)
	return d.rewritten(func(i int) []byte {
		if key, _ := unquote(d.keys[i]); !slices.Contains(pinned(), key) || d.repeats(i, key) {
			return nil
		}
		return d.items[i].raw
	})
}

// repeats reports whether a later member of the object has the same key as member i.
func (n node) repeats(i int, key string) bool {
	return slices.ContainsFunc(n.keys[i+1:], func(later []byte) bool { text, _ := unquote(later); return text == key })
}

// withoutFlagged returns a flagged definition reduced to its cleaned parts. Members that were not checked are left
// out.
func withoutFlagged(t *core.Tool) json.RawMessage {
	d := parse(t.Raw, maxDepth)
	clean := map[string]any{"name": t.Name, "title": t.Title, "description": t.Description, "inputSchema": t.InputSchema, "outputSchema": t.OutputSchema, "annotations": t.Annotations}
	values := make([][]byte, len(d.items))
	for i := range d.items {
		value, ok := clean[string(inside(d.keys[i]))]
		if !ok {
			continue
		}
		if text, err := json.Marshal(value); err == nil && string(text) != "null" && string(text) != `""` {
			values[i] = text
		}
	}
	return d.with(values)
}

// withoutProse returns a definition whose schemas contain no prose.
func withoutProse(d node) []byte {
	return d.rewritten(func(i int) []byte {
		switch string(inside(d.keys[i])) {
		case "inputSchema", "outputSchema":
			return bare(d.items[i])
		}
		return d.items[i].raw
	})
}

// maxListed bounds the part of a description that lists enum values, in bytes.
const maxListed = 1000

// abridged returns a definition in which no enum has more than most values. The description of a longer enum lists
// its first values and how many more there are.
func abridged(n node, most int) []byte {
	switch n.kind() {
	case '[':
		return n.rewritten(func(i int) []byte { return abridged(n.items[i], most) })
	case '{':
	default:
		return n.raw
	}
	long := ""
	text := n.rewritten(func(i int) []byte {
		switch keyword := string(inside(n.keys[i])); {
		case keyword == "enum" && n.items[i].kind() == '[' && len(n.items[i].items) > most:
			long = firstValues(n.items[i].items, most)
			return nil
		case partOf(keyword) == partExample || keyword == "const":
			return n.items[i].raw
		}
		return abridged(n.items[i], most)
	})
	if long == "" {
		return text
	}
	said, _ := n.member("description")
	before, _ := unquote(said.raw)
	described := parse(text, maxDepth)
	text = described.rewritten(func(i int) []byte {
		if string(inside(described.keys[i])) == "description" {
			return nil
		}
		return described.items[i].raw
	})
	member := append([]byte(`"description":`), appendString(nil, strings.TrimSpace(before+" "+long))...)
	if len(text) > 2 {
		member = append(member, ',')
	}
	return append(append([]byte{'{'}, member...), text[1:]...)
}

// firstValues names the first values of an enum and how many more there are.
func firstValues(values []node, most int) string {
	var b strings.Builder
	b.WriteString("One of ")
	for i, v := range values {
		if i == most || b.Len()+len(v.raw) > maxListed {
			fmt.Fprintf(&b, "… and %d more.", len(values)-i)
			break
		}
		b.Write(v.raw)
		b.WriteString(", ")
	}
	return b.String()
}
