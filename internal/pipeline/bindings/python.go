package bindings

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"retort/internal/core"
)

// keywordParams returns the parameters of a Python function for an input, required ones first, or nil if the input is
// not an object.
func keywordParams(input *typeNode) []positionalParam {
	object := flattenObjects(input)
	if object == nil {
		return nil
	}
	idents := nameNumbering{separator: "_"}
	params := []positionalParam{}
	for _, required := range []bool{true, false} {
		for _, f := range object.fields {
			if f.required != required {
				continue
			}
			params = append(params, positionalParam{f, idents.nextName(keywordName(f.name))})
		}
	}
	return params
}

// keywordName converts a property's name to a valid name for a Python parameter.
func keywordName(name string) string {
	if !isIdentifier(name) || strings.Contains(name, "$") {
		name = safeIdentifier(toSnakeCase(name), "argument", pythonReserved)
	}
	if pythonKeyword[name] || name == moreParam {
		name += "_"
	}
	return name
}

// moreParam is the name of the Python parameter that collects undeclared arguments.
const moreParam = "more"

// pyPrinter writes Python code. Python has no inline object types, so it collects object types in queue and later
// writes them as classes.
type pyPrinter struct {
	b       strings.Builder
	prefix  string
	names   nameNumbering
	classes map[*objectField]string // by the first field, which copies of a type share
	merged  map[string]*typeNode    // intersections as one object
	queue   []pyClass
	notes   []string // what the last type could not say
}

// pyClass holds an object type and the name of its class.
type pyClass struct {
	name string
	node *typeNode
}

func newPyPrinter(t *toolTypes) *pyPrinter {
	p := &pyPrinter{prefix: t.prefix, classes: map[*objectField]string{}, merged: map[string]*typeNode{}}
	p.names.nextName(t.input.name)
	if t.output != nil {
		p.names.nextName(t.output.name)
	}
	for _, n := range t.names {
		p.names.nextName(n.name)
	}
	return p
}

func (p *pyPrinter) writeParts(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// writeDeclarations writes all types of a tool. It omits the input type if the properties become parameters and no
// other type refers to it.
func (p *pyPrinter) writeDeclarations(t *toolTypes) {
	if t.input.node.shape != shapeObject || refersTo(t, t.input) {
		p.writeType(t.input)
	}
	if t.output != nil {
		p.writeType(t.output)
	}
	for _, n := range t.names {
		p.writeType(n)
	}
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.writeClass(next.name, next.node)
	}
}

// refersTo reports whether one of the types of a tool (t) refers to the named type n.
func refersTo(t *toolTypes, n *namedType) bool {
	seen := map[*typeNode]bool{}
	var visit func(*typeNode) bool
	visit = func(v *typeNode) bool {
		if v == nil || seen[v] {
			return false
		}
		seen[v] = true
		if v.shape == shapeRef && v.to == n || visit(v.rest) || visit(v.index) {
			return true
		}
		for _, item := range v.items {
			if visit(item) {
				return true
			}
		}
		for _, f := range v.fields {
			if visit(f.node) {
				return true
			}
		}
		return false
	}
	if visit(t.input.node) || t.output != nil && visit(t.output.node) {
		return true
	}
	for _, other := range t.names {
		if visit(other.node) {
			return true
		}
	}
	return false
}

func (p *pyPrinter) writeType(n *namedType) {
	if n.node.shape == shapeObject && len(n.node.fields) > 0 {
		p.writeClass(n.name, n.node)
		return
	}
	typ := p.formatType(n.node, n.name)
	p.writeRemarks(n.node.doc, "")
	p.writeParts(n.name, `: "TypeAlias" = `, pyQuote(typ), "\n\n\n")
}

// writeClass writes an object type as a TypedDict.
func (p *pyPrinter) writeClass(name string, n *typeNode) {
	if !classKeys(n) {
		p.writeFunctional(name, n)
		return
	}
	p.writeParts("class ", name, "(TypedDict):\n")
	p.writeDocstring(docLines(n.doc, otherKeys(n), n.note), "    ")
	for _, f := range n.fields {
		typ := p.fieldType(f, name)
		p.writeRemarks(f.node.doc, "    ")
		p.writeParts("    ", f.name, ": ", typ, "\n")
	}
	if len(n.fields) == 0 {
		p.writeParts("    pass\n")
	}
	p.writeParts("\n\n")
}

