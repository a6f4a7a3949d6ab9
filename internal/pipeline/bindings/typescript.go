package bindings

import (
	"slices"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
)

// ToolDeclaration returns the TypeScript declarations of one tool: the types of its input and output, and the
// function. All type names begin with the tool's name, so that the declarations of a server's tools can share one
// module.
func ToolDeclaration(t *core.Tool) string { return declareTool(t, buildTypes(t)) }

func declareTool(t *core.Tool, types *toolTypes) string {
	var p tsPrinter
	p.b.Grow(len(t.InputSchema) + len(t.AnswerSchema()) + 2*len(t.Description))
	p.writeTypes(types)
	p.writeSignatures(t, types, ";")
	return p.b.String()
}

// tsPrinter writes type declarations in TypeScript.
type tsPrinter struct {
	b    strings.Builder
	bare bool // without the word export
	tags bool // with @param and @returns for functions
}

func (p *tsPrinter) writeExport() {
	if !p.bare {
		p.writeParts("export ")
	}
}

func (p *tsPrinter) writeParts(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// writeTypes writes the declarations of all types of a tool.
func (p *tsPrinter) writeTypes(t *toolTypes) {
	p.writeType(t.input)
	if t.output != nil {
		p.writeType(t.output)
	}
	for _, n := range t.names {
		p.writeType(n)
	}
}

// writeType writes one named type, as an interface if it is a plain object.
func (p *tsPrinter) writeType(n *namedType) {
	p.writeDoc(n.node.doc, 0)
	if n.node.shape == shapeObject {
		p.writeExport()
		p.writeParts("interface ", n.name, " ")
		if n.node.note != "" {
			p.writeParts(noteComment(n.node.note), " ")
		}
		p.writeObject(n.node, 0)
		p.writeParts("\n\n")
		return
	}
	p.writeExport()
	p.writeParts("type ", n.name, " = ")
	p.writeNode(n.node, 0, precedenceNone)
	p.writeParts(";\n\n")
}

// writeSignatures writes the overloads of a tool's function: one that takes an object and, if possible, one with
// positional arguments. After each overload it writes the text in the argument end.
func (p *tsPrinter) writeSignatures(t *core.Tool, types *toolTypes, end string) {
	d := toolDoc(t)
	if p.tags {
		d.tags = append(d.tags, paramTag(types), returnsTag(types))
	}
	p.writeDoc(d, 0)
	if paged := pagedComment(t, types); paged != "" && p.tags {
		p.writeParts("// ", paged, "\n")
	}
	optional := ""
	if optionalInput(types.input.node) {
		optional = "?"
	}
	p.writeParts("export function ", t.TypeScript, "(input", optional, ": ", types.input.name, "): ", resultType(types), end, "\n")
	if params := positionalParams(types.input.node); params != nil {
		p.writeParts("export function ", t.TypeScript, "(")
		p.writeParameters(types.input, params)
		p.writeParts("): ", resultType(types), end, "\n")
	}
}

// paramTag returns the @param tag for the argument of a tool's function.
func paramTag(types *toolTypes) string {
	n := types.input.node
	var names []string
	for _, f := range n.fields {
		if !f.required {
			names = append(names, f.name+" (optional)")
		} else {
			names = append(names, f.name)
		}
	}
	said := firstSentence(n.doc.text)
	if said == "" && len(names) > 0 {
		said = shortenText(strings.Join(names, ", "), maxShown)
	}
	if said == "" {
		said = "The arguments"
	}
	return "@param input - " + said
}

// returnsTag returns the @returns tag for the result of a tool's function.
func returnsTag(types *toolTypes) string {
	switch {
	case types.output == nil:
		return "@returns The tool's result, whose type the server does not declare"
	case firstSentence(types.output.node.doc.text) != "":
		return "@returns " + firstSentence(types.output.node.doc.text)
	}
	return "@returns " + types.output.name
}

// toolDoc returns the documentation of a tool.
func toolDoc(t *core.Tool) typeDoc {
	d := typeDoc{text: t.Description}
	if d.text == "" {
		d.text = t.Title
	}
	hint := func(tag string, b *bool) {
		if b != nil && *b {
			d.tags = append(d.tags, tag)
		}
	}
	hint("@readonly", t.Annotations.ReadOnly)
	hint("@irreversible", t.Annotations.Destructive)
	if tag := asksTag(t); tag != "" {
		d.tags = append(d.tags, tag)
	}
	return d
}

// asksTag returns the tag of a tool about whose calls a person is asked, or "".
func asksTag(t *core.Tool) string {
	return [...]string{"", "@asks sometimes", "@asks"}[t.Asks]
}

func resultType(types *toolTypes) string {
	if types.output == nil {
		return "Promise<any>"
	}
	return "Promise<" + types.output.name + ">"
}

// writeParameters writes positional parameters. TypeScript allows "?" only after the last required parameter, so an
// earlier optional parameter also accepts undefined instead.
func (p *tsPrinter) writeParameters(input *namedType, params []positionalParam) {
	needed := 0
	for i, q := range params {
		if q.required {
			needed = i + 1
		}
	}
	for i, q := range params {
		if i > 0 {
			p.writeParts(", ")
		}
		p.writeParts(q.ident)
		if i >= needed {
			p.writeParts("?")
		}
		p.writeParts(": ")
		p.parameterType(input, q)
		if i < needed && !q.required {
			p.writeParts(" | undefined")
		}
	}
}

func (p *tsPrinter) parameterType(input *namedType, q positionalParam) {
	const short = 60
	if text, ok := inlineType(q.node, short); ok {
		if q.node.shape == shapeBoth {
			text = "(" + text + ")"
		}
		p.writeParts(text)
		return
	}
	p.writeParts(input.name, "[", quoteString(q.name), "]")
}

// writeDoc writes a documentation comment, followed by the indentation of the next line.
func (p *tsPrinter) writeDoc(d typeDoc, indent int) {
	text := plainLines(d.text)
	for _, tag := range d.tags {
		text = append(text, oneLine(tag))
	}
	if len(text) == 0 {
		return
	}
	if joined := strings.Join(text, " "); len(text) == 1 || len(joined) <= 100 && len(text)-len(d.tags) <= 1 {
		p.writeParts("/** ", inComment(joined), " */")
		p.newLine(indent)
		return
	}
	p.writeParts("/**")
	for _, line := range text {
		p.newLine(indent)
		p.writeParts(strings.TrimRight(" * "+inComment(line), " "))
	}
	p.newLine(indent)
	p.writeParts(" */")
	p.newLine(indent)
}

func (p *tsPrinter) newLine(indent int) {
	p.writeParts("\n")
	for range indent {
		p.writeParts("  ")
	}
}

// typePrecedence says how tightly the syntax around a type binds, as in A & B or T[]. A type that itself binds less
// tightly needs parentheses there.
type typePrecedence int

const (
	precedenceNone  typePrecedence = iota
	precedenceBoth                 // a part of an intersection
	precedenceArray                // the element before []
)

// writeNode writes a type at an indentation, over several lines if necessary.
func (p *tsPrinter) writeNode(n *typeNode, indent int, around typePrecedence) {
	const width = 90
	if text, ok := inlineType(n, width); ok && (n.shape != shapeObject || len(n.fields) < 4) {
		if needsParentheses(n, around) {
			text = "(" + text + ")"
		}
		p.writeParts(text)
		return
	}
	if needsParentheses(n, around) {
		p.writeParts("(")
		defer p.writeParts(")")
	}
	switch n.shape {
	case shapeArray:
		p.writeNode(n.items[0], indent, precedenceArray)
		p.writeParts("[]")
	case shapeTuple:
		p.writeTuple(n, indent)
	case shapeObject:
		p.writeObject(n, indent)
	case shapeUnion:
		p.writeList(n.items, " | ", indent, precedenceNone)
	case shapeBoth:
		p.writeList(n.items, " & ", indent, precedenceBoth)
	default:
		p.writeParts(atomType(n))
	}
	if n.note != "" {
		p.writeParts(" ", noteComment(n.note))
	}
}

// writeList writes the parts of a union or intersection. If one of the parts has documentation, each part is written
// on its own line, with its documentation before it.
func (p *tsPrinter) writeList(items []*typeNode, operator string, indent int, around typePrecedence) {
	apart := slices.ContainsFunc(items, func(n *typeNode) bool { return partRemark(n) != "" })
	for i, item := range items {
		switch {
		case apart:
			if i > 0 {
				p.newLine(indent + 1)
				p.writeParts(strings.TrimLeft(operator, " "))
			}
			if r := partRemark(item); r != "" {
				p.writeParts(r, " ")
			}
			p.writeNode(item, indent+1, around)
		case i > 0:
			p.writeParts(operator)
			fallthrough
		default:
			p.writeNode(item, indent, around)
		}
	}
}

// partRemark returns, as a one-line comment, the documentation of one part of a union or intersection.
func partRemark(n *typeNode) string {
	text := joinNotes(oneLine(n.doc.text), strings.Join(n.doc.tags, " "))
	if text == "" {
		return ""
	}
	return "/** " + inComment(oneLine(text)) + " */"
}

func (p *tsPrinter) writeTuple(n *typeNode, indent int) {
	p.writeParts("[")
	for i, item := range n.items {
		if i > 0 {
			p.writeParts(", ")
		}
		if remark := partRemark(item); remark != "" {
			p.writeParts(remark, " ")
		}
		p.writeNode(item, indent, optionalPrecedence(i >= n.least))
		if i >= n.least {
			p.writeParts("?")
		}
	}
	if n.rest != nil {
		if len(n.items) > 0 {
			p.writeParts(", ")
		}
		p.writeParts("...")
		p.writeNode(n.rest, indent, precedenceArray)
		p.writeParts("[]")
	}
	p.writeParts("]")
}

func optionalPrecedence(optional bool) typePrecedence {
	if optional {
		return precedenceArray
	}
	return precedenceNone
}

func (p *tsPrinter) writeObject(n *typeNode, indent int) {
	p.writeParts("{")
	for _, f := range n.fields {
		p.newLine(indent + 1)
		p.writeDoc(f.node.doc, indent+1)
		p.writeParts(propertyKey(f))
		p.writeNode(f.node, indent+1, precedenceNone)
		p.writeParts(";")
	}
	if n.index != nil {
		p.newLine(indent + 1)
		p.writeParts("[key: string]: ")
		if len(n.fields) == 0 {
			p.writeNode(n.index, indent+1, precedenceNone)
		} else {
			p.writeParts(indexType(n))
		}
		p.writeParts(";")
	}
	if len(n.fields) > 0 || n.index != nil {
		p.newLine(indent)
	}
	p.writeParts("}")
}

// propertyKey returns the part of a property's declaration before its type, such as "name?: ".
func propertyKey(f objectField) string {
	name := f.name
	if !isIdentifier(name) {
		name = quoteString(name)
	}
	if f.required {
		return name + ": "
	}
	if inheritedMembers[f.name] {
		// Every object has a function of this name, so that {} would not fit.
		return name + "?: Function | "
	}
	return name + "?: "
}

// inheritedMembers lists the members that objects inherit from Object.
var inheritedMembers = map[string]bool{
	"constructor": true, "toString": true, "toLocaleString": true, "valueOf": true, "hasOwnProperty": true,
	"isPrototypeOf": true, "propertyIsEnumerable": true,
}

// indexType returns the type of an object type's index signature. TypeScript requires that the index type includes
// the types of all declared properties.
func indexType(n *typeNode) string {
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
		for _, t := range alternativeTexts(f, text) {
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if !ok {
		return "any " + noteComment("the declared ones and "+others)
	}
	for i, t := range types {
		if strings.ContainsAny(t, "&|") {
			types[i] = "(" + t + ")"
		}
	}
	return strings.Join(types, " | ")
}

func alternativeTexts(f objectField, text string) []string {
	if f.required {
		return []string{text}
	}
	return []string{text, "undefined"}
}

// inlineType returns a type on one line, if it contains no documentation and has at most width bytes.
func inlineType(n *typeNode, width int) (string, bool) {
	w := inlinePrinter{left: width}
	w.writeNode(n, precedenceNone)
	return w.b.String(), w.left >= 0
}

// bareInline returns a type on one line without its documentation. It returns false if the text is longer than width
// bytes and was therefore cut.
func bareInline(n *typeNode, width int) (string, bool) {
	w := inlinePrinter{left: width, bare: true}
	w.writeNode(n, precedenceNone)
	return strings.TrimSpace(w.b.String()), w.left >= 0
}

// inlinePrinter writes a type on one line and stops once it is too long.
type inlinePrinter struct {
	b    strings.Builder
	left int
	bare bool // without documentation
}

// rejectsNode reports whether a type must not be written on one line. That is the case if a part of the type has
// documentation, or if the line is already too long.
func (w *inlinePrinter) rejectsNode(n *typeNode) bool {
	if !w.bare && !n.doc.isEmpty() {
		w.left = -1
	}
	return w.left < 0
}

func (w *inlinePrinter) writeText(s string) {
	if w.left -= len(s); w.left >= 0 {
		w.b.WriteString(s)
	}
}

func (w *inlinePrinter) writeNode(n *typeNode, around typePrecedence) {
	if w.left < 0 {
		return
	}
	if needsParentheses(n, around) {
		w.writeText("(")
		defer w.writeText(")")
	}
	switch n.shape {
	case shapeArray:
		w.writeNode(n.items[0], precedenceArray)
		w.writeText("[]")
	case shapeTuple:
		w.writeTuple(n)
	case shapeObject:
		w.writeObject(n)
	case shapeUnion:
		w.writeList(n.items, " | ", precedenceNone)
	case shapeBoth:
		w.writeList(n.items, " & ", precedenceBoth)
	default:
		w.writeText(atomType(n))
	}
	if n.note != "" {
		w.writeText(" " + noteComment(n.note))
	}
}

func (w *inlinePrinter) writeList(items []*typeNode, operator string, around typePrecedence) {
	for i, item := range items {
		if i > 0 {
			w.writeText(operator)
		}
		if w.rejectsNode(item) {
			return
		}
		w.writeNode(item, around)
	}
}

func (w *inlinePrinter) writeTuple(n *typeNode) {
	w.writeText("[")
	for i, item := range n.items {
		if i > 0 {
			w.writeText(", ")
		}
		if w.rejectsNode(item) {
			return
		}
		w.writeNode(item, optionalPrecedence(i >= n.least))
		if i >= n.least {
			w.writeText("?")
		}
	}
	if n.rest != nil {
		if len(n.items) > 0 {
			w.writeText(", ")
		}
		w.writeText("...")
		w.writeNode(n.rest, precedenceArray)
		w.writeText("[]")
	}
	w.writeText("]")
}

func (w *inlinePrinter) writeObject(n *typeNode) {
	if n.isAnyObject() {
		w.writeText("Record<string, any>")
		return
	}
	w.writeText("{")
	for i, f := range n.fields {
		if w.rejectsNode(f.node) {
			return
		}
		if i > 0 {
			w.writeText(";")
		}
		w.writeText(" " + propertyKey(f))
		w.writeNode(f.node, precedenceNone)
	}
	if n.index != nil {
		if len(n.fields) > 0 {
			w.writeText(";")
		}
		w.writeText(" [key: string]: ")
		if len(n.fields) == 0 {
			w.writeNode(n.index, precedenceNone)
		} else {
			w.writeText(indexType(n))
		}
	}
	w.writeText(" }")
}

// atomType returns the TypeScript syntax of an atom, which is a type without parts, such as string.
func atomType(n *typeNode) string {
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
		if n.literal.hasKind(jsonString) {
			return quoteString(n.literal.text)
		}
		return n.literal.text
	case shapeRef:
		return n.to.name
	}
	return "any"
}

// needsParentheses reports whether a type needs parentheses within the surrounding syntax.
func needsParentheses(n *typeNode, around typePrecedence) bool {
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
