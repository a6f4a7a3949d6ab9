package jsonschema

// applied checks the schemas that apply to the same value.
func (e *evaluation) applied(r *appliedRules, v any, seen *evaluated) bool {
	ok := r.dynamicRef == nil || e.here(e.resolve(r.dynamicRef), v, seen)
	if r.not != nil && (ok || e.explaining) && e.silently(r.not, v, nil) && !e.exhausted {
		ok = e.explaining && e.add(Violation{Keyword: Not})
	}
	for _, n := range r.allOf {
		if !ok && !e.explaining {
			return false
		}
		ok = e.here(n, v, seen) && ok
	}
	if len(r.anyOf) > 0 && (ok || e.explaining) {
		ok = e.anyOf(r.anyOf, v, seen) && ok
	}
	if len(r.oneOf) > 0 && (ok || e.explaining) {
		ok = e.oneOf(r.oneOf, v, seen) && ok
	}
	if r.when != nil && (ok || e.explaining) {
		ok = e.conditional(r, v, seen) && ok
	}
	return ok
}

func (e *evaluation) resolve(r *dynamicRef) *node {
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

// anyOf drops the violations of failing branches once one branch fits.
func (e *evaluation) anyOf(branches []*node, v any, seen *evaluated) bool {
	said, fits := len(e.found), false
	for _, n := range branches {
		if !e.here(n, v, seen) {
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
		e.add(Violation{Keyword: AnyOf})
	}
	return false
}

func (e *evaluation) oneOf(branches []*node, v any, seen *evaluated) bool {
	said, first := len(e.found), -1
	for i, n := range branches {
		switch {
		case first < 0 && e.here(n, v, seen):
			first = i
		case first >= 0 && e.silently(n, v, nil):
			if e.exhausted {
				return true
			}
			e.found = e.found[:said]
			return e.explaining && e.add(Violation{Keyword: OneOf, Got: [2]int{first, i}})
		}
	}
	if first >= 0 {
		e.found = e.found[:said]
		return true
	}
	if e.explaining && len(e.found) == said {
		e.add(Violation{Keyword: OneOf})
	}
	return false
}

func (e *evaluation) conditional(r *appliedRules, v any, seen *evaluated) bool {
	n := r.no
	if e.silently(r.when, v, seen) {
		n = r.yes
	}
	return n == nil || e.here(n, v, seen)
}

// unevaluated checks the properties and items that no other schema has evaluated.
func (e *evaluation) unevaluated(r *unevaluatedRules, v any, seen *evaluated) bool {
	ok := true
	switch v := v.(type) {
	case map[string]any:
		if r.properties == nil {
			return true
		}
		for _, name := range e.sorted(v) {
			if !seen.allProperties && !seen.properties[name] && (ok || e.explaining) {
				ok = e.inside(r.properties, v[name], name) && ok
			}
		}
		seen.allProperties = true
	case []any:
		if r.items == nil {
			return true
		}
		e.spend(len(v))
		for i, item := range v {
			if !seen.allItems && i >= seen.prefix && !seen.items[i] && (ok || e.explaining) {
				ok = e.insideItem(r.items, item, i) && ok
			}
		}
		seen.allItems = true
	}
	return ok
}
