package source

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// frameWidth bounds how much of a long line a frame shows, in code points.
const frameWidth = 110

// CodeFrame returns a text that shows a place in a program: the line before it, its line, and carets under it. width
// is the length of the place in code points.
//
//	  3 | const a = 1;
//	> 4 | const b = a.c;
//	    |             ^
func CodeFrame(text string, line, column, width int) string {
	lines := splitLines(text)
	if line < 1 || line > len(lines) {
		return ""
	}
	digits := len(fmt.Sprint(line))
	shown, caret := lineWindow(lines[line-1], column)
	var b strings.Builder
	if line > 1 && strings.TrimSpace(lines[line-2]) != "" {
		before, _ := lineWindow(lines[line-2], 1)
		fmt.Fprintf(&b, "  %*d | %s\n", digits, line-1, before)
	}
	fmt.Fprintf(&b, "> %*d | %s\n", digits, line, shown)
	width = max(1, min(width, utf8.RuneCountInString(shown)-utf8.RuneCountInString(caret)))
	fmt.Fprintf(&b, "  %*s | %s^%s", digits, "", caret, strings.Repeat("~", width-1))
	return b.String()
}

func splitLines(text string) []string {
	return strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(strings.TrimPrefix(text, "\ufeff")), "\n")
}

// lineWindow returns the part of a long line around a column. caret is the white space with which to indent a caret
// below that column; it contains the line's own tabs.
func lineWindow(line string, column int) (shown, caret string) {
	runes := []rune(line)
	at := min(max(column-1, 0), len(runes))
	start := 0
	if at >= frameWidth {
		start = at - frameWidth/2
	}
	end := min(len(runes), start+frameWidth)
	lead, tail := "", ""
	if start > 0 {
		lead = "…"
	}
	if end < len(runes) {
		tail = "…"
	}
	blank := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, lead+string(runes[start:at]))
	return lead + string(runes[start:end]) + tail, blank
}
