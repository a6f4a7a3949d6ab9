package clientfiles

import (
	"bytes"
	"fmt"
	"strings"
)

// diffText returns the difference between two versions of a file as a diff with three lines of context. The diff has
// only one hunk, because an edit changes one place in the file, or two places that are rarely far apart.
func diffText(name string, before, after []byte) string {
	a, b := splitLines(before), splitLines(after)
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	endA, endB := len(a), len(b)
	for endA > from && endB > from && a[endA-1] == b[endB-1] {
		endA, endB = endA-1, endB-1
	}
	if from == endA && from == endB {
		return ""
	}
	var text strings.Builder
	top, bottom := max(from-3, 0), min(endA+3, len(a))
	fmt.Fprintf(&text, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n", name, name, top+1, bottom-top, top+1, bottom-top+(endB-from)-(endA-from))
	put := func(sign string, lines []string) {
		for _, line := range lines {
			text.WriteString(sign + strings.TrimRight(line, "\r") + "\n")
		}
	}
	put(" ", a[top:from])
	put("-", a[from:endA])
	put("+", b[from:endB])
	put(" ", a[endA:bottom])
	return text.String()
}

func splitLines(src []byte) []string {
	list := strings.Split(string(src), "\n")
	if list[len(list)-1] == "" {
		return list[:len(list)-1]
	}
	return list
}

// maskValues replaces secret values in a text by ***, because users may show the text to others. It does not replace
// values shorter than four bytes.
func maskValues(src []byte, values []string) []byte {
	for _, v := range values {
		if len(v) >= 4 {
			src = bytes.ReplaceAll(src, []byte(v), []byte("***"))
		}
	}
	return src
}
