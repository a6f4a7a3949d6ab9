package jsonschema

import (
	"maps"
	"slices"
)

func (e *evaluator) checkObject(r *objectRules, obj map[string]any, seen *evaluatedSet) bool {
	ok := e.checkSizes(r, obj)
	if !ok && !e.explaining {
		return false
	}
	if len(r.properties) > 0 || len(r.patterns) > 0 || r.additional != nil {
		ok = e.checkProperties(r, obj, seen) && ok
	}
	if r.propertyNames != nil && (ok || e.explaining) {
		ok = e.checkNames(r.propertyNames, obj) && ok
	}
	for i := range r.dependents {
		if !ok && !e.explaining {
			return false
		}
		ok = e.checkDependent(&r.dependents[i], obj, seen) && ok
	}
	return ok
}

func (e *evaluator) checkSizes(r *objectRules, obj map[string]any) bool {
	ok := true
	if len(obj) < r.least {
		ok = e.explaining && e.addViolation(Violation{Keyword: MinProperties, Want: r.least, Got: len(obj)})
	}
	if len(obj) > r.most {
		ok = e.explaining && e.addViolation(Violation{Keyword: MaxProperties, Want: r.most, Got: len(obj)})
	}
	if missing, any := e.missingNames(obj, r.required); any {
		ok = e.explaining && e.addViolation(Violation{Keyword: Required, Missing: missing})
	}
	return ok
}

// missingNames reports whether an object lacks any of the required property names. It returns the missing names only
// if the check collects violations.
func (e *evaluator) missingNames(obj map[string]any, names []string) (missing []string, any bool) {
	e.spendSteps(len(names))
	for _, name := range names {
		if _, has := obj[name]; has {
			continue
		}
		if any = true; !e.explaining {
			return nil, true
		}
		missing = append(missing, name)
	}
	return missing, any
}

func (e *evaluator) checkProperties(r *objectRules, obj map[string]any, seen *evaluatedSet) bool {
	if !e.explaining {
		for name, v := range obj {
			if ok, _ := e.checkProperty(r, name, v, seen); !ok || e.exhausted {
				return ok
			}
		}
		return true
	}
	all := true
	var unknown []string
	for _, name := range e.sortedNames(obj) {
		ok, known := e.checkProperty(r, name, obj[name], seen)
		if !known {
			unknown = append(unknown, name)
		}
		all = all && ok
	}
	if unknown != nil {
		e.addViolation(Violation{Keyword: AdditionalProperties, Unknown: unknown})
	}
	return all
}

// checkProperty checks one property of an object. known is false if additionalProperties forbids the property: neither
// properties nor patternProperties covers it.
func (e *evaluator) checkProperty(r *objectRules, name string, v any, seen *evaluatedSet) (ok, known bool) {
	ok = true
	if n, is := r.properties[name]; is {
		known = true
		ok = e.applyInside(n, v, name)
	}
	for i := range r.patterns {
		p := &r.patterns[i]
		if !e.spendSteps(1) || !p.pattern.matchString(e, name) {
			continue
		}
		known = true
		if p.pattern.re != nil && (ok || e.explaining) {
			ok = e.applyInside(p.node, v, name) && ok
		}
	}
	if !known && r.additional != nil {
		if r.additional == noneNode {
			return false, false
		}
		known = true
		ok = e.applyInside(r.additional, v, name)
	}
	if known {
		seen.addProperty(name)
	}
	return ok, true
}

func (e *evaluator) checkNames(n *schemaNode, obj map[string]any) bool {
	if !e.explaining {
		for name := range obj {
			if !e.applyNode(n, name, nil) {
				return false
			}
		}
		return true
	}
	ok := true
	for _, name := range e.sortedNames(obj) {
		if !e.applySilently(n, name, nil) {
			ok = e.addViolation(Violation{Keyword: PropertyNames, Unknown: []string{name}})
		}
	}
	return ok
}

func (e *evaluator) checkDependent(d *dependentRule, obj map[string]any, seen *evaluatedSet) bool {
	if _, has := obj[d.name]; !has {
		return true
	}
	if missing, any := e.missingNames(obj, d.required); any {
		return e.explaining && e.addViolation(Violation{Keyword: DependentRequired, Missing: missing, Got: d.name})
	}
	return d.node == nil || e.applyHere(d.node, obj, seen)
}

func (e *evaluator) sortedNames(obj map[string]any) []string {
	e.spendSteps(len(obj))
	return slices.Sorted(maps.Keys(obj))
}
