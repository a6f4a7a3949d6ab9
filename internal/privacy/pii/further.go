package pii

import (
	"cmp"
	"regexp"
	"slices"
)

// customShape holds the pattern that the values of a custom type match.
type customShape struct {
	typ  Type
	form *regexp.Regexp
}

// isCustomType reports whether t is one of Options.Types.
func (s *Scanner) isCustomType(t Type) bool { return slices.Contains(s.types[len(AllTypes()):], t) }

// findCustom searches a text for values of custom types. It adds them to the findings of this text, which are the
// elements of dst from the index first to the end. A custom value replaces the findings that it overlaps, except text
// in the form of a token.
func (s *Scanner) findCustom(dst []TypedSpan, first int, text []byte) []TypedSpan {
	var found []TypedSpan
	for _, sh := range s.shapes {
		if s.off[sh.typ] {
			continue
		}
		for _, at := range sh.form.FindAllIndex(text, -1) {
			found = append(found, TypedSpan{at[0], at[1], sh.typ})
		}
	}
	if len(found) == 0 {
		return dst
	}
	tokens := slices.DeleteFunc(slices.Clone(dst[first:]), func(f TypedSpan) bool { return f.Type != "" })
	others := slices.DeleteFunc(dst[first:], func(f TypedSpan) bool { return f.Type == "" })
	kept := appendDisjoint(tokens, found)
	kept = appendDisjoint(kept, others)
	slices.SortFunc(kept, func(a, b TypedSpan) int { return cmp.Compare(a.Start, b.Start) })
	return append(dst[:first], kept...)
}

// appendDisjoint appends the findings in more to kept. It omits empty findings, and those that overlap a finding in
// kept or one that it has already appended.
func appendDisjoint(kept, more []TypedSpan) []TypedSpan {
	slices.SortFunc(kept, func(a, b TypedSpan) int { return cmp.Compare(a.Start, b.Start) })
	from, end, out := 0, 0, slices.Clone(kept)
	slices.SortFunc(more, func(a, b TypedSpan) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End))
	})
	for _, f := range more {
		for from < len(kept) && kept[from].End <= f.Start {
			from++
		}
		if f.Start == f.End || f.Start < end || from < len(kept) && kept[from].Start < f.End {
			continue
		}
		out, end = append(out, f), f.End
	}
	return out
}

// shapeOf returns the custom type whose pattern matches a number as a whole, or "" if none is found.
func (s *Scanner) shapeOf(number []byte) Type {
	for _, sh := range s.shapes {
		if at := sh.form.FindIndex(number); at != nil && at[0] == 0 && at[1] == len(number) && !s.off[sh.typ] {
			return sh.typ
		}
	}
	return ""
}

// OfKey returns the type of personal data that values of a key have because of the key alone, or "" if the key
// implies no type.
func (s *Scanner) OfKey(key string) Type {
	if m := s.meaningOf(key); m.sure && !s.off[m.typ] {
		return m.typ
	}
	return ""
}
