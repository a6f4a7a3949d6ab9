// Package source is about the text of programs, whatever their language: where the
// program is in what was sent, how a place in it is shown, and what is said of names
// that it has wrong.
package source

import (
	"slices"
	"strings"
)

// Piece is the part of a request's text that is the program. It starts a line.
type Piece struct {
	Code  string
	Lines int // before it
}

// Pieces lists what the program in text may be, best first: the text as a
// whole, and what stands between its first and its last Markdown fence. To
// JavaScript, three backticks are a template behind an empty one, so text with
// a fence may parse all the same; it is a program as a whole only if the fence
// may stand in a comment or a string, which begin with one of openings.
func Pieces(text string, openings ...string) []Piece {
	text = strings.TrimPrefix(text, "\ufeff")
	whole := Piece{Code: text}
	lines := strings.SplitAfter(text, "\n")
	first, marker := openingFence(lines)
	if first < 0 {
		return []Piece{whole}
	}
	last := closingFence(lines, first, marker)
	block := Piece{strings.Join(lines[first+1:last], ""), first + 1}
	before := strings.Join(lines[:first], "")
	if slices.ContainsFunc(openings, func(o string) bool { return strings.Contains(before, o) }) {
		return []Piece{whole, block}
	}
	return []Piece{block}
}

// openingFence finds the first line like ```ts; -1 if there is none.
func openingFence(lines []string) (int, string) {
	for i, line := range lines {
		if marker, info := Fence(line); marker != "" && !strings.Contains(info, "`") {
			return i, marker
		}
	}
	return -1, ""
}

// closingFence finds the last line that closes the fence at first. A program
// that was cut off has none; it goes on to the end.
func closingFence(lines []string, first int, opening string) int {
	for i := len(lines) - 1; i > first; i-- {
		marker, info := Fence(lines[i])
		if info == "" && marker != "" && marker[0] == opening[0] && len(marker) >= len(opening) {
			return i
		}
	}
	return len(lines)
}

// Fence takes a line like ```ts apart; the marker is empty if it is no fence.
func Fence(line string) (marker, info string) {
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
