package jsonschema

// checkApplied checks a value against the schemas that keywords such as allOf apply to the same value.
func (e *evaluator) checkApplied(r *appliedRules, v any, seen *evaluatedSet) bool {
	ok := r.dynamicRef == nil || e.applyHere(e.resolveDynamic(r.dynamicRef), v, seen)
	if r.not != nil && (ok || e.explaining) && e.applySilently(r.not, v, nil) && !e.exhausted {
		ok = e.explaining && e.addViolation(Violation{Keyword: Not})
	}
	for _, n := range r.allOf {
		if !ok && !e.explaining {
			return false
		}
		ok = e.applyHere(n, v, seen) && ok
	}
	if len(r.anyOf) > 0 && (ok || e.explaining) {
		ok = e.anyOf(r.anyOf, v, seen) && ok
	}
	if len(r.oneOf) > 0 && (ok || e.explaining) {
		ok = e.oneOf(r.oneOf, v, seen) && ok
	}
	if r.when != nil && (ok || e.explaining) {
		ok = e.checkConditional(r, v, seen) && ok
	}
	return ok
}

func (e *evaluator) resolveDynamic(r *dynamicRef) *schemaNode {
	for _, outer := range e.scope {
		if r.recursive && outer.recursive {
			return outer.root
		}
		if n := outer.dynamic[r.anchor]; n != nil && !r.recursive {
			return n
		}
	}
	return r.target
}

// anyOf checks that a value is valid for at least one schema of an anyOf. If it is, the violations of the other
// schemas are discarded.
func (e *evaluator) anyOf(branches []*schemaNode, v any, seen *evaluatedSet) bool {
	said, fits := len(e.found), false
	for _, n := range branches {
		if !e.applyHere(n, v, seen) {
			continue
		}
		fits = true
		if e.found = e.found[:said]; seen == nil {
			return true
		}
	}
	if fits {
		e.found = e.found[:said]
		return true
	}
	if e.explaining && len(e.found) == said {
		e.addViolation(Violation{Keyword: AnyOf})
	}
	return false
}

func (e *evaluator) oneOf(branches []*schemaNode, v any, seen *evaluatedSet) bool {
	said, first := len(e.found), -1
	for i, n := range branches {
		switch {
		case first < 0 && e.applyHere(n, v, seen):
			first = i
		case first >= 0 && e.applySilently(n, v, nil):
			if e.exhausted {
				return true
			}
			e.found = e.found[:said]
			return e.explaining && e.addViolation(Violation{Keyword: OneOf, Got: [2]int{first, i}})
		}
	}
	if first >= 0 {
		e.found = e.found[:said]
		return true
	}
	if e.explaining && len(e.found) == said {
		e.addViolation(Violation{Keyword: OneOf})
	}
	return false
}

func (e *evaluator) checkConditional(r *appliedRules, v any, seen *evaluatedSet) bool {
	n := r.no
	if e.applySilently(r.when, v, seen) {
		n = r.yes
	}
	return n == nil || e.applyHere(n, v, seen)
}

// checkUnevaluated checks the properties and items that no other keyword of the schema has evaluated.
func (e *evaluator) checkUnevaluated(r *unevaluatedRules, v any, seen *evaluatedSet) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if r.properties == nil {
			return true
		}
		for _, name := range e.sortedNames(v) {
			if !seen.allProperties && !seen.properties[name] && (ok || e.explaining) {
				ok = e.applyInside(r.properties, v[name], name) && ok
			}
		}
		seen.allProperties = true
	case []any:
		if r.items == nil {
			return true
		}
		e.spendSteps(len(v))
		for i, item := range v {
			if !seen.allItems && i >= seen.prefix && !seen.items[i] && (ok || e.explaining) {
				ok = e.insideItem(r.items, item, i) && ok
			}
		}
		seen.allItems = true
	}
	return ok
}
