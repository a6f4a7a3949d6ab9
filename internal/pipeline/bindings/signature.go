package bindings

import (
	"slices"
	"strings"
	"unicode"

	"retort/internal/core"
)

// Bounds on a one-line signature, in bytes. The full definition contains what does not fit.
const (
	maxInput  = 420 // of the input's properties
	maxResult = 160
	maxType   = 150 // of one property
	maxHint   = 42  // of a property's description, in characters
)

// renderSignature returns a tool's call on one line:
//
//	github.getIssue({owner: string, repo: string, number: number /* of the issue */}): Promise<Issue> // Gets an issue.
func renderSignature(name string, t *core.Tool) string {
	types := buildTypes(t)
	c := compactPrinter{dialect: scriptDialect{}}
	var b strings.Builder
	b.WriteString(name)
	b.WriteString("(")
	b.WriteString(c.formatInput(types.input.node))
	b.WriteString("): Promise<")
	if types.output == nil {
		b.WriteString("any")
	} else {
		b.WriteString(c.shortType(types.output.node, maxResult))
	}
	b.WriteString(">")
	if s := signatureRemarks(t, types, strings.TrimSpace(SummaryLine(t)+" "+asksTag(t))); s != "" {
		b.WriteString(" // ")
		b.WriteString(s)
	}
	return b.String()
}

// pySignature returns a tool's call on one line of Python:
//
//	github.get_issue(owner: str, repo: str, number: int) -> Issue  # Gets an issue. number: of the issue
func pySignature(name string, t *core.Tool) string {
	types := buildTypes(t)
	c := compactPrinter{dialect: pythonDialect{}}
	list, said := c.formatKeywords(types.input.node)
	result := "Any"
	if types.output != nil {
		result = c.shortType(types.output.node, maxResult)
	}
	text := name + "(" + list + ") -> " + result
	if s := signatureRemarks(t, types, strings.TrimSpace(strings.TrimSpace(SummaryLine(t)+" "+said)+" "+asksTag(t))); s != "" {
		text += "  # " + s
	}
	return text
}

// signatureRemarks returns the comment of a signature. It consists of remarks, that the tool pages and that its result
// types are inferred, and of the tool's summary.
func signatureRemarks(t *core.Tool, types *toolTypes, summary string) string {
	text := types.learned + summary
	if types.learned != "" && summary != "" {
		text = "(" + types.learned + ") " + summary
	}
	paged := pagedComment(t, types)
	if paged != "" && text != "" {
		return paged + "; " + text
	}
	return paged + text
}

// compactPrinter writes types in short form for models. It writes the content of a named type instead of its name, if
// that fits.
type compactPrinter struct {
	dialect typeDialect
}

// typeDialect writes types on one line in the syntax of one language.
type typeDialect interface {
	formatAtom(n *typeNode) string
	formatArray(element string, compound bool) string
	formatTuple(elements []string, rest string) string
	formatObject(fields []string) string
	formatField(f objectField, typ string) string
	formatMore(other string) string // an object with values of one type
	formatUnion(items []string) string
	formatIntersection(items []string) string
	formatOpaque(n *typeNode) string // an object that there is no room for
}

