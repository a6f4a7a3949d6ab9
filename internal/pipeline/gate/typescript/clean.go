package typescript

import "strings"

// piece is the part of a request's text that is the program. It starts a line;
// lines is the number of lines before it.
type piece struct {
	code  string
	lines int
}

// pieces lists what the program in text may be, best first: the text as a
// whole, and what stands between its first and its last Markdown fence. To
// JavaScript, three backticks are a template behind an empty one, so text with
// a fence may parse all the same; it is a program as a whole only if the fence
// may stand in a comment or a string.
func pieces(text string) []piece {
	text = strings.TrimPrefix(text, "\ufeff")
	whole := piece{code: text}
	lines := strings.SplitAfter(text, "\n")
	first, marker := openingFence(lines)
	if first < 0 {
		return []piece{whole}
	}
	last := closingFence(lines, first, marker)
	block := piece{strings.Join(lines[first+1:last], ""), first + 1}
	if before := strings.Join(lines[:first], ""); strings.Contains(before, "/*") || strings.Contains(before, "`") {
		return []piece{whole, block}
	}
	return []piece{block}
}

// openingFence finds the first line like ```ts; -1 if there is none.
func openingFence(lines []string) (int, string) {
	for i, line := range lines {
		if marker, info := fence(line); marker != "" && !strings.Contains(info, "`") {
			return i, marker
		}
	}
	return -1, ""
}

// closingFence finds the last line that closes the fence at first. A program
// that was cut off has none; it goes on to the end.
func closingFence(lines []string, first int, opening string) int {
	for i := len(lines) - 1; i > first; i-- {
		marker, info := fence(lines[i])
		if info == "" && marker != "" && marker[0] == opening[0] && len(marker) >= len(opening) {
			return i
		}
	}
	return len(lines)
}

// fence takes a line like ```ts apart; the marker is empty if it is no fence.
func fence(line string) (marker, info string) {
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
