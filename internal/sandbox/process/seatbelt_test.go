package process

import (
	"strings"
	"testing"
)

func TestSeatbelt(t *testing.T) {
	text := seatbeltProfile(`/Applications/My "Tools"/re\tort`)
	for _, want := range []string{"(version 1)\n(deny default)\n", `(allow process-exec (literal "/Applications/My \"Tools\"/re\\tort"))`, "(deny network*)", "(deny process-fork)"} {
		if !strings.Contains(text, want) {
			t.Errorf("the profile lacks %s:\n%s", want, text)
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "(allow") && (strings.Contains(line, "network") || strings.Contains(line, "mach") || strings.Contains(line, "fork") || strings.Contains(line, "file-write*")) {
			t.Errorf("allowed: %s", line)
		}
	}
	depth := 0
	inString, escaped := false, false
	for _, r := range text {
		switch {
		case escaped:
			escaped = false
		case inString && r == '\\':
			escaped = true
		case r == '"':
			inString = !inString
		case inString:
		case r == '(':
			depth++
		case r == ')':
			if depth--; depth < 0 {
				t.Fatalf("a parenthesis too many:\n%s", text)
			}
		}
	}
	if depth != 0 || inString {
		t.Errorf("parentheses or strings are left open:\n%s", text)
	}
}