// formatInput returns the parameter list of a call that takes one object. It adds the beginnings of the fields'
// descriptions as comments, as far as there is room.
func (c compactPrinter) formatInput(n *typeNode) string {
	if n.shape != shapeObject {
		return "input: " + c.shortType(n, maxInput)
	}
	if len(n.fields) == 0 && n.index != nil && n.index.shape == shapeNever {
		return ""
	}
	fields := requiredFirst(n.fields, maxInput)
	parts, left := c.formatFields(fields, c.dialect.formatField)
	for i, h := range fieldHints(fields[:len(parts)], left) {
		if h != "" {
			parts[i] += " " + noteComment(h)
		}
	}
	if len(parts) < len(fields) {
		parts = append(parts, "…")
	} else if n.index != nil {
		parts = append(parts, "[key: string]: "+c.shortType(n.index, 30))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// formatFields writes fields with their types as long as there is room on the line. It then writes optional fields by
// name only, and stops when far more was written than there is room for. It also returns the remaining room in bytes,
// which is negative if the fields were too long.
func (c compactPrinter) formatFields(fields []objectField, write func(f objectField, typ string) string) (parts []string, left int) {
	left = maxInput
	for _, f := range fields {
		part := write(f, c.shortType(f.node, min(maxType, max(left, 30))))
		if left < len(part) && !f.required {
			part = write(f, "")
		}
		if left -= len(part); left < -3*maxInput {
			break
		}
		parts = append(parts, part)
	}
	return parts, left
}

// fieldHints returns a hint for each field, in the same order: the beginning of the field's description, or "" if
// there is no room for it. Required fields get their hints first.
func fieldHints(fields []objectField, room int) []string {
	out := make([]string, len(fields))
	for _, required := range []bool{true, false} {
		for i, f := range fields {
			if h := fieldHint(f); f.required == required && len(h) <= room {
				out[i] = h
				room -= len(h)
			}
		}
	}
	return out
}

// formatKeywords returns the parameters of a call with keyword arguments.
func (c compactPrinter) formatKeywords(n *typeNode) (list, remarks string) {
	params := keywordParams(n)
	if params == nil {
		return "**arguments", ""
	}
	fields := make([]objectField, len(params))
	for i, q := range params {
		fields[i] = objectField{q.ident, q.required, q.node}
	}
	parts, left := c.formatFields(fields, pyParameter)
	var said []string
	for i, h := range fieldHints(fields[:len(parts)], left) {
		if h != "" {
			said = append(said, params[i].ident+": "+h)
		}
	}
	if len(parts) < len(fields) {
		parts = append(parts, "…")
	} else if index := flattenObjects(n).index; index != nil && index.shape != shapeNever {
		parts = append(parts, "**"+moreParam+": "+c.shortType(index, 30))
	}
	return strings.Join(parts, ", "), strings.Join(said, "; ")
}

// pyParameter returns one parameter, without a type if typ is empty.
func pyParameter(f objectField, typ string) string {
	switch {
	case typ == "":
		return f.name + "=..."
	case f.required:
		return f.name + ": " + typ
	}
	return f.name + ": " + typ + " = ..."
}

// requiredFirst returns fields unchanged if all will probably fit. Otherwise it puts required fields first, so that
// they are not cut off.
func requiredFirst(fields []objectField, room int) []objectField {
	if len(fields)*24 < room {
		return fields
	}
	out := make([]objectField, 0, len(fields))
	for _, required := range []bool{true, false} {
		for _, f := range fields {
			if f.required == required {
				out = append(out, f)
			}
		}
	}
	return out
}

// typeDetails lists the levels of detail in which shortType tries to write a type, most detailed first.
var typeDetails = []struct {
	depth int // of objects within objects
	names int // of an object that is shown by its names only; 0: with types
}{{3, 0}, {2, 0}, {2, 16}, {2, 8}, {1, 0}, {1, 16}, {1, 6}, {0, 0}}

// shortType returns a type on one line of about width bytes.
func (c compactPrinter) shortType(n *typeNode, width int) string {
	text := ""
	for _, a := range typeDetails {
		w := typeShortener{dialect: c.dialect, left: width, names: a.names}
		if text = w.shortNode(n, a.depth); w.left >= 0 {
			return text
		}
	}
	if holdsObjects(n) {
		return c.dialect.formatOpaque(n)
	}
	return text
}

// typeShortener writes one type in short form. left is the remaining width in bytes; it is negative if the type was
// too long.
type typeShortener struct {
	dialect typeDialect
	left    int
	names   int
	docs    bool // fields are followed by their documentation
	lossy   bool // something was left out
}

func (w *typeShortener) takeText(s string) string {
	w.left -= len(s)
	return s
}

const refDepth = 8 // of references to references

func (w *typeShortener) shortNode(n *typeNode, depth int) string {
	for range refDepth {
		if n.shape != shapeRef {
			break
		}
		n = n.to.node
	}
	w.left-- // whatever it is, so that endless types end
	w.lossy = w.lossy || n.note != ""
	if n.shape == shapeRef || w.left < 0 {
		w.lossy = true
		return w.takeText("any")
	}
	switch n.shape {
	case shapeObject:
		return w.shortObject(n, depth)
	case shapeArray:
		element := w.shortNode(n.items[0], depth)
		return w.dialect.formatArray(element, n.items[0].shape == shapeUnion || n.items[0].shape == shapeBoth)
	case shapeTuple:
		return w.shortTuple(n, depth)
	case shapeUnion:
		return w.shortUnion(n, depth)
	case shapeBoth:
		parts := w.shortAll(n.items, depth)
		for i, part := range parts {
			if n.items[i].shape == shapeUnion {
				parts[i] = "(" + part + ")"
			}
		}
		return w.dialect.formatIntersection(parts)
	}
	return w.takeText(w.dialect.formatAtom(n))
}

func (w *typeShortener) shortAll(items []*typeNode, depth int) []string {
	var out []string
	for _, item := range items {
		if w.left < 0 {
			break
		}
		out = append(out, w.shortNode(item, depth))
	}
	return out
}

// removeDuplicates removes duplicates and keeps the first of each.
func removeDuplicates(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// shortUnion writes a union. If little detail is wanted, it shows only the first literals of a long enum.
func (w *typeShortener) shortUnion(n *typeNode, depth int) string {
	items := n.items
	const shown = 6
	if depth == 0 && len(items) > shown && items[0].shape == shapeLiteral {
		return w.dialect.formatUnion(append(w.shortAll(items[:shown], depth), "…"))
	}
	return w.dialect.formatUnion(removeDuplicates(w.shortAll(items, depth)))
}

func (w *typeShortener) shortTuple(n *typeNode, depth int) string {
	rest := ""
	if n.rest != nil {
		rest = w.shortNode(n.rest, depth)
	}
	return w.dialect.formatTuple(w.shortAll(n.items, depth), rest)
}

func (w *typeShortener) shortObject(n *typeNode, depth int) string {
	if depth == 0 || n.isAnyObject() || len(n.fields) == 0 && n.index == nil {
		w.lossy = w.lossy || len(n.fields) > 0 || n.index != nil && !n.isAnyObject()
		return w.takeText(w.dialect.formatOpaque(n))
	}
	if len(n.fields) == 0 {
		return w.dialect.formatMore(w.shortNode(n.index, depth-1))
	}
	var fields []string
	for i, f := range n.fields {
		if w.left < 0 {
			break
		}
		if w.names > 0 && i == w.names {
			fields = append(fields, "…")
			return w.dialect.formatObject(fields)
		}
		w.takeText(f.name + ", ")
		if w.names > 0 && (depth == 1 || !holdsObjects(f.node)) {
			fields = append(fields, bareName(f.name))
		} else {
			fields = append(fields, w.dialect.formatField(f, w.shortNode(f.node, depth-1))+w.fieldDoc(f))
		}
	}
	switch {
	case n.index == nil:
	case w.docs && n.index.shape != shapeNever:
		fields = append(fields, "[key: string]: "+w.shortNode(n.index, depth-1))
	default:
		w.lossy = w.lossy || n.index.shape != shapeNever
		fields = append(fields, "…")
	}
	return w.dialect.formatObject(fields)
}

func bareName(name string) string {
	if isIdentifier(name) {
		return name
	}
	return quoteString(name)
}

// holdsObjects reports whether a value of type n may contain objects with known properties.
func holdsObjects(n *typeNode) bool {
	switch n.shape {
	case shapeArray, shapeUnion, shapeBoth:
		return slices.ContainsFunc(n.items, holdsObjects)
	case shapeRef:
		return n.to.node.shape == shapeObject && len(n.to.node.fields) > 0
	}
	return n.shape == shapeObject && len(n.fields) > 0
}

// fieldHint returns the beginning of a property's description, or "" if the description only repeats the name.
func fieldHint(f objectField) string {
	d := f.node.doc
	text := firstSentence(d.text)
	text = strings.TrimRight(text, ".")
	if i := strings.IndexAny(text, "(;"); i > 12 {
		text = strings.TrimSpace(text[:i])
	}
	if text == "" || repeatsName(f.name, text) {
		text = ""
	}
	if text != "" {
		text = shortenText(text, maxHint)
	}
	return text
}

// repeatsName reports whether a description only repeats a name.
func repeatsName(name, text string) bool {
	var known []string
	for _, w := range splitName(name) {
		for _, h := range splitCapitals(w) {
			known = append(known, strings.ToLower(h))
		}
	}
	news := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(known, w) && !fillerWords[w] && !slices.Contains(known, strings.TrimSuffix(w, "s")) {
			news++
		}
	}
	return news <= 1
}

var fillerWords = newSet(`a an the of for to in on by with from and or is be that this it its which will should can
	optional required value values string number boolean list array object specify specifies specified
	name names id ids identifier unique user users given provided use used set`)

// scriptDialect writes types on one line in TypeScript's syntax.
type scriptDialect struct{}

func (scriptDialect) formatAtom(n *typeNode) string { return atomType(n) }

func (scriptDialect) formatArray(element string, compound bool) string {
	if compound && !strings.HasPrefix(element, "{") {
		return "(" + element + ")[]"
	}
	return element + "[]"
}

func (scriptDialect) formatTuple(elements []string, rest string) string {
	if rest != "" {
		elements = append(elements, "..."+rest+"[]")
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

func (scriptDialect) formatObject(fields []string) string {
	return "{" + strings.Join(fields, ", ") + "}"
}

func (scriptDialect) formatField(f objectField, typ string) string {
	if typ == "" {
		return strings.TrimSuffix(propertyKey(f), ": ")
	}
	return propertyKey(f) + typ
}

func (scriptDialect) formatMore(other string) string           { return "{[key: string]: " + other + "}" }
func (scriptDialect) formatUnion(items []string) string        { return strings.Join(items, " | ") }
func (scriptDialect) formatIntersection(items []string) string { return strings.Join(items, " & ") }
func (scriptDialect) formatOpaque(*typeNode) string            { return "object" }
