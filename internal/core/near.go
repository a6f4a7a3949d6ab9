package core

import (
	"cmp"
	"slices"
	"strings"
)

// NearestNames returns at most n of the names that resemble name, best first. It compares edit distances first, then
// common words. If some names differ from name only in case and punctuation, it returns only those. It omits names
// with little in common.
func NearestNames(name string, names []string, n int) []string {
	type scored struct {
		name string
		cost int
	}
	want := foldName(name)
	runes := []rune(want)
	limit := max(2, len(runes)/3)
	var found []scored
	for _, candidate := range names {
		have := foldName(candidate)
		cost := EditDistance(runes, []rune(have), limit)
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

// CorrectSpelling returns the element of names that the user probably meant by name, or "". The two may differ in
// case and in separators. In addition, they may differ by one edit for every four letters of name. In a name of three
// letters, one edit is allowed as well; shorter names match nothing.
func CorrectSpelling(name string, names []string) string {
	want := []rune(foldName(name))
	limit := max(1, len(want)/4)
	best, nearest := limit+1, ""
	for _, candidate := range names {
		if cost := EditDistance(want, []rune(foldName(candidate)), limit); cost < best && len(want) > 2 {
			best, nearest = cost, candidate
		}
	}
	return nearest
}

// foldName converts a name to lower case and removes separators such as hyphens and dots, because people overlook
// such differences.
func foldName(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', '.', ' ', '/':
			return -1
		}
		return r
	}, strings.ToLower(s))
}

// EditDistance returns the number of edits between a and b: insertions, deletions, replacements, and swaps of
// neighbours. It returns limit+1 if the number exceeds limit.
func EditDistance[E comparable](a, b []E, limit int) int {
	if d := len(a) - len(b); d > limit || -d > limit {
		return limit + 1
	}
	var short [3][48]int // most words need no memory
	before, above, row := short[0][:], short[1][:], short[2][:]
	if n := len(b) + 1; n > len(above) {
		before, above, row = make([]int, n), make([]int, n), make([]int, n)
	}
	for j := range len(b) + 1 {
		above[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		best := i
		for j := 1; j <= len(b); j++ {
			cost := above[j-1]
			if a[i-1] != b[j-1] {
				cost = 1 + min(cost, above[j], row[j-1])
			}
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cost = min(cost, before[j-2]+1)
			}
			row[j] = cost
			best = min(best, cost)
		}
		if best > limit {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return min(above[len(b)], limit+1)
}
