package jsonschema

import (
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"
)

// evaluator checks one value. If explaining is set, it collects all violations. Otherwise it stops at the first one.
type evaluator struct {
	dynamic    bool
	explaining bool
	exhausted  bool // whether maxSteps or maxDepth was exceeded; the value then counts as valid
	steps      int
	depth      int
	scope      []*schemaResource // resources entered on the current evaluation path; used only for dynamic references
	path       []string          // names and indexes that lead to the value; used only if explaining is set
	found      []Violation
}

// maxFound bounds the number of violations that are collected for one value.
const maxFound = 1_000

// spendSteps adds steps to the number of steps that the check has taken. It returns false if the sum exceeds maxSteps.
func (e *evaluator) spendSteps(steps int) bool {
	if e.steps += steps; e.steps > maxSteps {
		e.exhausted = true
	}
	return !e.exhausted
}

// addViolation collects a violation. It always returns false, so that a failing check can return the result of
// addViolation.
func (e *evaluator) addViolation(v Violation) bool {
	if len(e.found) < maxFound {
		v.Path = slices.Clone(e.path)
		e.found = append(e.found, v)
	}
	return false
}

// applyNode checks a value against a node. If seen is not nil, applyNode records in it which properties and items of
// the value the node has evaluated.
func (e *evaluator) applyNode(n *schemaNode, v any, seen *evaluatedSet) bool {
	if n.anyResult {
		return true
	}
	if n.never {
		return e.explaining && e.addViolation(Violation{Keyword: False})
	}
	if e.depth >= maxDepth {
		e.exhausted = true
	}
	if !e.spendSteps(1) {
		return true
	}
	e.depth++
	entered := e.dynamic && n.resource != nil && (len(e.scope) == 0 || e.scope[len(e.scope)-1] != n.resource)
	if entered {
		e.scope = append(e.scope, n.resource)
	}
	ok := e.checkNode(n, v, seen)
	if entered {
		e.scope = e.scope[:len(e.scope)-1]
	}
	e.depth--
	return ok
}

// applyHere checks v against another schema, which a keyword such as allOf applies to the same value. If v is valid,
// applyHere records in seen which properties and items of v that schema has evaluated.
func (e *evaluator) applyHere(n *schemaNode, v any, seen *evaluatedSet) bool {
	if seen == nil {
		return e.applyNode(n, v, nil)
	}
	sub := &evaluatedSet{}
	if !e.applyNode(n, v, sub) {
		return false
	}
	return seen.mergeSet(e, sub)
}

func (e *evaluator) checkNode(n *schemaNode, v any, seen *evaluatedSet) bool {
	if n.refAlone {
		return e.applyHere(n.ref, v, seen)
	}
	if !e.checkBasic(n, v) {
		return false
	}
	var own *evaluatedSet
	if n.uneval != nil {
		own = &evaluatedSet{}
	} else {
		own = seen
	}
	ok := n.ref == nil || e.applyHere(n.ref, v, own)
	if ok || e.explaining {
		ok = e.byType(n, v, own) && ok
	}
	if n.applied != nil && (ok || e.explaining) {
		ok = e.checkApplied(n.applied, v, own) && ok
	}
	if n.uneval != nil && (ok || e.explaining) {
		ok = e.checkUnevaluated(n.uneval, v, own) && ok
		if seen != nil {
			seen.mergeSet(e, own)
		}
	}
	return ok
}

// checkBasic checks a value against the keywords type, const and enum, in this order. It stops at the first keyword
// that the value violates, because further violations would not help the user.
func (e *evaluator) checkBasic(n *schemaNode, v any) bool {
	switch {
	case n.types != 0 && !n.types.allowsValue(v):
		return e.explaining && e.addViolation(Violation{Keyword: Type, Want: n.types.typeList(), Got: typeName(v)})
	case n.constant != nil && !e.equalValues(v, *n.constant):
		return e.explaining && e.addViolation(Violation{Keyword: Const, Want: *n.constant, Got: v})
	case n.enum != nil && !n.enum.hasValue(e, v):
		return e.explaining && e.addViolation(Violation{Keyword: Enum, Want: n.enum.values, Got: v})
	}
	return true
}

func (e *evaluator) byType(n *schemaNode, v any, seen *evaluatedSet) bool {
	switch v := v.(type) {
	case map[string]any:
		return n.object == nil || e.checkObject(n.object, v, seen)
	case []any:
		return n.array == nil || e.checkArray(n.array, v, seen)
	case string:
		return n.text == nil || e.checkText(n.text, v)
	}
	return n.number == nil || e.checkNumber(n.number, v)
}

