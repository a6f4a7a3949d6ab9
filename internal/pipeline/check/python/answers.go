package python

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// taken describes a key that a program reads from a tool's answer, as in issues[0]["title"] and issue.get("title").
type taken struct {
	key   string
	path  []step
	from  nodeID // the call
	tried bool   // with get, or with a default
	place
}

// step leads from an answer to a part of it: to the value of a key, or to a list item if the key is empty.
type step struct{ key string }

// maxTaken bounds the keys that are examined, maxPath how far each is followed, maxBound the places where a name is
// bound, and maxSteps the total work.
const (
	maxTaken = 500
	maxPath  = 24
	maxBound = 16
	maxSteps = 20_000
)

// flow knows where the values of names come from. It ignores the order of statements: a name bound to different
// things is not followed at all.
type flow struct {
	s     *syntax
	bound map[textID][]origin
	left  int // steps
}

// origin describes what a name is bound to.
type origin struct {
	value   nodeID // 0: it is not known
	element bool   // an item of the value
}

// takenOf finds the keys that a program reads from values that come from a call.
func takenOf(v *visitor) (found []taken) {
	f := &flow{s: v.s, bound: map[textID][]origin{}, left: maxSteps}
	f.bindings()
	for id := nodeID(1); int(id) < len(v.s.nodes) && len(found) < maxTaken; id++ {
		value, key, tried := f.lookup(id)
		if value == 0 {
			continue
		}
		if path, from := f.follow(value, 0); from != 0 {
			found = append(found, taken{key, path, from, tried, v.place(id)})
		}
	}
	return found
}

// lookup returns the value and the literal key of value["key"] or value.get("key").
func (f *flow) lookup(id nodeID) (value nodeID, key string, tried bool) {
	switch f.s.class(id) {
	case classSubscript:
		if index := f.s.node(id, fieldSlice); f.s.isText(index) && f.s.symbol(id, fieldContext) == classLoad {
			return f.s.node(id, fieldValue), f.s.word(index, fieldValue), false
		}
	case classCall:
		called, args := f.s.node(id, fieldFunc), f.s.list(id, fieldArgs)
		if len(args) > 0 && f.s.class(called) == classAttribute && f.s.word(called, fieldAttr) == "get" && f.s.isText(nodeOf(args[0])) {
			return f.s.node(called, fieldValue), f.s.word(nodeOf(args[0]), fieldValue), true
		}
	}
	return 0, "", false
}

// bindings finds what names are bound to.
func (f *flow) bindings() {
	known := map[nodeID]origin{} // by the node of the name
	for id := nodeID(1); int(id) < len(f.s.nodes); id++ {
		switch f.s.class(id) {
		case classAssign:
			for _, target := range f.s.list(id, fieldTargets) {
				known[nodeOf(target)] = origin{f.s.node(id, fieldValue), false}
			}
		case classAnnAssign, classNamedExpr:
			known[f.s.node(id, fieldTarget)] = origin{f.s.node(id, fieldValue), false}
		case classFor, classAsyncFor:
			known[f.s.node(id, fieldTarget)] = origin{f.s.node(id, fieldIter), true}
		case classListComp, classSetComp, classDictComp, classGeneratorExp:
			for _, g := range f.s.list(id, fieldGenerators) {
				known[f.s.node(nodeOf(g), fieldTarget)] = origin{f.s.node(nodeOf(g), fieldIter), true}
			}
		}
	}
	for id := nodeID(1); int(id) < len(f.s.nodes); id++ {
		switch c := f.s.class(id); {
		case c == className && f.s.symbol(id, fieldContext) != classLoad:
			f.bind(f.s.text(id, fieldID), known[id])
		case c == classArg:
			f.bind(f.s.text(id, fieldArg), origin{})
		case c == classFunctionDef, c == classAsyncFunctionDef, c == classClassDef, c == classExceptHandler, c == classMatchAs, c == classMatchStar:
			f.bind(f.s.text(id, fieldName), origin{})
		}
	}
}

func (f *flow) bind(name textID, to origin) {
	if len(f.bound[name]) <= maxBound {
		f.bound[name] = append(f.bound[name], to)
	}
}

// follow traces an expression back to the call it comes from, and returns the path within the call's answer.
func (f *flow) follow(id nodeID, depth int) (path []step, from nodeID) {
	if f.left--; depth > maxPath || id == 0 || f.left < 0 {
		return nil, 0
	}
	var last []step
	next := nodeID(0)
	switch f.s.class(id) {
	case classAwait:
		next = f.s.node(id, fieldValue)
	case className:
		return f.name(f.s.text(id, fieldID), depth)
	case classSubscript:
		next, last = f.subscript(id)
	case classCall:
		if next, last = f.passing(id); next == 0 {
			return nil, id
		}
	}
	return f.further(next, last, depth)
}

