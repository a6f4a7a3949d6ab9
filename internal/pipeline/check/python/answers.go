package python

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// takenKey describes a place where a program reads a key of a tool's result, as in issues[0]["title"] or
// issue.get("title").
type takenKey struct {
	key   string
	path  []accessStep
	from  nodeID // the call
	tried bool   // with get, or with a default
	sourcePlace
}

// accessStep describes one step from a value to a part of that value: to what is stored under a key, or to a list
// item if the key is empty.
type accessStep struct{ key string }

// Bounds on following values through a program: maxTaken on the number of keys that are examined, maxPath on the
// length of the path to each key, maxBound on the number of places where a name is bound, and maxSteps on the total
// work.
const (
	maxTaken = 500
	maxPath  = 24
	maxBound = 16
	maxSteps = 20_000
)

// valueFlow determines from which calls the values of names come. It ignores the order of statements, so it gives up
// on a name that is bound to values of different origin.
type valueFlow struct {
	s     *syntaxTree
	bound map[textID][]nameOrigin
	left  int // steps
}

// nameOrigin describes the expression that a name is bound to. If element is set, the name is bound to an item of the
// expression's value, as in a for statement.
type nameOrigin struct {
	value   nodeID // 0: it is not known
	element bool   // an item of the value
}

// takenOf returns the places where a program takes keys from the results of tool calls.
func takenOf(v *factVisitor) (found []takenKey) {
	f := &valueFlow{s: v.s, bound: map[textID][]nameOrigin{}, left: maxSteps}
	f.findBindings()
	for id := nodeID(1); int(id) < len(v.s.nodes) && len(found) < maxTaken; id++ {
		value, key, tried := f.keyLookup(id)
		if value == 0 {
			continue
		}
		if path, from := f.followValue(value, 0); from != 0 {
			found = append(found, takenKey{key, path, from, tried, v.nodePlace(id)})
		}
	}
	return found
}

// keyLookup returns the node of value and the key, if an expression has the form value["key"] or value.get("key")
// with a literal key. For other expressions, it returns 0.
func (f *valueFlow) keyLookup(id nodeID) (value nodeID, key string, tried bool) {
	switch f.s.classOf(id) {
	case classSubscript:
		if index := f.s.childNode(id, fieldSlice); f.s.isText(index) && f.s.fieldSymbol(id, fieldContext) == classLoad {
			return f.s.childNode(id, fieldValue), f.s.fieldString(index, fieldValue), false
		}
	case classCall:
		called, args := f.s.childNode(id, fieldFunc), f.s.fieldList(id, fieldArgs)
		if len(args) > 0 && f.s.classOf(called) == classAttribute && f.s.fieldString(called, fieldAttr) == "get" && f.s.isText(nodeOf(args[0])) {
			return f.s.childNode(called, fieldValue), f.s.fieldString(nodeOf(args[0]), fieldValue), true
		}
	}
	return 0, "", false
}

// findBindings records for each name which expressions it is bound to.
func (f *valueFlow) findBindings() {
	known := map[nodeID]nameOrigin{} // by the node of the name
	for id := nodeID(1); int(id) < len(f.s.nodes); id++ {
		switch f.s.classOf(id) {
		case classAssign:
			for _, target := range f.s.fieldList(id, fieldTargets) {
				known[nodeOf(target)] = nameOrigin{f.s.childNode(id, fieldValue), false}
			}
		case classAnnAssign, classNamedExpr:
			known[f.s.childNode(id, fieldTarget)] = nameOrigin{f.s.childNode(id, fieldValue), false}
		case classFor, classAsyncFor:
			known[f.s.childNode(id, fieldTarget)] = nameOrigin{f.s.childNode(id, fieldIter), true}
		case classListComp, classSetComp, classDictComp, classGeneratorExp:
			for _, g := range f.s.fieldList(id, fieldGenerators) {
				known[f.s.childNode(nodeOf(g), fieldTarget)] = nameOrigin{f.s.childNode(nodeOf(g), fieldIter), true}
			}
		}
	}
	for id := nodeID(1); int(id) < len(f.s.nodes); id++ {
		switch c := f.s.classOf(id); {
		case c == className && f.s.fieldSymbol(id, fieldContext) != classLoad:
			f.bindName(f.s.fieldText(id, fieldID), known[id])
		case c == classArg:
			f.bindName(f.s.fieldText(id, fieldArg), nameOrigin{})
		case c == classFunctionDef, c == classAsyncFunctionDef, c == classClassDef, c == classExceptHandler,
			c == classMatchAs, c == classMatchStar:
			f.bindName(f.s.fieldText(id, fieldName), nameOrigin{})
		}
	}
}

func (f *valueFlow) bindName(name textID, to nameOrigin) {
	if len(f.bound[name]) <= maxBound {
		f.bound[name] = append(f.bound[name], to)
	}
}

// followValue follows an expression back to the call that its value comes from. It returns the path from the call's
// result to the value.
func (f *valueFlow) followValue(id nodeID, depth int) (path []accessStep, from nodeID) {
	if f.left--; depth > maxPath || id == 0 || f.left < 0 {
		return nil, 0
	}
	var last []accessStep
	next := nodeID(0)
	switch f.s.classOf(id) {
	case classAwait:
		next = f.s.childNode(id, fieldValue)
	case className:
		return f.followName(f.s.fieldText(id, fieldID), depth)
	case classSubscript:
		next, last = f.followSubscript(id)
	case classCall:
		if next, last = f.followPassing(id); next == 0 {
			return nil, id
		}
	}
	return f.followFurther(next, last, depth)
}

