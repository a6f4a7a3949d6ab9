package typescript

import (
	"context"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// TestLocate checks that errors have the position in the text as it was sent, with the prose and fences around the
// program.
func TestLocate(t *testing.T) {
	c, tools := newChecker(t), sample()
	const program = "interface A { a: number }\nenum E { X, Y }\n  boom(E.Y);\n"
	const declared = "declare function boom(x: any): void;\n"
	for name, code := range map[string]string{
		"plain":       declared + program,
		"BOM":         "\ufeff" + program + declared,
		"CRLF":        strings.ReplaceAll(program+declared, "\n", "\r\n"),
		"fenced":      "```ts\n" + program + declared + "```",
		"prose":       "Here:\n\n~~~typescript\n" + program + declared + "~~~\nDone.",
		"CRLF, prose": strings.ReplaceAll("Here:\n\n```\n"+program+declared+"```\n", "\n", "\r\n"),
	} {
		checked, refusal := c.CheckProgram(context.Background(), ProgramSource{Code: code, Language: core.TypeScript}, tools)
		if refusal != nil {
			t.Errorf("%s: %s", name, refusal.Message)
			continue
		}
		line, column := find(checked.Code, "boom")
		wantLine, wantColumn := find(strings.TrimPrefix(code, "\ufeff"), "boom(E")
		if line, column = checked.Locate(line, column); line != wantLine || column != wantColumn {
			t.Errorf("%s: got %d:%d, want %d:%d", name, line, column, wantLine, wantColumn)
		}
		broken := strings.Replace(code, "boom(E", "bang(E", 1)
		_, refusal = c.CheckProgram(context.Background(), ProgramSource{Code: broken, Language: core.TypeScript}, tools)
		if refusal == nil || refusal.Line != wantLine || refusal.Column != wantColumn || !strings.Contains(refusal.Frame, "bang(E.Y)") {
			t.Errorf("%s: got %+v, want it at %d:%d", name, refusal, wantLine, wantColumn)
		}
	}
}

// find returns the line and column at which a string first occurs in an ASCII text.
func find(text, what string) (line, column int) {
	at := strings.Index(text, what)
	before := text[:at]
	return strings.Count(before, "\n") + 1, at - strings.LastIndexByte(before, '\n')
}

func TestLocateNothing(t *testing.T) {
	if line, column := (CheckedProgram{}).Locate(3, 4); line != 3 || column != 4 {
		t.Errorf("got %d:%d", line, column)
	}
}

func TestFrame(t *testing.T) {
	for _, test := range []struct {
		text                string
		line, column, width int
		want                string
	}{
		{"a\nbcd\ne", 2, 2, 2, "  1 | a\n> 2 | bcd\n    |  ^~"},
		{"a", 1, 1, 99, "> 1 | a\n    | ^"},
		{"\n\tabc", 2, 2, 3, "> 2 | \tabc\n    | \t^~~"},
		{"x", 5, 1, 1, ""},
		{"x", 0, 0, 1, ""},
		{"", 1, 1, 1, "> 1 | \n    | ^"},
		{strings.Repeat("\n", 9) + "ab", 10, 2, 1, "> 10 | ab\n     |  ^"},
	} {
		if got := source.CodeFrame(test.text, test.line, test.column, test.width); got != test.want {
			t.Errorf("frame(%q, %d, %d, %d)\n got %q\nwant %q", test.text, test.line, test.column, test.width, got, test.want)
		}
	}
}
