package jsonschema

import (
	"encoding/binary"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

func (e *evaluator) checkArray(r *arrayRules, items []any, seen *evaluatedSet) bool {
	ok := true
	if len(items) < r.least {
		ok = e.explaining && e.addViolation(Violation{Keyword: MinItems, Want: r.least, Got: len(items)})
	}
	if len(items) > r.most {
		ok = e.explaining && e.addViolation(Violation{Keyword: MaxItems, Want: r.most, Got: len(items)})
	}
	if !ok && !e.explaining {
		return false
	}
	if r.unique && len(items) > 1 {
		if i, j, same := e.findDuplicate(items); same {
			ok = e.explaining && e.addViolation(Violation{Keyword: UniqueItems, Got: [2]int{i, j}})
		}
	}
	if ok || e.explaining {
		ok = e.checkItems(r, items, seen) && ok
	}
	if r.contains != nil && (ok || e.explaining) {
		ok = e.checkContains(r, items, seen) && ok
	}
	return ok
}

func (e *evaluator) checkItems(r *arrayRules, items []any, seen *evaluatedSet) bool {
	all := true
	first := min(len(r.prefix), len(items))
	for i, v := range items[:first] {
		if ok := e.insideItem(r.prefix[i], v, i); !ok {
			if all = false; !e.explaining {
				return false
			}
		}
	}
	if seen != nil {
		seen.prefix = max(seen.prefix, first)
		seen.allItems = seen.allItems || r.rest != nil
	}
	if r.rest == nil || r.rest.anyResult || first == len(items) {
		return all
	}
	if r.rest == noneNode && r.restKeyword == AdditionalItems {
		return e.explaining && e.addViolation(Violation{Keyword: AdditionalItems, Got: len(items) - first})
	}
	for i, v := range items[first:] {
		if ok := e.insideItem(r.rest, v, first+i); !ok {
			if all = false; !e.explaining {
				return false
			}
		}
	}
	return all
}

func (e *evaluator) checkContains(r *arrayRules, items []any, seen *evaluatedSet) bool {
	n := 0
	for i, v := range items {
		if !e.applySilently(r.contains, v, nil) {
			continue
		}
		if n++; r.containEvals {
			seen.addItem(i)
		}
	}
	switch {
	case n < r.leastContain && !r.countContain:
		return e.explaining && e.addViolation(Violation{Keyword: Contains})
	case n < r.leastContain:
		return e.explaining && e.addViolation(Violation{Keyword: MinContains, Want: r.leastContain, Got: n})
	case n > r.mostContain:
		return e.explaining && e.addViolation(Violation{Keyword: MaxContains, Want: r.mostContain, Got: n})
	}
	return true
}

// findDuplicate returns the indexes of two equal items in an array. It reports whether there are any.
func (e *evaluator) findDuplicate(items []any) (i, j int, found bool) {
	if len(items) > 20 {
		return e.duplicateOfMany(items)
	}
	for j := range items {
		for i := range j {
			if e.equalValues(items[i], items[j]) && !e.exhausted {
				return i, j, true
			}
		}
	}
	return 0, 0, false
}

func (e *evaluator) duplicateOfMany(items []any) (i, j int, found bool) {
	at := make(map[string]int, len(items))
	var key []byte
	for j, v := range items {
		if key = e.appendKey(key[:0], v); e.exhausted {
			return 0, 0, false
		}
		if i, ok := at[string(key)]; ok {
			return i, j, true
		}
		at[string(key)] = j
	}
	return 0, 0, false
}

// appendKey appends an encoding of the value to b. Two values have the same encoding if and only if they are equal.
func (e *evaluator) appendKey(b []byte, v any) []byte {
	if !e.spendSteps(1) {
		return b
	}
	switch v := v.(type) {
	case nil:
		return append(b, 'z')
	case bool:
		return strconv.AppendBool(b, v)
	case string:
		return appendText(append(b, 's'), v)
	case json.Number, float64:
		s, _ := numberText(v)
		d := parseDecimal(s)
		b = strconv.AppendBool(append(b, 'n'), d.negative)
		return binary.AppendVarint(appendText(b, d.digits), d.exp)
	case []any:
		b = binary.AppendUvarint(append(b, 'a'), uint64(len(v)))
		for _, item := range v {
			b = e.appendKey(b, item)
		}
	case map[string]any:
		b = binary.AppendUvarint(append(b, 'o'), uint64(len(v)))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			b = e.appendKey(appendText(b, name), v[name])
		}
	}
	return b
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
