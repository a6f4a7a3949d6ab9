package catalog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"retort/internal/core"
)

const (
	maxDiff      = 64 << 10 // bytes of a comparison
	maxDiffLines = 2000     // lines of one field; a longer field is shown completely in its old and new form
	contextLines = 2        // number of equal lines shown around a difference
)

// diffDefinitions describes how two definitions differ, field by field, in lines that begin with "-", "+" or a blank.
// The order of keys is ignored. Invisible characters are escaped.
func diffDefinitions(was, now json.RawMessage) string {
	if len(was) == 0 {
		return boundText(describeDifference(nil, now))
	}
	return boundText(describeDifference(was, now))
}

func boundText(text string) string {
	if len(text) > maxDiff {
		text = strings.ToValidUTF8(text[:maxDiff], "") + "\n… and more\n"
	}
	return text
}

func describeDifference(was, now json.RawMessage) string {
	a, b := parseJSON(was, maxDepth), parseJSON(now, maxDepth)
	var out strings.Builder
	for _, field := range []string{"title", "description", "inputSchema", "outputSchema", "annotations", "execution", "icons", "_meta"} {
		before, after := fieldLines(a, field), fieldLines(b, field)
		changed := compareLines(before, after)
		if changed == nil {
			continue
		}
		fmt.Fprintf(&out, "%s:\n", field)
		for _, line := range changed {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

// fieldLines returns the value of one field of a definition as the lines of text that people see in a comparison.
func fieldLines(definition jsonNode, field string) []string {
	n, ok := definition.findMember(field)
	if !ok {
		return nil
	}
	text := string(n.raw)
	if n.firstByte() == '"' {
		text, _ = unquoteJSON(n.raw)
	} else {
		var b bytes.Buffer
		if json.Indent(&b, n.appendCanonical(nil), "", "  ") == nil {
			text = b.String()
		}
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = core.EscapeIllegible(strings.ReplaceAll(line, "\t", "    "))
	}
	return lines
}

// compareLines returns the lines in which two texts differ, or nil if they are equal.
func compareLines(a, b []string) []string {
	first := 0
	for first < len(a) && first < len(b) && a[first] == b[first] {
		first++
	}
	last := 0
	for last < len(a)-first && last < len(b)-first && a[len(a)-1-last] == b[len(b)-1-last] {
		last++
	}
	if first == len(a) && first == len(b) {
		return nil
	}
	middle := changedLines(a[first:len(a)-last], b[first:len(b)-last])
	var all []string
	for _, line := range a[max(0, first-contextLines):first] {
		all = append(all, "  "+line)
	}
	all = append(all, middle...)
	for _, line := range a[len(a)-last : len(a)-last+min(last, contextLines)] {
		all = append(all, "  "+line)
	}
	return all
}

// changedLines compares lines by their longest common subsequence.
func changedLines(a, b []string) (all []string) {
	if len(a) > maxDiffLines || len(b) > maxDiffLines || len(a)*len(b) > 1<<20 {
		return append(markLines("- ", a), markLines("+ ", b)...)
	}
	longest := make([][]int32, len(a)+1)
	for i := range longest {
		longest[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			all = append(all, "  "+a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			all = append(all, "- "+a[i])
			i++
		default:
			all = append(all, "+ "+b[j])
			j++
		}
	}
	return append(append(all, markLines("- ", a[i:])...), markLines("+ ", b[j:])...)
}

func markLines(mark string, lines []string) []string {
	all := make([]string, len(lines))
	for i, line := range lines {
		all[i] = mark + line
	}
	return all
}
