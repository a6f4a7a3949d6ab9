package core

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"
)

// NearestNames returns at most n of names that resemble name, best first: those that differ only in case and punctuation,
// then by edit distance, then by shared words. Names with little in common are left out. If a name differs only in
// case and punctuation, only such names are returned.
func NearestNames(name string, names []string, n int) []string {
	type scored struct {
		name string
		cost int
	}
	want := foldName(name)
	limit := max(2, utf8.RuneCountInString(want)/3)
	var found []scored
	for _, candidate := range names {
		have := foldName(candidate)
		cost := editDistance(want, have, limit)
		if cost > limit && len(want) > 3 && (strings.Contains(have, want) || strings.Contains(want, have) && len(have) > 3) {
			cost = limit
		}
		if cost <= limit {
			found = append(found, scored{candidate, cost})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int { return cmp.Compare(a.cost, b.cost) })
	if len(found) > 0 && found[0].cost == 0 {
		found = slices.DeleteFunc(found, func(s scored) bool { return s.cost > 0 })
	}
	out := make([]string, 0, n)
	for _, f := range found[:min(n, len(found))] {
		out = append(out, f.name)
	}
	return out
}

// CorrectSpelling returns the one of names that name misspells, or "". A misspelling differs in case and separators only, or
// in at most one letter of four.
func CorrectSpelling(name string, names []string) string {
	want := foldName(name)
	limit := max(1, utf8.RuneCountInString(want)/4)
	best, nearest := limit+1, ""
	for _, candidate := range names {
		if cost := editDistance(want, foldName(candidate), limit); cost < best && utf8.RuneCountInString(want) > 2 {
			best, nearest = cost, candidate
		}
	}
	return nearest
}

// foldName removes the differences that people overlook: case and separators.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ', '/':
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// editDistance returns the Levenshtein distance with adjacent swaps. It stops early and returns more than limit once the
// distance must exceed limit.
func editDistance(a, b string, limit int) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); d > limit || -d > limit {
		return limit + 1
	}
	before, above, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range above {
		above[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(above[j]+1, row[j-1]+1, above[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
			best = min(best, row[j])
		}
		if best > limit {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return above[len(y)]
}
