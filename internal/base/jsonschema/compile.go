package jsonschema

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"net/url"
	"slices"
)

// schemaCompiler compiles a decoded document. It first finds all possible targets of references. It then builds the
// nodes that can be reached from the root.
type schemaCompiler struct {
	formats  FormatCheckers
	origins  map[string]*resourceOrigin  // origins by absolute URI
	begins   map[uintptr]*resourceOrigin // origins by the identity of the object at which their resource begins
	located  int
	nodes    map[uintptr]*schemaNode
	made     int
	pending  []pendingRef
	reached  map[*resourceOrigin]bool
	dynamic  bool
	patterns int // number of instructions that further patterns may use
}

// pendingRef represents a reference in a node that is already built. The target of the reference is resolved later.
type pendingRef struct {
	ref  string
	home *resourceOrigin
	set  func(to *schemaNode, anchor string)
}

var errTooMany = errors.New("the schema has too many subschemas, or they are nested too deeply")

func newCompiler(f FormatCheckers) *schemaCompiler {
	return &schemaCompiler{
		formats: f, origins: map[string]*resourceOrigin{}, begins: map[uintptr]*resourceOrigin{}, nodes: map[uintptr]*schemaNode{},
		reached: map[*resourceOrigin]bool{}, patterns: maxPatterns,
	}
}

func (c *schemaCompiler) compileDocument(doc any) (*Schema, error) {
	draft := 2020
	switch doc := doc.(type) {
	case map[string]any:
		draft = draftOf(doc, draft)
	case bool:
	default:
		return nil, errors.New("a schema must be an object or a boolean")
	}
	base, err := url.Parse(documentURL)
	if err != nil {
		return nil, err
	}
	home := c.beginResource(doc, base, draft)
	if err := c.locateResources(doc, home, 0); err != nil {
		return nil, err
	}
	root, err := c.compileNode(doc, home, 0)
	if err == nil {
		err = c.resolveAll()
	}
	return &Schema{root: root, dynamic: c.dynamic}, err
}

