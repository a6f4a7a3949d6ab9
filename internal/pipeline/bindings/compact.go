package bindings

import (
	"strings"

	"retort/internal/core"
)

// Bounds on what compactDefinition can show. Other types are declared in full.
const (
	compactWidth = 6000 // bytes of a type
	compactDepth = 6    // of objects in each other
)

// compactDefinition returns a tool's call on one line with everything that its definition says:
//
//	crm.updateRecord({recordId: string, ifVersion?: number /* Version that the record must have @minimum 1 */}):
//	Promise<{version: number}> // Changes a record. The change cannot be undone. @irreversible
//
// ok is false if that is impossible, for example because a type refers to itself.
func compactDefinition(name string, t *core.Tool) (text string, ok bool) {
	types := buildTypes(t)
	input, ok := compactInput(types.input.node)
	if !ok {
		return "", false
	}
	result := "any"
	if types.output != nil {
		if result, ok = compactType(types.output.node); !ok {
			return "", false
		}
	}
	text = name + "(" + input + "): Promise<" + result + ">"
	about := oneLine(strings.Join(docLines(toolDoc(t)), " "))
	if about = signatureRemarks(t, types, about); about != "" {
		text += " // " + about
	}
	return text, true
}

func compactInput(n *typeNode) (string, bool) {
	if n.shape == shapeObject && len(n.fields) == 0 && n.index != nil && n.index.shape == shapeNever {
		return "", true
	}
	text, ok := compactType(n)
	if !strings.HasPrefix(text, "{") {
		text = "input: " + text
	}
	return text, ok
}

func compactType(n *typeNode) (string, bool) {
	w := typeShortener{dialect: scriptDialect{}, left: compactWidth, docs: true}
	text := w.shortNode(n, compactDepth)
	return text, !w.lossy && w.left >= 0
}

// fieldDoc returns the documentation of a field as a comment, unless it only repeats the field's name.
func (w *typeShortener) fieldDoc(f objectField) string {
	if !w.docs {
		return ""
	}
	d := f.node.doc
	if len(d.tags) == 0 && repeatsName(f.name, d.text) {
		return ""
	}
	text := oneLine(strings.Join(docLines(d), " "))
	if text == "" {
		return ""
	}
	return w.takeText(" " + noteComment(text))
}