func (e *evaluator) checkText(r *textRules, s string) bool {
	ok := true
	if r.format != nil {
		if err := r.format(s); err != nil {
			return e.explaining && e.addViolation(Violation{Keyword: Format, Want: r.formatName, Got: s, Err: err})
		}
	}
	if r.least > 0 || r.most < len(s) {
		if n := utf8.RuneCountInString(s); n < r.least {
			ok = e.explaining && e.addViolation(Violation{Keyword: MinLength, Want: r.least, Got: n})
		} else if n > r.most {
			ok = e.explaining && e.addViolation(Violation{Keyword: MaxLength, Want: r.most, Got: n})
		}
	}
	if r.pattern != nil && !r.pattern.matchString(e, s) {
		ok = e.explaining && e.addViolation(Violation{Keyword: Pattern, Want: r.pattern.source, Got: s})
	}
	return ok
}

func (e *evaluator) checkNumber(r *numberRules, v any) bool {
	s, isNumber := numberText(v)
	if !isNumber || !e.spendSteps(len(s)/16) {
		return true
	}
	d, ok := parseDecimal(s), true
	fail := func(k Keyword, b *numberBound) {
		ok = e.explaining && e.addViolation(Violation{Keyword: k, Want: b.text, Got: v})
	}
	if b := r.minimum; b != nil && d.compareTo(b.value) < 0 {
		fail(Minimum, b)
	}
	if b := r.maximum; b != nil && d.compareTo(b.value) > 0 {
		fail(Maximum, b)
	}
	if b := r.exclusiveMinimum; b != nil && d.compareTo(b.value) <= 0 {
		fail(ExclusiveMinimum, b)
	}
	if b := r.exclusiveMaximum; b != nil && d.compareTo(b.value) >= 0 {
		fail(ExclusiveMaximum, b)
	}
	if b := r.multipleOf; b != nil && e.spendSteps(len(s)) && !d.multipleOf(b.value) {
		fail(MultipleOf, b)
	}
	return ok
}

// equalValues reports whether two values are equal. 1 equals 1.0, and the order of properties does not matter.
func (e *evaluator) equalValues(a, b any) bool {
	if !e.spendSteps(1) {
		return true
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, x := range a {
			if y, ok := b[k]; !ok || !e.equalValues(x, y) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, e.equalValues)
	}
	if typeOf(a) == numberType && typeOf(b) == numberType {
		s, _ := numberText(a)
		t, _ := numberText(b)
		return s == t || e.spendSteps((len(s)+len(t))/16) && parseDecimal(s) == parseDecimal(t)
	}
	return a == b
}

// evaluatedSet records which properties and items of a value have already been evaluated by schemas. The keywords
// unevaluatedProperties and unevaluatedItems apply to all others.
type evaluatedSet struct {
	allProperties bool
	allItems      bool
	properties    map[string]bool
	prefix        int // number of items from the start of the array that were evaluated
	items         map[int]bool
}

func (s *evaluatedSet) addProperty(name string) {
	if s == nil {
		return
	}
	if s.properties == nil {
		s.properties = map[string]bool{}
	}
	s.properties[name] = true
}

func (s *evaluatedSet) addItem(i int) {
	if s == nil {
		return
	}
	if s.items == nil {
		s.items = map[int]bool{}
	}
	s.items[i] = true
}

func (s *evaluatedSet) mergeSet(e *evaluator, o *evaluatedSet) bool {
	e.spendSteps(len(o.properties) + len(o.items))
	s.allProperties = s.allProperties || o.allProperties
	s.allItems = s.allItems || o.allItems
	s.prefix = max(s.prefix, o.prefix)
	if s.properties == nil {
		s.properties = o.properties
	} else {
		maps.Copy(s.properties, o.properties)
	}
	if s.items == nil {
		s.items = o.items
	} else {
		maps.Copy(s.items, o.items)
	}
	return true
}

// applyInside checks a property or item against a node, and includes its name or index in the path of violations.
func (e *evaluator) applyInside(n *schemaNode, v any, name string) bool {
	if !e.explaining {
		return e.applyNode(n, v, nil)
	}
	e.path = append(e.path, name)
	ok := e.applyNode(n, v, nil)
	e.path = e.path[:len(e.path)-1]
	return ok
}

func (e *evaluator) insideItem(n *schemaNode, v any, i int) bool {
	if !e.explaining {
		return e.applyNode(n, v, nil)
	}
	return e.applyInside(n, v, strconv.Itoa(i))
}

// applySilently checks a value against a node without collecting violations.
func (e *evaluator) applySilently(n *schemaNode, v any, seen *evaluatedSet) bool {
	explaining := e.explaining
	e.explaining = false
	ok := e.applyHere(n, v, seen)
	e.explaining = explaining
	return ok
}

func sortedSet(names []string) []string {
	slices.Sort(names)
	return slices.Compact(names)
}
