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

// signature returns a tool's call on one line:
//
//	github.getIssue({owner: string, repo: string, number: number /* of the issue */}): Promise<Issue> // Gets an issue.
func signature(name string, t *core.Tool) string {
	types := describe(t)
	c := compact{dialect: scriptDialect{}}
	var b strings.Builder
	b.WriteString(name)
	b.WriteString("(")
	b.WriteString(c.input(types.input.node))
	b.WriteString("): Promise<")
	if types.output == nil {
		b.WriteString("any")
	} else {
		b.WriteString(c.short(types.output.node, maxResult))
	}
	b.WriteString(">")
	if s := remarks(types.learned, Summary(t)); s != "" {
		b.WriteString(" // ")
		b.WriteString(s)
	}
	return b.String()
}

// pySignature returns a tool's call on one line of Python:
//
//	github.get_issue(owner: str, repo: str, number: int) -> Issue  # Gets an issue. number: of the issue
func pySignature(name string, t *core.Tool) string {
	types := describe(t)
	c := compact{dialect: pythonDialect{}}
	list, said := c.keywords(types.input.node)
	result := "Any"
	if types.output != nil {
		result = c.short(types.output.node, maxResult)
	}
	text := name + "(" + list + ") -> " + result
	if s := remarks(types.learned, strings.TrimSpace(Summary(t)+" "+said)); s != "" {
		text += "  # " + s
	}
	return text
}

// remarks returns the comment at the end of a signature.
func remarks(learned, text string) string {
	if learned != "" && text != "" {
		return "(" + learned + ") " + text
	}
	return learned + text
}

// compact writes types for models. Names of types are replaced by their contents as far as there is room.
type compact struct {
	dialect dialect
}

// dialect writes types on one line in the syntax of one language.
type dialect interface {
	atom(n *node) string
	array(element string, compound bool) string
	tuple(elements []string, rest string) string
	object(fields []string) string
	field(f field, typ string) string
	some(other string) string // an object with values of one type
	union(items []string) string
	both(items []string) string
	opaque(n *node) string // an object that there is no room for
}

