package jsonschema

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
)

// compiler makes nodes of a decoded document. It first finds the possible targets of references,
// then makes the nodes that the root reaches.
type compiler struct {
	formats  Formats
	origins  map[string]*origin  // by absolute URI
	begins   map[uintptr]*origin // by the object where a resource begins
	located  int
	nodes    map[uintptr]*node
	made     int
	pending  []pending
	reached  map[*origin]bool
	dynamic  bool
	patterns int // what is left for them
}

// pending represents a reference that is resolved when its schema is made.
type pending struct {
	ref  string
	home *origin
	set  func(to *node, anchor string)
}

var errTooMany = errors.New("the schema has too many subschemas, or too many in each other")

func newCompiler(f Formats) *compiler {
	return &compiler{
		formats: f, origins: map[string]*origin{}, begins: map[uintptr]*origin{}, nodes: map[uintptr]*node{},
		reached: map[*origin]bool{}, patterns: maxPatterns,
	}
}

func (c *compiler) compile(doc any) (*Schema, error) {
	draft := 2020
	switch doc := doc.(type) {
	case map[string]any:
		draft = draftOf(doc, draft)
	case bool:
	default:
		return nil, errors.New("a schema is an object or a boolean")
	}
	base, err := url.Parse(documentURL)
	if err != nil {
		return nil, err
	}
	home := c.begin(doc, base, draft)
	if err := c.locate(doc, home, 0); err != nil {
		return nil, err
	}
	root, err := c.node(doc, home, 0)
	if err == nil {
		err = c.resolveAll()
	}
	return &Schema{root: root, dynamic: c.dynamic}, err
}

// resolveAll makes the targets of references until none is pending.
func (c *compiler) resolveAll() error {
	for {
		for len(c.pending) > 0 {
			p := c.pending[len(c.pending)-1]
			c.pending = c.pending[:len(c.pending)-1]
			to, anchor, err := c.resolve(p.ref, p.home)
			if err != nil {
				return err
			}
			n, err := c.node(to.doc, to.home, 0)
			if err != nil {
				return err
			}
			p.set(n, anchor)
		}
		if !c.dynamic {
			return nil
		}
		if err := c.makeAnchors(); err != nil || len(c.pending) == 0 {
			return err
		}
	}
}

