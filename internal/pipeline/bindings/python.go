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
func keywordParams(input *node) []param {
	object := flat(input)
	if object == nil {
		return nil
	}
	idents := numbering{separator: "_"}
	params := []param{}
	for _, required := range []bool{true, false} {
		for _, f := range object.fields {
			if f.required != required {
				continue
			}
			params = append(params, param{f, idents.name(keyword(f.name))})
		}
	}
	return params
}

// keyword returns a property's name as a parameter.
func keyword(name string) string {
	if !isIdentifier(name) || strings.Contains(name, "$") {
		name = safe(snake(name), "argument", pythonReserved)
	}
	if pythonKeyword[name] || name == moreParam {
		name += "_"
	}
	return name
}

// moreParam is the parameter that collects undeclared arguments.
const moreParam = "more"

// pyPrinter writes Python. Python has no inline object types, so those are put in queue, to be written as classes.
type pyPrinter struct {
	b       strings.Builder
	prefix  string
	names   numbering
	classes map[*field]string // by the first field, which copies of a type share
	merged  map[string]*node  // intersections as one object
	queue   []pyClass
	notes   []string // what the last type could not say
}

// pyClass holds an object type and the name of its class.
type pyClass struct {
	name string
	node *node
}

func newPyPrinter(t *tool) *pyPrinter {
	p := &pyPrinter{prefix: t.prefix, classes: map[*field]string{}, merged: map[string]*node{}}
	p.names.name(t.input.name)
	if t.output != nil {
		p.names.name(t.output.name)
	}
	for _, n := range t.names {
		p.names.name(n.name)
	}
	return p
}

func (p *pyPrinter) write(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// declarations writes all types of a tool except an input that is written as parameters.
func (p *pyPrinter) declarations(t *tool) {
	if t.input.node.shape != shapeObject || refersTo(t, t.input) {
		p.declare(t.input)
	}
	if t.output != nil {
		p.declare(t.output)
	}
	for _, n := range t.names {
		p.declare(n)
	}
	for len(p.queue) > 0 {
		next := p.queue[0]
		p.queue = p.queue[1:]
		p.class(next.name, next.node)
	}
}

// refersTo reports whether a type of t refers to n.
func refersTo(t *tool, n *named) bool {
	seen := map[*node]bool{}
	var visit func(*node) bool
	visit = func(v *node) bool {
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

func (p *pyPrinter) declare(n *named) {
	if n.node.shape == shapeObject && len(n.node.fields) > 0 {
		p.class(n.name, n.node)
		return
	}
	typ := p.typ(n.node, n.name)
	p.remarks(n.node.doc, "")
	p.write(n.name, `: "TypeAlias" = `, pyQuote(typ), "\n\n\n")
}

// class writes an object type as a TypedDict.
func (p *pyPrinter) class(name string, n *node) {
	if !classKeys(n) {
		p.functional(name, n)
		return
	}
	p.write("class ", name, "(TypedDict):\n")
	p.docstring(docLines(n.doc, otherKeys(n), n.note), "    ")
	for _, f := range n.fields {
		typ := p.fieldType(f, name)
		p.remarks(f.node.doc, "    ")
		p.write("    ", f.name, ": ", typ, "\n")
	}
	if len(n.fields) == 0 {
		p.write("    pass\n")
	}
	p.write("\n\n")
}

// classKeys reports whether all keys can be attributes of a class. Python would mangle names with two leading
// underscores.
func classKeys(n *node) bool {
	for _, f := range n.fields {
		if !isIdentifier(f.name) || pythonKeyword[f.name] || strings.Contains(f.name, "$") || strings.HasPrefix(f.name, "__") {
			return false
		}
	}
	return true
}

func (p *pyPrinter) functional(name string, n *node) {
	p.remarks(n.doc, "")
	p.write(name, " = TypedDict(", pyQuote(name), ", {\n")
	for _, f := range n.fields {
		typ := p.fieldType(f, name)
		p.remarks(f.node.doc, "    ")
		p.write("    ", pyQuote(f.name), ": ", pyQuote(typ), ",\n")
	}
	p.write("})\n\n\n")
}

func (p *pyPrinter) fieldType(f field, class string) string {
	typ := p.typ(f.node, class+upperFirst(camel(f.name)))
	if !f.required {
		return "NotRequired[" + typ + "]"
	}
	return typ
}

// otherKeys describes which undeclared keys an object may have.
func otherKeys(n *node) string {
	switch {
	case n.index == nil, n.index.shape == shapeNever, len(n.fields) == 0:
		return ""
	case n.index.isAny():
		return "Other keys may be there."
	}
	text, ok := inline(n.index, 100)
	if !ok {
		text = "more complex"
	}
	return "Other keys have values of type " + text + "."
}

// typ returns a type in Python's syntax. name is used for a class that the type may need.
func (p *pyPrinter) typ(n *node, name string) string {
	if n.note != "" {
		p.notes = append(p.notes, n.note)
	}
	switch n.shape {
	case shapeRef:
		return n.to.name
	case shapeArray:
		return "list[" + p.typ(n.items[0], name+"Item") + "]"
	case shapeTuple:
		return p.tuple(n, name)
	case shapeObject:
		return p.object(n, name)
	case shapeUnion:
		return pythonDialect{}.union(distinct(p.all(n.items, name)))
	case shapeBoth:
		if merged := p.merge(n); merged != nil {
			return p.object(merged, name)
		}
		p.notes = append(p.notes, "all of: "+strings.Join(p.all(n.items, name), ", "))
		return "Any"
	}
	return pyAtom(n)
}

func (p *pyPrinter) all(items []*node, name string) []string {
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = p.typ(item, name+strconv.Itoa(i+1))
	}
	return out
}

func (p *pyPrinter) tuple(n *node, name string) string {
	items := p.all(n.items, name)
	switch {
	case n.rest != nil && len(items) == 0:
		return "list[" + p.typ(n.rest, name+"Item") + "]"
	case n.rest != nil || n.least < len(n.items):
		if n.rest != nil {
			items = append(items, p.typ(n.rest, name+"Item"))
		}
		return "list[" + strings.Join(distinct(items), " | ") + "]"
	case len(items) == 0:
		return "tuple[()]"
	}
	return "tuple[" + strings.Join(items, ", ") + "]"
}

func (p *pyPrinter) object(n *node, name string) string {
	if len(n.fields) == 0 {
		if n.index == nil || n.index.shape == shapeNever {
			return "dict[str, Any]"
		}
		return "dict[str, " + p.typ(n.index, name+"Value") + "]"
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
	return p.names.name(clipTo(p.prefix+"_"+rest, maxClassName))
}

func clipTo(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n])
	}
	return s
}

