package bindings

import (
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
)

// Declaration returns the TypeScript of one tool in a module of its server: the types of its input and output, and
// the function. All type names start with the tool's name, so that several tools of a server can share a file.
func Declaration(t *core.Tool) string { return declaration(t, describe(t)) }

func declaration(t *core.Tool, types *tool) string {
	var p tsPrinter
	p.b.Grow(len(t.InputSchema) + len(t.Answer()) + 2*len(t.Description))
	p.types(types)
	p.signatures(t, types, ";")
	return p.b.String()
}

// tsPrinter writes TypeScript.
type tsPrinter struct {
	b    strings.Builder
	bare bool // without the word export
	tags bool // with @param and @returns for functions
}

func (p *tsPrinter) export() {
	if !p.bare {
		p.write("export ")
	}
}

func (p *tsPrinter) write(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// types writes the declarations of all types of a tool.
func (p *tsPrinter) types(t *tool) {
	p.declare(t.input)
	if t.output != nil {
		p.declare(t.output)
	}
	for _, n := range t.names {
		p.declare(n)
	}
}

// declare writes one named type, as an interface if it is a plain object.
func (p *tsPrinter) declare(n *named) {
	p.doc(n.node.doc, 0)
	if n.node.shape == shapeObject {
		p.export()
		p.write("interface ", n.name, " ")
		if n.node.note != "" {
			p.write(note(n.node.note), " ")
		}
		p.object(n.node, 0)
		p.write("\n\n")
		return
	}
	p.export()
	p.write("type ", n.name, " = ")
	p.node(n.node, 0, precedenceNone)
	p.write(";\n\n")
}

// signatures writes a tool's function with its overloads. Each of them ends with end.
func (p *tsPrinter) signatures(t *core.Tool, types *tool, end string) {
	d := toolDoc(t)
	if p.tags {
		d.tags = append(d.tags, paramTag(types), returnsTag(types))
	}
	p.doc(d, 0)
	optional := ""
	if optionalInput(types.input.node) {
		optional = "?"
	}
	p.write("export function ", t.TypeScript, "(input", optional, ": ", types.input.name, "): ", result(types), end, "\n")
	if params := positional(types.input.node); params != nil {
		p.write("export function ", t.TypeScript, "(")
		p.parameters(types.input, params)
		p.write("): ", result(types), end, "\n")
	}
}

// paramTag documents the argument of a tool's function.
func paramTag(types *tool) string {
	n := types.input.node
	var names []string
	for _, f := range n.fields {
		if !f.required {
			names = append(names, f.name+" (optional)")
		} else {
			names = append(names, f.name)
		}
	}
	said := sentence(n.doc.text)
	if said == "" && len(names) > 0 {
		said = shorten(strings.Join(names, ", "), maxShown)
	}
	if said == "" {
		said = "The arguments"
	}
	return "@param input - " + said
}

// returnsTag documents the result of a tool's function.
func returnsTag(types *tool) string {
	switch {
	case types.output == nil:
		return "@returns What the tool answers, of a type that it does not declare"
	case sentence(types.output.node.doc.text) != "":
		return "@returns " + sentence(types.output.node.doc.text)
	}
	return "@returns " + types.output.name
}

// toolDoc returns the documentation of a tool.
func toolDoc(t *core.Tool) doc {
	d := doc{text: t.Description}
	if d.text == "" {
		d.text = t.Title
	}
	hint := func(tag string, b *bool) {
		if b != nil && *b {
			d.tags = append(d.tags, tag)
		}
	}
	hint("@readonly", t.Annotations.ReadOnly)
	hint("@destructive", t.Annotations.Destructive)
	return d
}

func result(types *tool) string {
	if types.output == nil {
		return "Promise<any>"
	}
	return "Promise<" + types.output.name + ">"
}

// parameters writes positional parameters. An optional one before a required one must be passed, if only as
// undefined.
func (p *tsPrinter) parameters(input *named, params []param) {
	needed := 0
	for i, q := range params {
		if q.required {
			needed = i + 1
		}
	}
	for i, q := range params {
		if i > 0 {
			p.write(", ")
		}
		p.write(q.ident)
		if i >= needed {
			p.write("?")
		}
		p.write(": ")
		p.parameterType(input, q)
		if i < needed && !q.required {
			p.write(" | undefined")
		}
	}
}

func (p *tsPrinter) parameterType(input *named, q param) {
	const short = 60
	if text, ok := inline(q.node, short); ok {
		if q.node.shape == shapeBoth {
			text = "(" + text + ")"
		}
		p.write(text)
		return
	}
	p.write(input.name, "[", quote(q.name), "]")
}

// doc writes a documentation comment, followed by the line's indentation.
func (p *tsPrinter) doc(d doc, indent int) {
	text := lines(d.text)
	for _, tag := range d.tags {
		text = append(text, oneLine(tag))
	}
	if len(text) == 0 {
		return
	}
	if joined := strings.Join(text, " "); len(text) == 1 || len(joined) <= 100 && len(text)-len(d.tags) <= 1 {
		p.write("/** ", inComment(joined), " */")
		p.line(indent)
		return
	}
	p.write("/**")
	for _, line := range text {
		p.line(indent)
		p.write(strings.TrimRight(" * "+inComment(line), " "))
	}
	p.line(indent)
	p.write(" */")
	p.line(indent)
}

func (p *tsPrinter) line(indent int) {
	p.write("\n")
	for range indent {
		p.write("  ")
	}
}

// precedence says how tightly the surrounding syntax binds a type.
type precedence int

const (
	precedenceNone  precedence = iota
	precedenceBoth             // a part of an intersection
	precedenceArray            // the element before []
)

// node writes a type at an indentation, over several lines if necessary.
func (p *tsPrinter) node(n *node, indent int, around precedence) {
	const width = 90
	if text, ok := inline(n, width); ok && (n.shape != shapeObject || len(n.fields) < 4) {
		if needsParentheses(n, around) {
			text = "(" + text + ")"
		}
		p.write(text)
		return
	}
	if needsParentheses(n, around) {
		p.write("(")
		defer p.write(")")
	}
	switch n.shape {
	case shapeArray:
		p.node(n.items[0], indent, precedenceArray)
		p.write("[]")
	case shapeTuple:
		p.tuple(n, indent)
	case shapeObject:
		p.object(n, indent)
	case shapeUnion:
		p.list(n.items, " | ", indent, precedenceNone)
	case shapeBoth:
		p.list(n.items, " & ", indent, precedenceBoth)
	default:
		p.write(atom(n))
	}
	if n.note != "" {
		p.write(" ", note(n.note))
	}
}

// list writes the parts of a union or intersection. If one of them is documented, each is on its own line, after its
// comment.
func (p *tsPrinter) list(items []*node, operator string, indent int, around precedence) {
	apart := slices.ContainsFunc(items, func(n *node) bool { return remark(n) != "" })
	for i, item := range items {
		switch {
		case apart:
			if i > 0 {
				p.line(indent + 1)
				p.write(strings.TrimLeft(operator, " "))
			}
			if r := remark(item); r != "" {
				p.write(r, " ")
			}
			p.node(item, indent+1, around)
		case i > 0:
			p.write(operator)
			fallthrough
		default:
			p.node(item, indent, around)
		}
	}
}

// remark returns the documentation of a part of a type, as a comment on one line.
func remark(n *node) string {
	text := join(oneLine(n.doc.text), strings.Join(n.doc.tags, " "))
	if text == "" {
		return ""
	}
	return "/** " + inComment(oneLine(text)) + " */"
}

func (p *tsPrinter) tuple(n *node, indent int) {
	p.write("[")
	for i, item := range n.items {
		if i > 0 {
			p.write(", ")
		}
		if remark := remark(item); remark != "" {
			p.write(remark, " ")
		}
		p.node(item, indent, optionalPrecedence(i >= n.least))
		if i >= n.least {
			p.write("?")
		}
	}
	if n.rest != nil {
		if len(n.items) > 0 {
			p.write(", ")
		}
		p.write("...")
		p.node(n.rest, indent, precedenceArray)
		p.write("[]")
	}
	p.write("]")
}

func optionalPrecedence(optional bool) precedence {
	if optional {
		return precedenceArray
	}
	return precedenceNone
}

func (p *tsPrinter) object(n *node, indent int) {
	p.write("{")
	for _, f := range n.fields {
		p.line(indent + 1)
		p.doc(f.node.doc, indent+1)
		p.write(key(f))
		p.node(f.node, indent+1, precedenceNone)
		p.write(";")
	}
	if n.index != nil {
		p.line(indent + 1)
		p.write("[key: string]: ")
		if len(n.fields) == 0 {
			p.node(n.index, indent+1, precedenceNone)
		} else {
			p.write(indexType(n))
		}
		p.write(";")
	}
	if len(n.fields) > 0 || n.index != nil {
		p.line(indent)
	}
	p.write("}")
}

// key returns a property's name in front of its type.
func key(f field) string {
	name := f.name
	if !isIdentifier(name) {
		name = quote(name)
	}
	if f.required {
		return name + ": "
	}
	if inherited[f.name] {
		// Every object has a function of this name, so that {} would not fit.
		return name + "?: Function | "
	}
	return name + "?: "
}

// inherited lists the members that objects inherit from Object.
var inherited = map[string]bool{"constructor": true, "toString": true, "toLocaleString": true, "valueOf": true, "hasOwnProperty": true, "isPrototypeOf": true, "propertyIsEnumerable": true}

// indexType returns the type of an index signature. TypeScript requires that it includes the types of all declared
// properties.
func indexType(n *node) string {
	const few, short = 6, 160
	others, ok := bareInline(n.index, short)
	if n.index.isAny() {
		return others
	}
	types := []string{others}
	for _, f := range n.fields {
		text, fits := bareInline(f.node, short)
		if ok = ok && fits && len(types) < few; !ok {
			break
		}
		for _, t := range alternatives(f, text) {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if !ok {
		return "any " + note("the declared ones and "+others)
	}
	for i, t := range types {
		if strings.ContainsAny(t, "&|") {
			types[i] = "(" + t + ")"
		}
	}
	return strings.Join(types, " | ")
}

func alternatives(f field, text string) []string {
	if f.required {
		return []string{text}
	}
	return []string{text, "undefined"}
}

// inline returns a type on one line, if it contains no documentation and has at most width bytes.
func inline(n *node, width int) (string, bool) {
	w := inliner{left: width}
	w.node(n, precedenceNone)
	return w.b.String(), w.left >= 0
}

// bareInline returns a type on one line without its documentation, cut to width.
func bareInline(n *node, width int) (string, bool) {
	w := inliner{left: width, bare: true}
	w.node(n, precedenceNone)
	return strings.TrimSpace(w.b.String()), w.left >= 0
}

// inliner writes a type on one line and stops once it is too long.
type inliner struct {
	b    strings.Builder
	left int
	bare bool // without documentation
}

// refuses reports whether a part cannot be written on one line.
func (w *inliner) refuses(n *node) bool {
	if !w.bare && !n.doc.empty() {
		w.left = -1
	}
	return w.left < 0
}

func (w *inliner) write(s string) {
	if w.left -= len(s); w.left >= 0 {
		w.b.WriteString(s)
	}
}

func (w *inliner) node(n *node, around precedence) {
	if w.left < 0 {
		return
	}
	if needsParentheses(n, around) {
		w.write("(")
		defer w.write(")")
	}
	switch n.shape {
	case shapeArray:
		w.node(n.items[0], precedenceArray)
		w.write("[]")
	case shapeTuple:
		w.tuple(n)
	case shapeObject:
		w.object(n)
	case shapeUnion:
		w.list(n.items, " | ", precedenceNone)
	case shapeBoth:
		w.list(n.items, " & ", precedenceBoth)
	default:
		w.write(atom(n))
	}
	if n.note != "" {
		w.write(" " + note(n.note))
	}
}

func (w *inliner) list(items []*node, operator string, around precedence) {
	for i, item := range items {
		if i > 0 {
			w.write(operator)
		}
		if w.refuses(item) {
			return
		}
		w.node(item, around)
	}
}

func (w *inliner) tuple(n *node) {
	w.write("[")
	for i, item := range n.items {
		if i > 0 {
			w.write(", ")
		}
		if w.refuses(item) {
			return
		}
		w.node(item, optionalPrecedence(i >= n.least))
		if i >= n.least {
			w.write("?")
		}
	}
	if n.rest != nil {
		if len(n.items) > 0 {
			w.write(", ")
		}
		w.write("...")
		w.node(n.rest, precedenceArray)
		w.write("[]")
	}
	w.write("]")
}

func (w *inliner) object(n *node) {
	if n.free() {
		w.write("Record<string, any>")
		return
	}
	w.write("{")
	for i, f := range n.fields {
		if w.refuses(f.node) {
			return
		}
		if i > 0 {
			w.write(";")
		}
		w.write(" " + key(f))
		w.node(f.node, precedenceNone)
	}
	if n.index != nil {
		if len(n.fields) > 0 {
			w.write(";")
		}
		w.write(" [key: string]: ")
		if len(n.fields) == 0 {
			w.node(n.index, precedenceNone)
		} else {
			w.write(indexType(n))
		}
	}
	w.write(" }")
}

// atom returns a type without parts in TypeScript's syntax.
func atom(n *node) string {
	switch n.shape {
	case shapeNever:
		return "never"
	case shapeNull:
		return "null"
	case shapeBoolean:
		return "boolean"
	case shapeNumber, shapeInteger:
		return "number"
	case shapeString:
		return sealedName(n.sealed)
	case shapeLiteral:
		if n.literal.is(jsonString) {
			return quote(n.literal.text)
		}
		return n.literal.text
	case shapeRef:
		return n.to.name
	}
	return "any"
}

// needsParentheses reports whether a type needs parentheses in its place.
func needsParentheses(n *node, around precedence) bool {
	switch n.shape {
	case shapeUnion:
		return around >= precedenceBoth
	case shapeBoth:
		return around >= precedenceArray
	}
	return n.note != "" && around >= precedenceArray
}

// isIdentifier reports whether a property's name needs no quotes.
func isIdentifier(s string) bool {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c == '_', c == '$', 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case '0' <= c && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return s != "" && utf8.ValidString(s) && s != "__proto__"
}