// makeAnchors makes the possible targets of dynamic references.
func (c *compiler) makeAnchors() (err error) {
	for o := range maps.Clone(c.reached) {
		r := o.resource
		if r.recursive && r.root == nil {
			if r.root, err = c.node(r.place.doc, o, 0); err != nil {
				return err
			}
		}
		for name, n := range r.dynamic {
			if n != nil {
				continue
			}
			if r.dynamic[name], err = c.node(r.anchors[name].doc, o, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// node returns the node of a subschema, which it makes once. A value that is not a schema allows
// everything.
func (c *compiler) node(doc any, home *origin, depth int) (*node, error) {
	obj, ok := doc.(map[string]any)
	if !ok {
		if doc == false {
			return never, nil
		}
		return always, nil
	}
	if len(obj) == 0 {
		return always, nil
	}
	id := identity(obj)
	if n := c.nodes[id]; n != nil {
		return n, nil
	}
	if o := c.begins[id]; o != nil {
		home = o
	}
	if c.made++; depth > maxNesting || c.made > maxNodes {
		return nil, errTooMany
	}
	c.reached[home] = true
	n := &node{resource: home.resource}
	c.nodes[id] = n
	b := builder{compiler: c, obj: obj, home: home, depth: depth}
	b.build(n)
	return n, b.err
}

// builder reads the keywords of one subschema. It keeps the first error.
type builder struct {
	*compiler
	obj   map[string]any
	home  *origin
	depth int
	err   error
}

func (b *builder) build(n *node) {
	if ref, ok := b.value("$ref").(string); ok {
		n.refAlone = b.home.draft < 2019
		n.ref = always
		b.refer(ref, func(to *node, _ string) { n.ref = to })
		if n.refAlone {
			return
		}
	}
	n.types = b.types()
	if v, ok := b.obj["const"]; ok && b.home.draft >= since("const") {
		n.constant = &v
	}
	if values, ok := b.value("enum").([]any); ok {
		n.enum = newEnum(values)
	}
	b.groups(n)
	if p, i := b.sub("unevaluatedProperties"), b.sub("unevaluatedItems"); p != nil || i != nil {
		n.uneval = &unevaluatedRules{p, i}
	}
}

// groups makes the rules of the keywords that occur.
func (b *builder) groups(n *node) {
	var there group
	for k := range b.obj {
		there |= groupOf(k)
	}
	if there&ofObjects != 0 {
		n.object = b.object()
	}
	if there&ofArrays != 0 {
		n.array = b.array()
	}
	if there&ofText != 0 {
		n.text = b.text()
	}
	if there&ofNumbers != 0 {
		n.number = b.number()
	}
	if there&ofAny != 0 {
		n.applied = b.applied()
	}
}

// group represents the subject of a keyword.
type group uint8

const (
	ofObjects group = 1 << iota
	ofArrays
	ofText
	ofNumbers
	ofAny
)

func groupOf(keyword string) group {
	switch keyword {
	case "minProperties", "maxProperties", "required", "properties", "patternProperties", "additionalProperties",
		"propertyNames", "dependencies", "dependentSchemas", "dependentRequired":
		return ofObjects
	case "minItems", "maxItems", "uniqueItems", "items", "prefixItems", "contains":
		return ofArrays
	case "minLength", "maxLength", "pattern", "format":
		return ofText
	case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf":
		return ofNumbers
	case "allOf", "anyOf", "oneOf", "not", "if", "$dynamicRef", "$recursiveRef":
		return ofAny
	}
	return 0
}

func (b *builder) refer(ref string, set func(*node, string)) {
	b.pending = append(b.pending, pending{ref: ref, home: b.home, set: set})
}

// types returns the allowed types; 0, which means all, if a name is unknown.
func (b *builder) types() types {
	list, ok := b.value("type").([]any)
	if !ok {
		list = []any{b.value("type")}
	}
	var all types
	for _, v := range list {
		name, _ := v.(string)
		t := typeNamed(name)
		if t == 0 {
			return 0
		}
		all |= t
	}
	return all
}

func (b *builder) object() *objectRules {
	r := &objectRules{least: b.count("minProperties", 0), most: b.count("maxProperties", math.MaxInt)}
	r.required = stringsIn(b.value("required"))
	r.properties = b.subs("properties")
	r.names = slices.Sorted(maps.Keys(r.properties))
	patterns := b.subs("patternProperties")
	for _, source := range sortedKeys(patterns) {
		r.patterns = append(r.patterns, patternRule{b.pattern(source), patterns[source]})
	}
	r.additional = b.sub("additionalProperties")
	r.propertyNames = b.sub("propertyNames")
	r.dependents = b.dependents()
	return r
}

func (b *builder) dependents() (list []dependent) {
	for _, keyword := range []string{"dependencies", "dependentSchemas", "dependentRequired"} {
		all, _ := b.value(keyword).(map[string]any)
		for _, name := range sortedKeys(all) {
			d := dependent{name: name}
			if names, ok := all[name].([]any); ok {
				d.required = stringsIn(names)
			} else if keyword != "dependentRequired" {
				d.node = b.make(all[name])
			}
			list = append(list, d)
		}
	}
	return list
}

func (b *builder) array() *arrayRules {
	r := &arrayRules{least: b.count("minItems", 0), most: b.count("maxItems", math.MaxInt), restKeyword: "items"}
	r.unique, _ = b.value("uniqueItems").(bool)
	if list, ok := b.obj["items"].([]any); ok { // also where the draft has prefixItems instead
		r.prefix = b.list(list)
		r.rest, r.restKeyword = b.sub("additionalItems"), AdditionalItems
	} else {
		r.rest = b.sub("items")
	}
	if list, ok := b.value("prefixItems").([]any); ok {
		r.prefix = b.list(list)
	}
	if r.contains = b.sub("contains"); r.contains != nil {
		r.leastContain, r.mostContain = b.count("minContains", 1), b.count("maxContains", math.MaxInt)
		r.countContain = b.value("minContains") != nil
		r.containEvals = b.home.draft >= 2020
	}
	return r
}

func (b *builder) text() *textRules {
	r := &textRules{least: b.count("minLength", 0), most: b.count("maxLength", math.MaxInt)}
	if source, ok := b.value("pattern").(string); ok {
		r.pattern = b.pattern(source)
	}
	if name, ok := b.value("format").(string); ok {
		r.formatName, r.format = name, b.formats[name]
	}
	if r.least == 0 && r.most == math.MaxInt && r.pattern == nil && r.format == nil {
		return nil
	}
	return r
}

func (b *builder) pattern(source string) (p *pattern) {
	p, b.patterns = newPattern(source, b.patterns)
	return p
}

// number reads the rules for numbers, including the boolean exclusive bounds of draft-04.
func (b *builder) number() *numberRules {
	r := &numberRules{
		minimum: b.bound("minimum"), exclusiveMinimum: b.bound("exclusiveMinimum"),
		maximum: b.bound("maximum"), exclusiveMaximum: b.bound("exclusiveMaximum"), multipleOf: b.bound("multipleOf"),
	}
	if b.obj["exclusiveMinimum"] == true {
		r.minimum, r.exclusiveMinimum = nil, r.minimum
	}
	if b.obj["exclusiveMaximum"] == true {
		r.maximum, r.exclusiveMaximum = nil, r.maximum
	}
	return r
}

func (b *builder) bound(keyword string) *bound {
	n, ok := b.value(keyword).(json.Number)
	if !ok {
		return nil
	}
	return &bound{n, parseDecimal(string(n))}
}

func (b *builder) applied() *appliedRules {
	r := &appliedRules{
		not: b.sub("not"), when: b.sub("if"), yes: b.sub("then"), no: b.sub("else"),
		allOf: b.all("allOf"), anyOf: b.all("anyOf"), oneOf: b.all("oneOf"),
	}
	if ref, ok := b.value("$dynamicRef").(string); ok {
		r.dynamicRef = b.dynamicRef(ref)
	} else if ref, ok := b.value("$recursiveRef").(string); ok && b.home.draft == 2019 {
		r.dynamicRef = b.dynamicRef(ref)
		r.dynamicRef.recursive = true
	}
	return r
}

// dynamicRef reads a dynamic reference. It is dynamic only if its first target is a dynamic anchor.
func (b *builder) dynamicRef(ref string) *dynamicRef {
	b.compiler.dynamic = true
	r, c := &dynamicRef{target: always}, b.compiler
	b.refer(ref, func(to *node, anchor string) {
		r.target = to
		if to.resource == nil {
			r.recursive = false
			return
		}
		if _, ok := to.resource.dynamic[anchor]; ok && c.isAnchor(to, anchor) {
			r.anchor = anchor
		}
		r.recursive = r.recursive && to.resource.recursive
	})
	return r
}

// isAnchor reports whether n carries the dynamic anchor name.
func (c *compiler) isAnchor(n *node, name string) bool {
	obj, ok := n.resource.anchors[name].doc.(map[string]any)
	return ok && c.nodes[identity(obj)] == n && obj["$dynamicAnchor"] == name
}

// value returns the value of a keyword, nil if the draft does not have the keyword.
func (b *builder) value(keyword string) any { return b.home.value(b.obj, keyword) }

// sub returns the node of a keyword that holds a schema, or nil.
func (b *builder) sub(keyword string) *node {
	v := b.value(keyword)
	switch v.(type) {
	case bool, map[string]any:
		return b.make(v)
	}
	return nil
}

func (b *builder) make(doc any) *node {
	n, err := b.node(doc, b.home, b.depth+1)
	if err != nil && b.err == nil {
		b.err = err
	}
	return n
}

func (b *builder) all(keyword string) []*node {
	list, _ := b.value(keyword).([]any)
	return b.list(list)
}

func (b *builder) list(docs []any) []*node {
	var nodes []*node
	for _, doc := range docs {
		nodes = append(nodes, b.make(doc))
	}
	return nodes
}

func (b *builder) subs(keyword string) map[string]*node {
	docs, ok := b.value(keyword).(map[string]any)
	if !ok {
		return nil
	}
	nodes := make(map[string]*node, len(docs))
	for _, name := range sortedKeys(docs) {
		nodes[name] = b.make(docs[name])
	}
	return nodes
}

// count returns the whole number of a keyword; 2.0 counts as 2.
func (b *builder) count(keyword string, otherwise int) int {
	n, ok := b.value(keyword).(json.Number)
	if !ok {
		return otherwise
	}
	d := parseDecimal(string(n))
	if d.negative || !d.integer() {
		return otherwise
	}
	count := 0
	for _, digit := range d.digits {
		if count > math.MaxInt/100 {
			return math.MaxInt
		}
		count = count*10 + int(digit-'0')
	}
	for range d.exp {
		if count == 0 || count > math.MaxInt/100 {
			break
		}
		count *= 10
	}
	return count
}

func stringsIn(v any) (list []string) {
	values, _ := v.([]any)
	for _, v := range values {
		if s, ok := v.(string); ok {
			list = append(list, s)
		}
	}
	return list
}

func sortedKeys[T any](m map[string]T) []string { return slices.Sorted(maps.Keys(m)) }