// resolveAll builds the targets of references until none is pending.
func (c *schemaCompiler) resolveAll() error {
	for {
		for len(c.pending) > 0 {
			p := c.pending[len(c.pending)-1]
			c.pending = c.pending[:len(c.pending)-1]
			to, anchor, err := c.resolveReference(p.ref, p.home)
			if err != nil {
				return err
			}
			n, err := c.compileNode(to.doc, to.home, 0)
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

// makeAnchors builds the nodes that may be targets of dynamic references.
func (c *schemaCompiler) makeAnchors() (err error) {
	for o := range maps.Clone(c.reached) {
		r := o.resource
		if r.recursive && r.root == nil {
			if r.root, err = c.compileNode(r.place.doc, o, 0); err != nil {
				return err
			}
		}
		for name, n := range r.dynamic {
			if n != nil {
				continue
			}
			if r.dynamic[name], err = c.compileNode(r.anchors[name].doc, o, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// compileNode returns the node of a subschema. It builds the node on the first call. For a value that is not a schema
// it returns a node that accepts everything.
func (c *schemaCompiler) compileNode(doc any, home *resourceOrigin, depth int) (*schemaNode, error) {
	obj, ok := doc.(map[string]any)
	if !ok {
		if doc == false {
			return noneNode, nil
		}
		return anyNode, nil
	}
	if len(obj) == 0 {
		return anyNode, nil
	}
	id := mapIdentity(obj)
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
	n := &schemaNode{resource: home.resource}
	c.nodes[id] = n
	b := nodeBuilder{schemaCompiler: c, obj: obj, home: home, depth: depth}
	b.buildRules(n)
	return n, b.err
}

// nodeBuilder builds the node of one subschema from its keywords. It keeps the first error.
type nodeBuilder struct {
	*schemaCompiler
	obj   map[string]any
	home  *resourceOrigin
	depth int
	err   error
}

func (b *nodeBuilder) buildRules(n *schemaNode) {
	if ref, ok := b.keywordValue("$ref").(string); ok {
		n.refAlone = b.home.draft < 2019
		n.ref = anyNode
		b.addReference(ref, func(to *schemaNode, _ string) { n.ref = to })
		if n.refAlone {
			return
		}
	}
	n.types = b.allowedTypes()
	if v, ok := b.obj["const"]; ok && b.home.draft >= firstDraft("const") {
		n.constant = &v
	}
	if values, ok := b.keywordValue("enum").([]any); ok {
		n.enum = newEnum(values)
	}
	b.buildGroups(n)
	if p, i := b.subschemaNode("unevaluatedProperties"), b.subschemaNode("unevaluatedItems"); p != nil || i != nil {
		n.uneval = &unevaluatedRules{p, i}
	}
}

// buildGroups builds the rules for each keywordGroup that occurs in the subschema.
func (b *nodeBuilder) buildGroups(n *schemaNode) {
	var there keywordGroup
	for k := range b.obj {
		there |= groupOf(k)
	}
	if there&ofObjects != 0 {
		n.object = b.objectRules()
	}
	if there&ofArrays != 0 {
		n.array = b.arrayRules()
	}
	if there&ofText != 0 {
		n.text = b.textRules()
	}
	if there&ofNumbers != 0 {
		n.number = b.numberRules()
	}
	if there&ofAny != 0 {
		n.applied = b.appliedRules()
	}
}

// keywordGroup is a set of groups of keywords. There is a group for objects, arrays, strings and numbers each, and a
// group for values of any type.
type keywordGroup uint8

const (
	ofObjects keywordGroup = 1 << iota
	ofArrays
	ofText
	ofNumbers
	ofAny
)

func groupOf(keyword string) keywordGroup {
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

func (b *nodeBuilder) addReference(ref string, set func(*schemaNode, string)) {
	b.pending = append(b.pending, pendingRef{ref: ref, home: b.home, set: set})
}

// allowedTypes returns the types that the keyword "type" allows. If it names an unknown type, allowedTypes returns 0,
// which allows all types.
func (b *nodeBuilder) allowedTypes() typeSet {
	list, ok := b.keywordValue("type").([]any)
	if !ok {
		list = []any{b.keywordValue("type")}
	}
	var all typeSet
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

func (b *nodeBuilder) objectRules() *objectRules {
	r := &objectRules{least: b.countOf("minProperties", 0), most: b.countOf("maxProperties", math.MaxInt)}
	r.required = stringsIn(b.keywordValue("required"))
	r.properties = b.nodesByName("properties")
	r.names = slices.Sorted(maps.Keys(r.properties))
	patterns := b.nodesByName("patternProperties")
	for _, source := range sortedKeys(patterns) {
		r.patterns = append(r.patterns, patternRule{b.buildPattern(source), patterns[source]})
	}
	r.additional = b.subschemaNode("additionalProperties")
	r.propertyNames = b.subschemaNode("propertyNames")
	r.dependents = b.buildDependents()
	return r
}

func (b *nodeBuilder) buildDependents() (list []dependentRule) {
	for _, keyword := range []string{"dependencies", "dependentSchemas", "dependentRequired"} {
		all, _ := b.keywordValue(keyword).(map[string]any)
		for _, name := range sortedKeys(all) {
			d := dependentRule{name: name}
			if names, ok := all[name].([]any); ok {
				d.required = stringsIn(names)
			} else if keyword != "dependentRequired" {
				d.node = b.makeNode(all[name])
			}
			list = append(list, d)
		}
	}
	return list
}

func (b *nodeBuilder) arrayRules() *arrayRules {
	r := &arrayRules{least: b.countOf("minItems", 0), most: b.countOf("maxItems", math.MaxInt), restKeyword: "items"}
	r.unique, _ = b.keywordValue("uniqueItems").(bool)
	if list, ok := b.obj["items"].([]any); ok { // also where the draft has prefixItems instead
		r.prefix = b.makeNodes(list)
		r.rest, r.restKeyword = b.subschemaNode("additionalItems"), AdditionalItems
	} else {
		r.rest = b.subschemaNode("items")
	}
	if list, ok := b.keywordValue("prefixItems").([]any); ok {
		r.prefix = b.makeNodes(list)
	}
	if r.contains = b.subschemaNode("contains"); r.contains != nil {
		r.leastContain, r.mostContain = b.countOf("minContains", 1), b.countOf("maxContains", math.MaxInt)
		r.countContain = b.keywordValue("minContains") != nil
		r.containEvals = b.home.draft >= 2020
	}
	return r
}

func (b *nodeBuilder) textRules() *textRules {
	r := &textRules{least: b.countOf("minLength", 0), most: b.countOf("maxLength", math.MaxInt)}
	if source, ok := b.keywordValue("pattern").(string); ok {
		r.pattern = b.buildPattern(source)
	}
	if name, ok := b.keywordValue("format").(string); ok {
		r.formatName, r.format = name, b.formats[name]
	}
	if r.least == 0 && r.most == math.MaxInt && r.pattern == nil && r.format == nil {
		return nil
	}
	return r
}

func (b *nodeBuilder) buildPattern(source string) (p *compiledPattern) {
	p, b.patterns = newPattern(source, b.patterns)
	return p
}

// numberRules reads the keywords for numbers, including draft-04's boolean exclusiveMinimum and exclusiveMaximum.
func (b *nodeBuilder) numberRules() *numberRules {
	r := &numberRules{
		minimum: b.buildBound("minimum"), exclusiveMinimum: b.buildBound("exclusiveMinimum"),
		maximum: b.buildBound("maximum"), exclusiveMaximum: b.buildBound("exclusiveMaximum"), multipleOf: b.buildBound("multipleOf"),
	}
	if b.obj["exclusiveMinimum"] == true {
		r.minimum, r.exclusiveMinimum = nil, r.minimum
	}
	if b.obj["exclusiveMaximum"] == true {
		r.maximum, r.exclusiveMaximum = nil, r.maximum
	}
	return r
}

func (b *nodeBuilder) buildBound(keyword string) *numberBound {
	n, ok := b.keywordValue(keyword).(json.Number)
	if !ok {
		return nil
	}
	return &numberBound{n, parseDecimal(string(n))}
}

func (b *nodeBuilder) appliedRules() *appliedRules {
	r := &appliedRules{
		not: b.subschemaNode("not"), when: b.subschemaNode("if"), yes: b.subschemaNode("then"), no: b.subschemaNode("else"),
		allOf: b.nodesOf("allOf"), anyOf: b.nodesOf("anyOf"), oneOf: b.nodesOf("oneOf"),
	}
	if ref, ok := b.keywordValue("$dynamicRef").(string); ok {
		r.dynamicRef = b.dynamicRef(ref)
	} else if ref, ok := b.keywordValue("$recursiveRef").(string); ok && b.home.draft == 2019 {
		r.dynamicRef = b.dynamicRef(ref)
		r.dynamicRef.recursive = true
	}
	return r
}

// dynamicRef reads a dynamic reference. If its initial target is not a dynamic anchor, the reference behaves like an
// ordinary $ref.
func (b *nodeBuilder) dynamicRef(ref string) *dynamicRef {
	b.schemaCompiler.dynamic = true
	r, c := &dynamicRef{target: anyNode}, b.schemaCompiler
	b.addReference(ref, func(to *schemaNode, anchor string) {
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

// isAnchor reports whether n is the subschema whose $dynamicAnchor has the given name.
func (c *schemaCompiler) isAnchor(n *schemaNode, name string) bool {
	obj, ok := n.resource.anchors[name].doc.(map[string]any)
	return ok && c.nodes[mapIdentity(obj)] == n && obj["$dynamicAnchor"] == name
}

// keywordValue returns the value of a keyword, or nil if the draft does not define the keyword.
func (b *nodeBuilder) keywordValue(keyword string) any { return b.home.keywordValue(b.obj, keyword) }

// subschemaNode returns the node of the subschema that is a keyword's value. It returns nil if the keyword is missing
// or its value is not a schema.
func (b *nodeBuilder) subschemaNode(keyword string) *schemaNode {
	v := b.keywordValue(keyword)
	switch v.(type) {
	case bool, map[string]any:
		return b.makeNode(v)
	}
	return nil
}

func (b *nodeBuilder) makeNode(doc any) *schemaNode {
	n, err := b.compileNode(doc, b.home, b.depth+1)
	if err != nil && b.err == nil {
		b.err = err
	}
	return n
}

func (b *nodeBuilder) nodesOf(keyword string) []*schemaNode {
	list, _ := b.keywordValue(keyword).([]any)
	return b.makeNodes(list)
}

func (b *nodeBuilder) makeNodes(docs []any) []*schemaNode {
	var nodes []*schemaNode
	for _, doc := range docs {
		nodes = append(nodes, b.makeNode(doc))
	}
	return nodes
}

func (b *nodeBuilder) nodesByName(keyword string) map[string]*schemaNode {
	docs, ok := b.keywordValue(keyword).(map[string]any)
	if !ok {
		return nil
	}
	nodes := make(map[string]*schemaNode, len(docs))
	for _, name := range sortedKeys(docs) {
		nodes[name] = b.makeNode(docs[name])
	}
	return nodes
}

// countOf returns the value of a keyword as an integer; 2.0 counts as 2. If the value is missing or not a non-negative
// integer, it returns otherwise.
func (b *nodeBuilder) countOf(keyword string, otherwise int) int {
	n, ok := b.keywordValue(keyword).(json.Number)
	if !ok {
		return otherwise
	}
	d := parseDecimal(string(n))
	if d.negative || !d.isInteger() {
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
