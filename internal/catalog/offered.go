package catalog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
)

// OfferedDefinition returns a tool's definition as received from its server, without suspicious parts and without
// members that the pin (hash) does not cover, because a server could change these unnoticed. If fits returns false
// for the definition, because it is too long, OfferedDefinition tries shorter forms. A nil fits accepts
// everything. It returns nil if the tool is withheld or no shorter form fits.
func OfferedDefinition(t *core.Tool, fits func(definition string) bool) json.RawMessage {
	if t.Withheld != "" {
		return nil
	}
	d := jsonNode{raw: pinnedMembers(t.Raw)}
	if len(t.Flags) > 0 {
		d.raw = withoutFlagged(t)
	}
	if fits == nil || fits(string(d.raw)) {
		return d.raw
	}
	d = parseJSON(d.raw, maxDepth)
	for _, most := range []int{64, 16, 4} {
		if short := abridgeEnums(d, most); fits(string(short)) {
			return short
		}
	}
	last := abridgeEnums(parseJSON(withoutProse(d), maxDepth), 4)
	if !fits(string(last)) {
		return nil
	}
	return last
}

// pinnedMembers returns a definition reduced to the members that its pin (hash) covers. If a member occurs more than
// once, the last one counts.
func pinnedMembers(definition json.RawMessage) json.RawMessage {
	d := parseJSON(definition, maxDepth)
	return d.rewriteItems(func(i int) []byte {
		if key, _ := unquoteJSON(d.keys[i]); !slices.Contains(pinnedMemberNames(), key) || d.isRepeated(i, key) {
			return nil
		}
		return d.items[i].raw
	})
}

// isRepeated reports whether a later member of the object has the same key as member i.
func (n jsonNode) isRepeated(i int, key string) bool {
	return slices.ContainsFunc(n.keys[i+1:], func(later []byte) bool { text, _ := unquoteJSON(later); return text == key })
}

// withoutFlagged returns the definition of a flagged tool, which contains suspicious text, reduced to its cleaned
// parts. Members that are not checked are left out.
func withoutFlagged(t *core.Tool) json.RawMessage {
	d := parseJSON(t.Raw, maxDepth)
	clean := map[string]any{
		"name": t.Name, "title": t.Title, "description": t.Description, "inputSchema": t.InputSchema,
		"outputSchema": t.OutputSchema, "annotations": t.Annotations,
	}
	values := make([][]byte, len(d.items))
	for i := range d.items {
		value, ok := clean[string(stringContents(d.keys[i]))]
		if !ok {
			continue
		}
		if text, err := json.Marshal(value); err == nil && string(text) != "null" && string(text) != `""` {
			values[i] = text
		}
	}
	return d.withValues(values)
}

// withoutProse returns a definition whose schemas have no descriptions.
func withoutProse(d jsonNode) []byte {
	return d.rewriteItems(func(i int) []byte {
		switch string(stringContents(d.keys[i])) {
		case "inputSchema", "outputSchema":
			return stripProse(d.items[i])
		}
		return d.items[i].raw
	})
}

// maxListed bounds the length, in bytes, of the list of values that replaces a long enum in a schema's description.
const maxListed = 1000

// abridgeEnums removes from a schema each enum that has more than most values. Instead, it adds to the description
// next to the enum the first values and how many more there are.
func abridgeEnums(n jsonNode, most int) []byte {
	switch n.firstByte() {
	case '[':
		return n.rewriteItems(func(i int) []byte { return abridgeEnums(n.items[i], most) })
	case '{':
	default:
		return n.raw
	}
	long := ""
	text := n.rewriteItems(func(i int) []byte {
		switch keyword := string(stringContents(n.keys[i])); {
		case keyword == "enum" && n.items[i].firstByte() == '[' && len(n.items[i].items) > most:
			long = firstValues(n.items[i].items, most)
			return nil
		case partOf(keyword) == partExample || keyword == "const":
			return n.items[i].raw
		}
		return abridgeEnums(n.items[i], most)
	})
	if long == "" {
		return text
	}
	said, _ := n.findMember("description")
	before, _ := unquoteJSON(said.raw)
	described := parseJSON(text, maxDepth)
	text = described.rewriteItems(func(i int) []byte {
		if string(stringContents(described.keys[i])) == "description" {
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

// firstValues returns a text with the first values of an enum and the number of remaining ones.
func firstValues(values []jsonNode, most int) string {
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
