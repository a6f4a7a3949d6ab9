package bindings

import (
	"strings"
	"testing"

	"retort/internal/core"
)

func TestSummary(t *testing.T) {
	tests := []struct{ description, want string }{
		{"List issues. For pagination, use after.", "List issues."},
		{"Supports formats, e.g. PNG. Others fail.", "Supports formats, e.g. PNG."},
		{"Version 2.5 of the API. More.", "Version 2.5 of the API."},
		{"# Heading\n\nText.", "Heading"},
		{"**Bold** start\nthat goes on.\n\nMore", "Bold** start that goes on."},
		{"Takes:\n- a\n- b", "Takes:"},
		{"Notion | Search\nError Responses:\n400", "Notion | Search"},
		{"Get the file.ts file", "Get the file.ts file"},
		{"検索します。次の文。", "検索します。"},
		{"\x1b[31mRed\x1b[0m\u202e text", "Red text"},
		{"", "A title"},
		{"\n \n", "A title"},
	}
	for _, tt := range tests {
		if got := SummaryLine(&core.Tool{Description: tt.description, Title: "A title"}); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.description, got, tt.want)
		}
	}
	long := SummaryLine(&core.Tool{Description: strings.Repeat("word ", 1000)})
	if len(long) > maxSentence+3 || !strings.HasSuffix(long, "…") {
		t.Errorf("not shortened: %q", long)
	}
}

func TestPlain(t *testing.T) {
	tests := []struct{ in, want string }{
		{"a\r\nb\rc\u2028d\u2029e\vf\x85", "a\nb\nc\nd\ne\nf\uFFFD"},
		{"\x1b]0;title\aX\x1b[1;31mY\x1bcZ\x1b", "XYZ"},
		{"\x1b[", ""}, {"\x1b]never ends\nnext", "\nnext"},
		{"a\u202eb\u2066c\u200bd\ufeffe\U000e0041f\u3164g", "abcdefg"},
		{"👩\u200d💻 ok\ufe0f", "👩\u200d💻 ok\ufe0f"},
		{"tab\tnul\x00", "tab nul"},
	}
	for _, tt := range tests {
		if got := plainText(tt.in); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.in, got, tt.want)
		}
	}
}

func TestQuote(t *testing.T) {
	in := "a\"\\\n\t\x01\u2028\u202e😀\U000e0041é"
	if got, want := quoteString(in), `"a\"\\\n\t\u0001\u2028\u202e😀\udb40\udc41é"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := pyQuote(in), `"a\"\\\n\t\u0001\u2028\u202e😀\U000e0041é"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// FuzzText checks that text from a server cannot end the comment, docstring or string that contains it.
func FuzzText(f *testing.F) {
	for _, s := range []string{"*/", "* /", "**//", `"""`, `\"""`, `\`, "a\\\n*/", "@ts-ignore", "*@ts-nocheck", "/// <reference/>", "\x1b]*/", "*\u200b/", "*\x1b[m/", "\"\u200b\"\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var p tsPrinter
		p.writeDoc(typeDoc{text: s, tags: []string{s}}, 1)
		p.writeParts("type A = ", noteComment(s), " ", quoteString(s), ";\n")
		text := p.b.String()
		for _, check := range []func(string) error{balanced, visible} {
			if err := check(text); err != nil {
				t.Fatalf("%v in\n%s", err, text)
			}
		}
		for line := range strings.SplitSeq(text, "\n") {
			if bare := strings.TrimLeft(line, " */"); isDirective(bare) {
				t.Fatalf("a directive: %q", line)
			}
		}
		py := newPyPrinter(&toolTypes{input: &namedType{}})
		py.writeDocstring(docLines(typeDoc{text: s, tags: []string{s}}), "    ")
		py.writeRemarks(typeDoc{text: s, tags: []string{s}}, "    ")
		py.writeParts("x = ", pyQuote(s), "\n")
		if err := balancedPython(py.b.String()); err != nil {
			t.Fatalf("%v in\n%s", err, py.b.String())
		}
	})
}