func (f *flow) further(next nodeID, last []step, depth int) (path []step, from nodeID) {
	if path, from = f.follow(next, depth+1); len(path)+len(last) > maxPath {
		return nil, 0
	}
	return append(path, last...), from
}

// name returns where the value of a name comes from, if that is the same for all its bindings.
func (f *flow) name(name textID, depth int) (path []step, from nodeID) {
	all := f.bound[name]
	if len(all) > maxBound {
		return nil, 0
	}
	for i, o := range all {
		var last []step
		if o.element {
			last = []step{{}}
		}
		way, call := f.further(o.value, last, depth)
		if call == 0 || i > 0 && (call != from || !slices.Equal(way, path)) {
			return nil, 0
		}
		path, from = way, call
	}
	return path, from
}

// subscript returns where value["key"], value[0] and value[1:] come from.
func (f *flow) subscript(id nodeID) (value nodeID, last []step) {
	value, index := f.s.node(id, fieldValue), f.s.node(id, fieldSlice)
	if f.s.isText(index) {
		return value, []step{{f.s.word(index, fieldValue)}}
	}
	switch f.s.class(index) {
	case classSlice:
		return value, nil
	case classConstant, classUnaryOp:
		return value, []step{{}}
	}
	return 0, nil
}

// passing returns where the value of value.get("key"), sorted(value) and the like comes from, or 0 for other calls.
func (f *flow) passing(id nodeID) (value nodeID, last []step) {
	if value, key, _ := f.lookup(id); value != 0 {
		return value, []step{{key}}
	}
	called, args := f.s.node(id, fieldFunc), f.s.list(id, fieldArgs)
	if f.s.class(called) != className || len(args) == 0 {
		return 0, nil
	}
	switch f.s.word(called, fieldID) {
	case "sorted", "list", "reversed", "tuple":
		return nodeOf(args[0]), nil
	case "next", "min", "max":
		if len(args) == 1 {
			return nodeOf(args[0]), []step{{}}
		}
	}
	return 0, nil
}

const (
	maxWarnings    = 5
	maxWarningSize = 200 // code points
)

// advice returns warnings about fields that no answer of the tools has had.
func (p *program) advice() []string {
	calls := map[nodeID]*core.Tool{}
	for _, u := range p.facts.Uses {
		if t := p.toolOf(u); t != nil && u.Call != nil && t.Learned != nil && len(t.OutputSchema) == 0 {
			calls[u.Call.node] = t
		}
	}
	if len(calls) == 0 {
		return nil
	}
	var said []string
	for _, k := range p.facts.taken() {
		t := calls[k.from]
		if t == nil || len(said) == maxWarnings {
			continue
		}
		text := p.unseen(t, k)
		if text != "" && !slices.Contains(said, text) {
			said = append(said, text)
		}
	}
	return said
}

// unseen returns the warning about a key, or "".
func (p *program) unseen(t *core.Tool, k taken) string {
	at := answerOf(t.Learned.Schema)
	for _, s := range k.path {
		at = at.step(s.key)
	}
	u, ok := at.lacks(k.key)
	if !ok {
		return ""
	}
	u.Tool, u.Tried = t, k.tried
	name := t.Python
	if s, ok := p.tools.Server(t.Server); ok {
		name = s.Python + "." + t.Python
	}
	if !u.Tells() {
		return ""
	}
	text := []rune(fmt.Sprintf("line %d: %s", k.Line+p.lines, u.Words(name)))
	if len(text) > maxWarningSize {
		text = append(text[:maxWarningSize], '…')
	}
	return string(text)
}

// answer holds a learned schema. The zero value accepts anything.
type answer struct {
	Type                 any
	Properties           map[string]answer
	Required             []string
	Items                *answer
	AdditionalProperties json.RawMessage
	PatternProperties    json.RawMessage
}

func answerOf(schema []byte) (a answer) {
	_ = json.Unmarshal(schema, &a) // an invalid schema accepts anything
	return a
}

func (a answer) step(key string) answer {
	switch {
	case key != "":
		return a.Properties[key]
	case a.Items != nil:
		return *a.Items
	}
	return answer{}
}

// lacks reports whether a value is known not to have this key: it is a list, or an object with known fields.
func (a answer) lacks(key string) (source.Unseen, bool) {
	u := source.Unseen{Name: key}
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
