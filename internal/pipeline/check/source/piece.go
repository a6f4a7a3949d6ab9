// Package source handles the text of programs, independently of their language. It finds the program in a request's
// text, shows places in it, and explains unknown names.
package source

import (
	"slices"
	"strings"
)

// SourceRange holds that part of a request's text which is the program. The part begins at the start of a line.
type SourceRange struct {
	Code  string
	Lines int // before it
}

// ProgramRanges returns the parts of text that may be the program, best first. Without a Markdown fence, that is the
// whole text. With fences, it is the part between the first fence and the last one. The whole text is returned as
// well, and first, if the text before the fences contains the beginning of a comment or string (one of openings),
// because the fences may then be part of the program. In JavaScript, for example, three backticks can be code: an
// empty template followed by the beginning of another one.
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

// closingFence returns the index of the last line that closes the Markdown fence opened in line first. If no line
// does, because the text was cut off, it returns the number of lines.
func closingFence(lines []string, first int, opening string) int {
	for i := len(lines) - 1; i > first; i-- {
		marker, info := ParseFence(lines[i])
		if info == "" && marker != "" && marker[0] == opening[0] && len(marker) >= len(opening) {
			return i
		}
	}
	return len(lines)
}

// ParseFence splits a line like ```ts into the Markdown fence and the text after it. The fence is empty if the line
// does not begin with a fence.
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
