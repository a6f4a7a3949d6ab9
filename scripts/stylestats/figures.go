package main

import (
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const (
	maxFileLines   = 800
	maxSameName    = 3 // number of packages that may have a function or type of the same name
	longestComment = 1000
)

func printFigures(w io.Writer, t *tree) error {
	var functions, types, oneWordFunctions, oneWordTypes, comments, isComments, longFiles, allLines int
	var lengths []int
	for _, d := range t.declarations {
		switch d.kind {
		case functionDecl:
			functions++
			oneWordFunctions += count(isOneWord(d.name))
			lengths = append(lengths, d.lines)
		case typeDecl:
			types++
			oneWordTypes += count(isOneWord(d.name))
		}
		comments += count(d.doc != "")
		isComments += count(beginsWithIs(d.doc))
	}
	for _, n := range t.fileLines {
		longFiles += count(n > maxFileLines)
		allLines += n
	}
	slices.Sort(lengths)
	_, err := fmt.Fprintf(w, `files                        %7d
lines                        %7d
functions                    %7d
one-word function names      %7.1f %%
types                        %7d
one-word type names          %7.1f %%
doc comments                 %7d
comments "X is/are ..."      %7.1f %%
function length p50          %7d lines
function length p99          %7d lines
function length max          %7d lines
files over %d lines         %7d
lines over %d columns       %7.2f %%
`, len(t.fileLines), allLines, functions, percent(oneWordFunctions, functions), types, percent(oneWordTypes, types),
		comments, percent(isComments, comments), quantile(lengths, 50), quantile(lengths, 99), quantile(lengths, 100),
		maxFileLines, longFiles, maxColumns, percent(t.wideLines, allLines))
	return err
}

func count(yes bool) int {
	if yes {
		return 1
	}
	return 0
}

func percent(part, whole int) float64 {
	return 100 * float64(part) / float64(max(whole, 1))
}

// quantile returns a percentile of a sorted list: the smallest of the values such that at least the given percentage
// of all values are less than or equal to it (the nearest-rank method).
func quantile(sorted []int, percent int) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100, 1)-1]
}

// isOneWord reports whether a camel-case name consists of one word. An abbreviation counts as a word, so URL has one
// word and URLOf two.
func isOneWord(name string) bool {
	letters := []rune(strings.TrimLeft(name, "_"))
	for i := 1; i < len(letters); i++ {
		startsWord := unicode.IsUpper(letters[i]) && (!unicode.IsUpper(letters[i-1]) || i+1 < len(letters) && unicode.IsLower(letters[i+1]))
		if letters[i] == '_' || startsWord {
			return false
		}
	}
	return true
}

var isComment = regexp.MustCompile(`^\w+ (is|are) `)

func beginsWithIs(doc string) bool {
	return isComment.MatchString(strings.ReplaceAll(doc, "\n", " "))
}

// printSample prints n doc comments drawn at random, each with its path and name.
func printSample(w io.Writer, t *tree, n int, seed uint64) error {
	var documented []declaration
	for _, d := range t.declarations {
		if d.doc != "" {
			documented = append(documented, d)
		}
	}
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(documented))
	for _, i := range order[:min(n, len(order))] {
		d := documented[i]
		text := strings.Join(strings.Fields(d.doc), " ")
		if _, err := fmt.Fprintf(w, "%s  %s\n    %s\n", d.place, d.name, text[:min(len(text), longestComment)]); err != nil {
			return err
		}
	}
	return nil
}

// printRepeated lists the names of functions and of types that occur in more than maxSameName packages. The most
// frequent names come first.
func printRepeated(w io.Writer, t *tree) error {
	packages := map[string]map[string]bool{} // "function parse" to directories
	for _, d := range t.declarations {
		kind := map[declKind]string{functionDecl: "function", typeDecl: "type"}[d.kind]
		if kind == "" || d.name == "main" || d.name == "_" {
			continue
		}
		key := kind + " " + d.name
		if packages[key] == nil {
			packages[key] = map[string]bool{}
		}
		packages[key][d.dir] = true
	}
	keys := slices.SortedFunc(maps.Keys(packages), func(a, b string) int {
		if n := len(packages[b]) - len(packages[a]); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	for _, key := range keys {
		if n := len(packages[key]); n > maxSameName {
			if _, err := fmt.Fprintf(w, "%4d packages  %s\n", n, key); err != nil {
				return err
			}
		}
	}
	return nil
}
