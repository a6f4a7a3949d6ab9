package bindings

import (
	"bytes"
	"encoding/json"
	"strings"
)

// docOf returns the documentation in a schema: its description or title, and a tag for each keyword that a type
// cannot express. The argument n is the type of the schema. If it is an array, a further tag holds the documentation
// of its items.
func docOf(v *jsonValue, n *typeNode) typeDoc {
	d := typeDoc{text: v.get("description").stringText()}
	if d.text == "" {
		d.text = v.get("title").stringText()
	}
	for i, keyword := range v.keys {
		if tag := tagOf(keyword, v.items[i]); tag != "" {
			d.tags = append(d.tags, tag)
		}
	}
	if n.shape == shapeArray {
		if each := n.items[0].doc; !each.isEmpty() {
			d.tags = append(d.tags, strings.TrimRight("@items "+strings.Join(append([]string{oneLine(each.text)}, each.tags...), " "), " "))
		}
	}
	return d
}

// tagOf returns a documentation tag such as "@minimum 1" for a schema keyword that the type cannot express, or "".
func tagOf(keyword string, v *jsonValue) string {
	switch keyword {
	case "default", "example":
		return "@" + keyword + " " + literalText(v)
	case "format", "pattern", "minimum", "maximum", "multipleOf", "minLength", "maxLength",
		"minItems", "maxItems", "minProperties", "maxProperties", "contentEncoding", "contentMediaType":
		return "@" + keyword + " " + showValue(v)
	case "exclusiveMinimum", "exclusiveMaximum", "uniqueItems", "deprecated", "readOnly", "writeOnly":
		switch {
		case v.isTrue():
			return "@" + keyword
		case v.isFalse():
			return ""
		}
		return "@" + keyword + " " + showValue(v)
	case "not", "if", "then", "else", "contains", "propertyNames", "dependentRequired", "dependentSchemas", "dependencies", "unevaluatedItems":
		return "@" + keyword + " " + showValue(v)
	case "patternProperties":
		if v.hasKind(jsonObject) && len(v.keys) > 0 && v.get(specialKeys) == nil {
			return "@" + keyword + " " + shortenText(oneLine(strings.Join(v.keys, " ")), maxShown)
		}
	case "examples":
		if v.hasKind(jsonArray) && len(v.items) > 0 {
			return "@example " + literalText(v.items[0])
		}
	}
	return ""
}

const maxShown = 200

// showValue returns a value on one line, at most 200 characters of it. Strings have no quotes.
func showValue(v *jsonValue) string {
	if v.hasKind(jsonString) {
		return shortenText(oneLine(v.text), maxShown)
	}
	return literalText(v)
}

// literalText returns a value as JSON on one line, at most 200 characters of it.
func literalText(v *jsonValue) string {
	if v.hasKind(jsonString) {
		return shortenText(quoteString(v.text), maxShown)
	}
	raw := v.raw
	const most = 64 << 10
	var b bytes.Buffer
	if len(raw) <= most && json.Compact(&b, []byte(raw)) == nil {
		raw = b.String()
	}
	if len(raw) > 4*maxShown {
		raw = strings.ToValidUTF8(raw[:4*maxShown], "")
	}
	return shortenText(oneLine(raw), maxShown)
}