func isUnion(n *node) bool { return n.shape == shapeUnion }

// merge merges an intersection into one object, or returns nil. Equal parts give the same object, so that recursive
// intersections end.
func (p *pyPrinter) merge(n *node) *node {
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
		object = flat(n)
		p.merged[key.String()] = object
	}
	return object
}

// pyAtom returns a type without parts in Python's syntax.
func pyAtom(n *node) string {
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

func pyLiteral(v *value) string {
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

// remarks writes documentation, and what the last type could not express, as comments.
func (p *pyPrinter) remarks(d doc, indent string) {
	for _, line := range append(docLines(d), p.notes...) {
		p.write(indent, strings.TrimRight("# "+oneLine(line), " "), "\n")
	}
	p.notes = nil
}

// docLines returns the lines of a documentation.
func docLines(d doc, more ...string) []string {
	text := append(lines(d.text), d.tags...)
	for _, m := range more {
		if m != "" {
			text = append(text, m)
		}
	}
	return text
}

func (p *pyPrinter) docstring(text []string, indent string) {
	if len(text) == 0 {
		return
	}
	p.write(indent, `"""`)
	for i, line := range text {
		if i > 0 {
			p.write("\n")
			if line != "" {
				p.write(indent)
			}
		}
		p.write(inDocstring(line))
	}
	if len(text) > 1 {
		p.write("\n", indent)
	}
	p.write("\"\"\"\n")
}

// inDocstring escapes plain text for use in a docstring.
func inDocstring(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
}

// pyToolDoc returns the documentation of a tool and of its input as a whole.
func pyToolDoc(t *core.Tool, types *tool) doc {
	d := toolDoc(t)
	input := types.input.node.doc
	d.tags = append(lines(input.text), append(input.tags, d.tags...)...)
	return d
}

// pyFull returns a tool's Python declarations, preceded by the call.
func pyFull(name string, t *core.Tool) string {
	types := outline(t)
	p := newPyPrinter(types)
	p.remarks(pyToolDoc(t, types), "")
	p.write(name, "(")
	p.stubParameters(types)
	p.write(") -> ", pyResult(types), "\n\n")
	p.declarations(types)
	return strings.ReplaceAll(strings.TrimSpace(p.b.String()), "\n\n\n", "\n") + "\n"
}

// stubParameters writes one parameter per line with its documentation.
func (p *pyPrinter) stubParameters(types *tool) {
	params := keywordParams(types.input.node)
	if params == nil {
		p.write("**arguments: ", types.input.name)
		return
	}
	for _, q := range params {
		typ := p.typ(q.node, p.prefix+"_"+upperFirst(camel(q.name)))
		p.write("\n    ", q.ident, ": ", typ)
		if !q.required {
			p.write(" = ...")
		}
		p.write(",")
		if remark := strings.Join(append(docLines(q.node.doc), p.notes...), " "); remark != "" {
			p.write("  # ", oneLine(remark))
		}
		p.notes = nil
	}
	index := flat(types.input.node).index
	more := index != nil && index.shape != shapeNever
	if more {
		p.write("\n    **", moreParam, ": ", p.typ(index, p.prefix+"_More"), ",")
	}
	if more || len(params) > 0 {
		p.write("\n")
	}
}

func pyResult(types *tool) string {
	if types.output == nil {
		return "Any"
	}
	return types.output.name
}