// input returns the parameter of a call with one object. Descriptions that fit next to the types are added as hints.
func (c compact) input(n *node) string {
	if n.shape != shapeObject {
		return "input: " + c.short(n, maxInput)
	}
	if len(n.fields) == 0 && n.index != nil && n.index.shape == shapeNever {
		return ""
	}
	fields := requiredFirst(n.fields, maxInput)
	parts, left := c.types(fields, c.dialect.field)
	for i, h := range hints(fields[:len(parts)], left) {
		if h != "" {
			parts[i] += " " + note(h)
		}
	}
	if len(parts) < len(fields) {
		parts = append(parts, "…")
	} else if n.index != nil {
		parts = append(parts, "[key: string]: "+c.short(n.index, 30))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// types writes fields with their types as far as there is room, then optional ones by name only, and stops when even
// these are too many. It also returns the remaining room.
func (c compact) types(fields []field, write func(f field, typ string) string) (parts []string, left int) {
	left = maxInput
	for _, f := range fields {
		part := write(f, c.short(f.node, min(maxType, max(left, 30))))
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

// hints returns descriptions of fields, as many as fit, required fields first.
func hints(fields []field, room int) []string {
	out := make([]string, len(fields))
	for _, required := range []bool{true, false} {
		for i, f := range fields {
			if h := hint(f); f.required == required && len(h) <= room {
				out[i] = h
				room -= len(h)
			}
		}
	}
	return out
}

// keywords returns the parameters of a call with keyword arguments.
func (c compact) keywords(n *node) (list, remarks string) {
	params := keywordParams(n)
	if params == nil {
		return "**arguments", ""
	}
	fields := make([]field, len(params))
	for i, q := range params {
		fields[i] = field{q.ident, q.required, q.node}
	}
	parts, left := c.types(fields, pyParameter)
	var said []string
	for i, h := range hints(fields[:len(parts)], left) {
		if h != "" {
			said = append(said, params[i].ident+": "+h)
		}
	}
	if len(parts) < len(fields) {
		parts = append(parts, "…")
	} else if index := flat(n).index; index != nil && index.shape != shapeNever {
		parts = append(parts, "**"+moreParam+": "+c.short(index, 30))
	}
	return strings.Join(parts, ", "), strings.Join(said, "; ")
}

// pyParameter returns one parameter, without a type if typ is empty.
func pyParameter(f field, typ string) string {
	switch {
	case typ == "":
		return f.name + "=..."
	case f.required:
		return f.name + ": " + typ
	}
	return f.name + ": " + typ + " = ..."
}

// requiredFirst returns fields in the order of the schema if all fit. Otherwise required fields come first, so that
// they are not cut off.
func requiredFirst(fields []field, room int) []field {
	if len(fields)*24 < room {
		return fields
	}
	out := make([]field, 0, len(fields))
	for _, required := range []bool{true, false} {
		for _, f := range fields {
			if f.required == required {
				out = append(out, f)
			}
		}
	}
	return out
}

// attempts lists the ways to write a type, most detailed first.
var attempts = []struct {
	depth int // of objects within objects
	names int // of an object that is shown by its names only; 0: with types
}{{3, 0}, {2, 0}, {2, 16}, {2, 8}, {1, 0}, {1, 16}, {1, 6}, {0, 0}}

// short returns a type on one line of about width bytes.
func (c compact) short(n *node, width int) string {
	text := ""
	for _, a := range attempts {
		w := shortener{dialect: c.dialect, left: width, names: a.names}
		if text = w.node(n, a.depth); w.left >= 0 {
			return text
		}
	}
	if holdsObjects(n) {
		return c.dialect.opaque(n)
	}
	return text
}

// shortener writes one type. left becomes negative when the type is too long.
type shortener struct {
	dialect dialect
	left    int
	names   int
}

func (w *shortener) take(s string) string {
	w.left -= len(s)
	return s
}

const refDepth = 8 // of references to references

func (w *shortener) node(n *node, depth int) string {
	for range refDepth {
		if n.shape != shapeRef {
			break
		}
		n = n.to.node
	}
	w.left-- // whatever it is, so that endless types end
	switch {
	case n.shape == shapeRef, w.left < 0:
		return w.take("any")
	}
	switch n.shape {
	case shapeObject:
		return w.object(n, depth)
	case shapeArray:
		element := w.node(n.items[0], depth)
		return w.dialect.array(element, n.items[0].shape == shapeUnion || n.items[0].shape == shapeBoth)
	case shapeTuple:
		return w.tuple(n, depth)
	case shapeUnion:
		return w.union(n, depth)
	case shapeBoth:
		parts := w.all(n.items, depth)
		for i, part := range parts {
			if n.items[i].shape == shapeUnion {
				parts[i] = "(" + part + ")"
			}
		}
		return w.dialect.both(parts)
	}
	return w.take(w.dialect.atom(n))
}

func (w *shortener) all(items []*node, depth int) []string {
	var out []string
	for _, item := range items {
		if w.left < 0 {
			break
		}
		out = append(out, w.node(item, depth))
	}
	return out
}

// distinct removes duplicates and keeps the first of each.
func distinct(list []string) []string {
	var out []string
	for _, s := range list {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// union writes a union. At depth 0 it shows only the first literals of a long enum.
func (w *shortener) union(n *node, depth int) string {
	items := n.items
	const shown = 6
	if depth == 0 && len(items) > shown && items[0].shape == shapeLiteral {
		return w.dialect.union(append(w.all(items[:shown], depth), "…"))
	}
	return w.dialect.union(distinct(w.all(items, depth)))
}

func (w *shortener) tuple(n *node, depth int) string {
	rest := ""
	if n.rest != nil {
		rest = w.node(n.rest, depth)
	}
	return w.dialect.tuple(w.all(n.items, depth), rest)
}

func (w *shortener) object(n *node, depth int) string {
	if depth == 0 || n.free() || len(n.fields) == 0 && n.index == nil {
		return w.take(w.dialect.opaque(n))
	}
	if len(n.fields) == 0 {
		return w.dialect.some(w.node(n.index, depth-1))
	}
	var fields []string
	for i, f := range n.fields {
		if w.left < 0 {
			break
		}
		if w.names > 0 && i == w.names {
			fields = append(fields, "…")
			return w.dialect.object(fields)
		}
		w.take(f.name + ", ")
		if w.names > 0 && (depth == 1 || !holdsObjects(f.node)) {
			fields = append(fields, bareName(f.name))
		} else {
			fields = append(fields, w.dialect.field(f, w.node(f.node, depth-1)))
		}
	}
	if n.index != nil {
		fields = append(fields, "…")
	}
	return w.dialect.object(fields)
}

func bareName(name string) string {
	if isIdentifier(name) {
		return name
	}
	return quote(name)
}

// holdsObjects reports whether n contains objects with known properties.
func holdsObjects(n *node) bool {
	switch n.shape {
	case shapeArray, shapeUnion, shapeBoth:
		return slices.ContainsFunc(n.items, holdsObjects)
	case shapeRef:
		return n.to.node.shape == shapeObject && len(n.to.node.fields) > 0
	}
	return n.shape == shapeObject && len(n.fields) > 0
}

// hint returns the beginning of a property's description, or "" if it only repeats the name.
func hint(f field) string {
	d := f.node.doc
	text := sentence(d.text)
	text = strings.TrimRight(text, ".")
	if i := strings.IndexAny(text, "(;"); i > 12 {
		text = strings.TrimSpace(text[:i])
	}
	if text == "" || repeatsName(f.name, text) {
		text = ""
	}
	if text != "" {
		text = shorten(text, maxHint)
	}
	return text
}

// repeatsName reports whether a description only repeats a name.
func repeatsName(name, text string) bool {
	var known []string
	for _, w := range words(name) {
		for _, h := range humps(w) {
			known = append(known, strings.ToLower(h))
		}
	}
	news := 0
	for _, w := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if !slices.Contains(known, w) && !filler[w] && !slices.Contains(known, strings.TrimSuffix(w, "s")) {
			news++
		}
	}
	return news <= 1
}

var filler = set(`a an the of for to in on by with from and or is be that this it its which will should can
	optional required value values string number boolean list array object specify specifies specified
	name names id ids identifier unique user users given provided use used set`)

// scriptDialect writes types on one line in TypeScript's syntax.
type scriptDialect struct{}

func (scriptDialect) atom(n *node) string { return atom(n) }

func (scriptDialect) array(element string, compound bool) string {
	if compound && !strings.HasPrefix(element, "{") {
		return "(" + element + ")[]"
	}
	return element + "[]"
}

func (scriptDialect) tuple(elements []string, rest string) string {
	if rest != "" {
		elements = append(elements, "..."+rest+"[]")
	}
	return "[" + strings.Join(elements, ", ") + "]"
}

func (scriptDialect) object(fields []string) string { return "{" + strings.Join(fields, ", ") + "}" }

func (scriptDialect) field(f field, typ string) string {
	if typ == "" {
		return strings.TrimSuffix(key(f), ": ")
	}
	return key(f) + typ
}

func (scriptDialect) some(other string) string    { return "{[key: string]: " + other + "}" }
func (scriptDialect) union(items []string) string { return strings.Join(items, " | ") }
func (scriptDialect) both(items []string) string  { return strings.Join(items, " & ") }
func (scriptDialect) opaque(*node) string         { return "object" }
