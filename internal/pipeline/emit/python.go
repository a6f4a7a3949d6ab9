package emit

import (
	"strconv"
	"strings"

	"retort/internal/run"
)

// keywordParams are the parameters of a Python function for an input, those
// that are needed first; nil if the input is not simply an object.
func keywordParams(input *node) []param {
	if input.shape != shapeObject {
		return nil
	}
	taken := map[string]bool{}
	params := []param{}
	for _, required := range []bool{true, false} {
		for _, f := range input.fields {
			if f.required != required {
				continue
			}
			ident := f.name
			if !isIdentifier(ident) || strings.Contains(ident, "$") {
				ident = safe(snake(ident), "argument", pythonReserved)
			}
			if pythonKeyword[ident] || ident == moreParam {
				ident += "_"
			}
			for n, base := 2, ident; taken[ident]; n++ {
				ident = base + "_" + strconv.Itoa(n)
			}
			taken[ident] = true
			params = append(params, param{f, ident})
		}
	}
	return params
}

// moreParam collects the arguments without a declaration.
const moreParam = "more"

// pyPrinter writes Python. Types within types have no place in Python: those
// that it meets on its way wait in queue, to be written as classes.
type pyPrinter struct {
	b       strings.Builder
	prefix  string
	taken   map[string]bool
	classes map[*node]string
	queue   []pyClass
	notes   []string // what the last type could not say
}

// pyClass is an object type with the name of its class.
type pyClass struct {
	name string
	node *node
}

func newPyPrinter(t *tool) *pyPrinter {
	p := &pyPrinter{prefix: t.prefix, taken: map[string]bool{t.input.name: true}, classes: map[*node]string{}}
	if t.output != nil {
		p.taken[t.output.name] = true
	}
	for _, n := range t.names {
		p.taken[n.name] = true
	}
	return p
}

func (p *pyPrinter) write(parts ...string) {
	for _, s := range parts {
		p.b.WriteString(s)
	}
}

// declarations writes all types of a tool but the input that is written as
// parameters.
func (p *pyPrinter) declarations(t *tool) {
	if keywordParams(t.input.node) == nil || refersTo(t, t.input) {
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

// refersTo tells whether some type of t names n.
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

// classKeys tells whether all keys can be attributes of a class. Names with two
// leading underscores would be changed by Python.
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

// otherKeys says in words which undeclared keys an object has.
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

// typ is a type as Python writes it; name is for the class that it may need.
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
		return pythonDialect{}.union(p.all(n.items, name))
	case shapeBoth:
		if merged := merge(n); merged != nil {
			return p.object(merged, name)
		}
		p.notes = append(p.notes, "all of: "+strings.Join(p.all(n.items, name), ", "))
		return "Any"
	}
	return pyAtom(n)
}

func (p *pyPrinter) all(items []*node, name string) []string {
	var out []string
	for i, item := range items {
		text := p.typ(item, name+strconv.Itoa(i+1))
		if len(out) == 0 || out[len(out)-1] != text {
			out = append(out, text)
		}
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
		return "list[" + strings.Join(items, " | ") + "]"
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
	if class, ok := p.classes[n]; ok {
		return class
	}
	class := p.className(name)
	p.classes[n] = class
	p.queue = append(p.queue, pyClass{class, n})
	return class
}

const maxClassName = 100

func (p *pyPrinter) className(name string) string {
	rest := strings.ReplaceAll(strings.TrimPrefix(name, p.prefix), "_", "")
	base := clipTo(p.prefix+"_"+rest, maxClassName)
	class := base
	for i := 2; p.taken[class]; i++ {
		class = base + strconv.Itoa(i)
	}
	p.taken[class] = true
	return class
}

func clipTo(s string, n int) string {
	if rs := []rune(s); len(rs) > n {
		return string(rs[:n])
	}
	return s
}

// merge is an intersection of plain objects as one object, nil if it is none.
func merge(n *node) *node {
	out := &node{shape: shapeObject, doc: n.doc}
	at := map[string]int{}
	for _, item := range n.items {
		if item.shape == shapeRef {
			item = item.to.node
		}
		if item.shape != shapeObject {
			return nil
		}
		for _, f := range item.fields {
			i, there := at[f.name]
			if !there {
				at[f.name] = len(out.fields)
				out.fields = append(out.fields, f)
				continue
			}
			had := out.fields[i]
			out.fields[i] = field{f.name, had.required || f.required, both(had.node, f.node)}
		}
		if out.index == nil {
			out.index = item.index
		}
	}
	return out
}

// pyAtom is a type without parts.
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

// remarks writes documentation, and what the last type could not say, as
// comments.
func (p *pyPrinter) remarks(d doc, indent string) {
	for _, line := range append(docLines(d), p.notes...) {
		p.write(indent, strings.TrimRight("# "+oneLine(line), " "), "\n")
	}
	p.notes = nil
}

// docLines are the lines of documentation.
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

// inDocstring makes plain text harmless inside of a docstring.
func inDocstring(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`)
}

// pyFull is a tool's Python with the call in front.
func pyFull(name string, t *run.Tool) string {
	types := describe(t)
	p := newPyPrinter(types)
	p.remarks(toolDoc(t), "")
	p.write(name, "(")
	p.stubParameters(types)
	p.write(") -> ", pyResult(types), "\n\n")
	p.declarations(types)
	return strings.ReplaceAll(strings.TrimSpace(p.b.String()), "\n\n\n", "\n") + "\n"
}

// stubParameters writes one parameter per line with what is said of it.
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
	if types.input.node.index != nil && types.input.node.index.shape != shapeNever {
		p.write("\n    **", moreParam, ": ", p.typ(types.input.node.index, p.prefix+"_More"), ",")
	}
	if len(params) > 0 {
		p.write("\n")
	}
}

func pyResult(types *tool) string {
	if types.output == nil {
		return "Any"
	}
	return types.output.name
}
