// Package source handles the text of programs in any language: it finds the program in a request's text, shows a
// place in it, and describes wrong names.
package source

import (
	"slices"
	"strings"
)

// SourceRange locates the program in a request's text. It starts at the beginning of a line.
type SourceRange struct {
	Code  string
	Lines int // before it
}

// ProgramRanges returns the candidates for the program in text, best first: the whole text, and the part between its
// first and last Markdown fence. In JavaScript three backticks are an empty template followed by another one, so a
// text with a fence may be valid code. The whole text is a candidate only if the fence may be inside a comment or
// string, which must begin with one of openings.
func ProgramRanges(text string, openings ...string) []SourceRange {
	text = strings.TrimPrefix(text, "\ufeff")
	whole := SourceRange{Code: text}
	lines := strings.SplitAfter(text, "\n")
	first, marker := openingFence(lines)
	if first < 0 {
		return []SourceRange{whole}
	}
	last := closingFence(lines, first, marker)
	block := SourceRange{strings.Join(lines[first+1:last], ""), first + 1}
	before := strings.Join(lines[:first], "")
	if slices.ContainsFunc(openings, func(o string) bool { return strings.Contains(before, o) }) {
		return []SourceRange{whole, block}
	}
	return []SourceRange{block}
}

// openingFence returns the index of the first line like ```ts, or -1.
func openingFence(lines []string) (int, string) {
	for i, line := range lines {
		if marker, info := ParseFence(line); marker != "" && !strings.Contains(info, "`") {
			return i, marker
		}
	}
	return -1, ""
}

// closingFence returns the index of the last line that closes the fence at line first. If that line is missing,
// because the program was cut off, the program extends to the end of the text.
func closingFence(lines []string, first int, opening string) int {
	for i := len(lines) - 1; i > first; i-- {
		marker, info := ParseFence(lines[i])
		if info == "" && marker != "" && marker[0] == opening[0] && len(marker) >= len(opening) {
			return i
		}
	}
	return len(lines)
}

// ParseFence parses a line like ```ts. The marker is empty if the line is not a fence.
func ParseFence(line string) (marker, info string) {
	line = strings.TrimSpace(line)
	if line == "" || line[0] != '`' && line[0] != '~' {
		return "", ""
	}
	rest := strings.TrimLeft(line, line[:1])
	if len(line)-len(rest) < 3 {
		return "", ""
	}
	return line[:len(line)-len(rest)], strings.TrimSpace(rest)
}