// classKeys reports whether all keys can be attributes of a class. Python changes names with two leading underscores,
// so these cannot.
func classKeys(n *typeNode) bool {
	for _, f := range n.fields {
		if !isIdentifier(f.name) || pythonKeyword[f.name] || strings.Contains(f.name, "$") || strings.HasPrefix(f.name, "__") {
			return false
		}
	}
	return true
}

func (p *pyPrinter) writeFunctional(name string, n *typeNode) {
	p.writeRemarks(n.doc, "")
	p.writeParts(name, " = TypedDict(", pyQuote(name), ", {\n")
	for _, f := range n.fields {
		typ := p.fieldType(f, name)
		p.writeRemarks(f.node.doc, "    ")
		p.writeParts("    ", pyQuote(f.name), ": ", pyQuote(typ), ",\n")
	}
	p.writeParts("})\n\n\n")
}

func (p *pyPrinter) fieldType(f objectField, class string) string {
	typ := p.formatType(f.node, class+upperFirst(toCamelCase(f.name)))
	if !f.required {
		return "NotRequired[" + typ + "]"
	}
	return typ
}

// otherKeys returns a comment about the undeclared keys that an object type allows, or "".
func otherKeys(n *typeNode) string {
	switch {
	case n.index == nil, n.index.shape == shapeNever, len(n.fields) == 0:
		return ""
	case n.index.isAny():
		return "Other keys are possible."
	}
	text, ok := inlineType(n.index, 100)
	if !ok {
		text = "more complex"
	}
	return "Other keys have values of type " + text + "."
}

// formatType returns a type in Python's syntax. name is used for a class that the type may need.
func (p *pyPrinter) formatType(n *typeNode, name string) string {
	if n.note != "" {
		p.notes = append(p.notes, n.note)
	}
	switch n.shape {
	case shapeRef:
		return n.to.name
	case shapeArray:
		return "list[" + p.formatType(n.items[0], name+"Item") + "]"
	case shapeTuple:
		return p.formatTuple(n, name)
	case shapeObject:
		return p.formatObject(n, name)
	case shapeUnion:
		return pythonDialect{}.formatUnion(removeDuplicates(p.formatAll(n.items, name)))
	case shapeBoth:
		if merged := p.mergeObject(n); merged != nil {
			return p.formatObject(merged, name)
		}
		p.notes = append(p.notes, "all of: "+strings.Join(p.formatAll(n.items, name), ", "))
		return "Any"
	}
	return pyAtom(n)
}

func (p *pyPrinter) formatAll(items []*typeNode, name string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = p.formatType(item, name+strconv.Itoa(i+1))
	}
	return out
}

func (p *pyPrinter) formatTuple(n *typeNode, name string) string {
	items := p.formatAll(n.items, name)
	switch {
	case n.rest != nil && len(items) == 0:
		return "list[" + p.formatType(n.rest, name+"Item") + "]"
	case n.rest != nil || n.least < len(n.items):
		if n.rest != nil {
			items = append(items, p.formatType(n.rest, name+"Item"))
		}
		return "list[" + strings.Join(removeDuplicates(items), " | ") + "]"
	case len(items) == 0:
		return "tuple[()]"
	}
	return "tuple[" + strings.Join(items, ", ") + "]"
}

func (p *pyPrinter) formatObject(n *typeNode, name string) string {
	if len(n.fields) == 0 {
		if n.index == nil || n.index.shape == shapeNever {
			return "dict[str, Any]"
		}
		return "dict[str, " + p.formatType(n.index, name+"Value") + "]"
	}
	if class, ok := p.classes[&n.fields[0]]; ok {
		return class
	}
	if len(p.classes) >= maxClasses {
		return "dict[str, Any]"
	}
	class := p.className(name)
	p.classes[&n.fields[0]] = class
	p.queue = append(p.queue, pyClass{class, n})
	return class
}

const (
	maxClassName = 100
	maxClasses   = 5000 // of one tool
)

func (p *pyPrinter) className(name string) string {
	rest := strings.ReplaceAll(strings.TrimPrefix(name, p.prefix), "_", "")
	return p.names.nextName(clipTo(p.prefix+"_"+rest, maxClassName))
}

func clipTo(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n])
	}
	return s
}

func isUnion(n *typeNode) bool { return n.shape == shapeUnion }

// mergeObject merges an intersection of object types into one object type. It returns nil if that is impossible. If
// it has merged the same parts before, it returns the same type again, because an intersection that contains itself
// would otherwise never end.
func (p *pyPrinter) mergeObject(n *typeNode) *typeNode {
	if slices.ContainsFunc(n.items, isUnion) {
		return nil
	}
	var key strings.Builder
	for _, item := range n.items {
		if item.shape == shapeRef {
			fmt.Fprintf(&key, "%s,", item.to.name)
		} else {
			fmt.Fprintf(&key, "%p,", item)
		}
	}
	object, ok := p.merged[key.String()]
	if !ok {
		object = flattenObjects(n)
		p.merged[key.String()] = object
	}
	return object
}