func (f *valueFlow) followFurther(next nodeID, last []accessStep, depth int) (path []accessStep, from nodeID) {
	if path, from = f.followValue(next, depth+1); len(path)+len(last) > maxPath {
		return nil, 0
	}
	return append(path, last...), from
}

// followName returns the origin of a name's value if all its bindings have the same origin.
func (f *valueFlow) followName(name textID, depth int) (path []accessStep, from nodeID) {
	all := f.bound[name]
	if len(all) > maxBound {
		return nil, 0
	}
	for i, o := range all {
		var last []accessStep
		if o.element {
			last = []accessStep{{}}
		}
		way, call := f.followFurther(o.value, last, depth)
		if call == 0 || i > 0 && (call != from || !slices.Equal(way, path)) {
			return nil, 0
		}
		path, from = way, call
	}
	return path, from
}

// followSubscript takes an expression like value["key"], value[0] or value[1:] apart. It returns the node of value,
// and the step from there to the part that the expression selects. A slice such as value[1:] needs no step.
func (f *valueFlow) followSubscript(id nodeID) (value nodeID, last []accessStep) {
	value, index := f.s.childNode(id, fieldValue), f.s.childNode(id, fieldSlice)
	if f.s.isText(index) {
		return value, []accessStep{{f.s.fieldString(index, fieldValue)}}
	}
	switch f.s.classOf(index) {
	case classSlice:
		return value, nil
	case classConstant, classUnaryOp:
		return value, []accessStep{{}}
	}
	return 0, nil
}

// followPassing returns the argument or object from which a call gets its result: the node of value for
// value.get("key") or sorted(value). It also returns the step from there to the result, if there is one. It returns 0
// for calls that it does not know.
func (f *valueFlow) followPassing(id nodeID) (value nodeID, last []accessStep) {
	if value, key, _ := f.keyLookup(id); value != 0 {
		return value, []accessStep{{key}}
	}
	called, args := f.s.childNode(id, fieldFunc), f.s.fieldList(id, fieldArgs)
	if f.s.classOf(called) != className || len(args) == 0 {
		return 0, nil
	}
	switch f.s.fieldString(called, fieldID) {
	case "sorted", "list", "reversed", "tuple":
		return nodeOf(args[0]), nil
	case "next", "min", "max":
		if len(args) == 1 {
			return nodeOf(args[0]), []accessStep{{}}
		}
	}
	return 0, nil
}

const (
	maxWarnings    = 5
	maxWarningSize = 200 // code points
)

// adviseAnswers returns warnings about fields that the program reads but that no earlier result of the tool had.
func (p *pythonProgram) adviseAnswers() []string {
	calls := p.learnedAnswers()
	if len(calls) == 0 {
		return nil
	}
	var said []string
	for _, k := range p.facts.taken() {
		a, ok := calls[k.from]
		if !ok || len(said) == maxWarnings {
			continue
		}
		text := p.adviseKey(a.tool, a.schema, k)
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// adviseKey returns a warning if a program reads a key that no earlier result of the tool had. Otherwise it returns
// "". The argument at is the inferred schema of the value of the call.
func (p *pythonProgram) adviseKey(t *core.Tool, at answerSchema, k takenKey) string {
	for _, s := range k.path {
		at = at.stepInto(s.key)
	}
	u, ok := at.lacksKey(k.key)
	if !ok {
		return ""
	}
	u.Tool, u.Tried = t, k.tried
	name := t.Python
	if s, ok := p.tools.FindServer(t.Server); ok {
		name = s.Python + "." + t.Python
	}
	if !u.IsTelling() {
		return ""
	}
	text := []rune(fmt.Sprintf("line %d: %s", k.Line+p.lines, u.WarningText(name)))
	if len(text) > maxWarningSize {
		text = append(text[:maxWarningSize], '…')
	}
	return string(text)
}

// answerSchema is the inferred schema of a value in a tool's result. The zero value accepts everything.
type answerSchema struct {
	Type                 any
	Properties           map[string]answerSchema
	Required             []string
	Items                *answerSchema
	AdditionalProperties json.RawMessage
	PatternProperties    json.RawMessage
}

func answerOf(schema []byte) (a answerSchema) {
	_ = json.Unmarshal(schema, &a) // an invalid schema accepts anything
	return a
}

func (a answerSchema) stepInto(key string) answerSchema {
	switch {
	case key != "":
		return a.Properties[key]
	case a.Items != nil:
		return *a.Items
	}
	return answerSchema{}
}

// lacksKey reports whether a value is known not to have a key, because it is a list, or an object whose fields are
// all known. It also returns the facts for a warning about the key.
func (a answerSchema) lacksKey(key string) (source.UnknownField, bool) {
	u := source.UnknownField{Name: key}
	for name := range a.Properties {
		u.Has = append(u.Has, name)
	}
	slices.Sort(u.Has)
	u.Loose = 2*len(a.Required) < len(u.Has)
	u.List = a.Type == "array"
	if u.List {
		return u, true
	}
	plain := !strings.ContainsFunc(key, func(r rune) bool { return r == ' ' || r == '-' || r == '.' || r == '/' || r == '@' || r == ':' })
	_, has := a.Properties[key]
	known := a.Type == "object" && len(u.Has) > 0 && a.AdditionalProperties == nil && (a.PatternProperties == nil || plain)
	return u, known && !has
}