// pyAtom returns the Python syntax of an atom, which is a type without parts, such as str.
func pyAtom(n *typeNode) string {
	switch n.shape {
	case shapeNever:
		return "NoReturn"
	case shapeNull:
		return "None"
	case shapeBoolean:
		return "bool"
	case shapeNumber:
		return "float"
	case shapeInteger:
		return "int"
	case shapeString:
		return "str"
	case shapeLiteral:
		return pyLiteral(n.literal)
	}
	return "Any"
}

func pyLiteral(v *jsonValue) string {
	switch v.kind {
	case jsonString:
		return "Literal[" + pyQuote(v.text) + "]"
	case jsonBool:
		return "Literal[" + upperFirst(v.text) + "]"
	}
	if strings.Contains(v.text, ".") {
		return "float"
	}
	return "Literal[" + v.text + "]"
}

// writeRemarks writes documentation as comments. It also writes as comments what Python's syntax could not express of
// the type that was written last.
func (p *pyPrinter) writeRemarks(d typeDoc, indent string) {
	for _, line := range append(docLines(d), p.notes...) {
		p.writeParts(indent, strings.TrimRight("# "+oneLine(line), " "), "\n")
	}
	p.notes = nil
}

// docLines returns the lines of a tool's or parameter's documentation.
func docLines(d typeDoc, more ...string) []string {
	text := append(plainLines(d.text), d.tags...)
	for _, m := range more {
		if m != "" {
			text = append(text, m)
		}
	}
	return text
}

func (p *pyPrinter) writeDocstring(text []string, indent string) {
	if len(text) == 0 {
		return
	}
	p.writeParts(indent, `"""`)
	for i, line := range text {
		if i > 0 {
			p.writeParts("\n")
			if line != "" {
				p.writeParts(indent)
			}
		}
		p.writeParts(inDocstring(line))
	}
	if len(text) > 1 {
		p.writeParts("\n", indent)
	}
	p.writeParts("\"\"\"\n")
}

// inDocstring escapes plain text for use in a docstring.
func inDocstring(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
}

// pyToolDoc returns the documentation of a tool together with the documentation of its input type.
func pyToolDoc(t *core.Tool, types *toolTypes) typeDoc {
	d := toolDoc(t)
	input := types.input.node.doc
	d.tags = append(plainLines(input.text), append(input.tags, d.tags...)...)
	return d
}

// pyFull returns the full Python stub of a tool: its documentation, its call, and its type declarations.
func pyFull(name string, t *core.Tool) string {
	types := buildOutline(t)
	p := newPyPrinter(types)
	p.writeRemarks(pyToolDoc(t, types), "")
	p.writeParts(name, "(")
	p.stubParameters(types)
	p.writeParts(") -> ", pyResult(types), "\n")
	if paged := pagedComment(t, types); paged != "" {
		p.writeParts("# ", paged, "\n")
	}
	p.writeParts("\n")
	p.writeDeclarations(types)
	return strings.ReplaceAll(strings.TrimSpace(p.b.String()), "\n\n\n", "\n") + "\n"
}

// stubParameters writes one parameter per line with its documentation.
func (p *pyPrinter) stubParameters(types *toolTypes) {
	params := keywordParams(types.input.node)
	if params == nil {
		p.writeParts("**arguments: ", types.input.name)
		return
	}
	for _, q := range params {
		typ := p.formatType(q.node, p.prefix+"_"+upperFirst(toCamelCase(q.name)))
		p.writeParts("\n    ", q.ident, ": ", typ)
		if !q.required {
			p.writeParts(" = ...")
		}
		p.writeParts(",")
		if remark := strings.Join(append(docLines(q.node.doc), p.notes...), " "); remark != "" {
			p.writeParts("  # ", oneLine(remark))
		}
		p.notes = nil
	}
	index := flattenObjects(types.input.node).index
	more := index != nil && index.shape != shapeNever
	if more {
		p.writeParts("\n    **", moreParam, ": ", p.formatType(index, p.prefix+"_More"), ",")
	}
	if more || len(params) > 0 {
		p.writeParts("\n")
	}
}

func pyResult(types *toolTypes) string {
	if types.output == nil {
		return "Any"
	}
	return types.output.name
}
