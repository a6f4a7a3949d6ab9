package tsc

import (
	"fmt"
	"regexp"
	"testing"
)

var mark = regexp.MustCompile(`mark\d+`)

// TestLocate checks that Locate maps the position of each mark in the emitted JavaScript to the position of the same
// mark in the source, whatever precedes it.
func TestLocate(t *testing.T) {
	for name, code := range map[string]string{
		"plain":          "mark1();\n  mark2();\nreturn mark3",
		"types":          "interface A { a: string;\n b: number }\ntype B = A | {\n x: 1 };\nmark1(); const b: B = null as any; mark2<B>(b as unknown as\n A); mark3();",
		"enums":          "enum E {\n A,\n B = 5 }\nconst enum F { C }\nmark1(E.A, F.C);\nnamespace N { export const x = mark2 }\nmark3(N.x)",
		"imports":        "import * as gh from './servers/github';\n\nimport { getUser,\n listIssues } from './servers/github'; mark1(gh, getUser);\nmark2(listIssues);\nreturn mark3",
		"late import":    "mark1(getUser);\nimport { getUser } from './servers/github'; mark2();\nmark3()",
		"rewritten":      "#!/usr/bin/env node\nconst gh = require('./servers/github'); mark1(gh);\nif (gh) { return mark2 }\nawait import('./servers/github').then(m => mark3(m));",
		"exports":        "export const x = mark1; export default async function main() { mark2(x); }\nexport class C { x = mark3 }",
		"classes":        "class A { constructor(private x: number,\n readonly y = mark1) { mark2(); }\n static z: number = mark3; declare w: string }\nmark4(A)",
		"decorators":     "const d: any = mark1;\n@d class A { @d() x = mark2 }\nmark3(A)",
		"object":         "{ a: mark1(), b: [\n mark2] }",
		"wide":           "const s: string = '😀é漢'; mark1('😀', mark2); /* 漢 */ mark3(`😀${mark4}`)",
		"CRLF":           "const a: number = 1;\r\nmark1(`a\r\nb`, mark2);\r\n\r\nmark3()",
		"old Mac":        "const a: number = 1;\rmark1();\rmark2()",
		"separators":     "const a: string = '\u2028'; mark1(a);\nmark2()",
		"tabs, one line": "\t\tif (true) { for (const x of [mark1]) { mark2(x); } } else { mark3() }",
		"arrows":         "const f = async (x: number): Promise<number> => {\n  await mark1(x); return mark2(x) };\nf(1)",
		"template":       "const s = `${mark1}\n${`${mark2 as any}`}`;\nmark3(s)",
		"optional":       "const x: any = mark1; x?.a?.[mark2]?.(mark3 ?? mark4!)",
		"only function":  "async function f(x?: number): Promise<void> {\n  mark1();\n  throw mark2;\n}",
	} {
		result := mustCheck(t, New(Limits{}), code, TypeScript)
		src := newLineTable(code)
		body := newLineTable(result.JavaScript)
		seen := 0
		for _, at := range mark.FindAllStringIndex(result.JavaScript, -1) {
			text := result.JavaScript[at[0]:at[1]]
			line, column := result.Locate(body.position(at[0]))
			offset := src.offset(line, column)
			if got := fmt.Sprintf("%.5s", code[offset:]); got != text {
				t.Errorf("%s: %s leads to %d:%d, where %q is\n%s", name, text, line, column, got, result.JavaScript)
			}
			seen++
		}
		if want := len(mark.FindAllString(code, -1)); seen < want {
			t.Errorf("%s: %d marks of %d are left in\n%s", name, seen, want, result.JavaScript)
		}
	}
}

func TestLocateOutside(t *testing.T) {
	result := mustCheck(t, New(Limits{}), "const a: number = 1;\nreturn a", TypeScript)
	for _, at := range [][2]int{{0, 0}, {-1, -5}, {1, 1000}, {1000, 1}, {1 << 30, 1 << 30}} {
		if line, column := result.Locate(at[0], at[1]); line < 1 || line > 2 || column < 1 {
			t.Errorf("%v leads to %d:%d", at, line, column)
		}
	}
}

func TestLineTable(t *testing.T) {
	for text, want := range map[string][]string{
		"a\nbé\n":   {"1:1", "1:2", "2:1", "2:2", "2:2", "2:3", "3:1"},
		"😀a":        {"1:1", "1:2", "1:2", "1:2", "1:2", "1:3"},
		"a\r\nb\rc": {"1:1", "1:2", "1:3", "2:1", "2:2", "3:1", "3:2"},
		"":          {"1:1"},
	} {
		table := newLineTable(text)
		for offset := range len(text) + 1 {
			line, column := table.position(offset)
			if got := fmt.Sprintf("%d:%d", line, column); got != want[offset] && offset < len(text) && text[offset] < 0x80 {
				t.Errorf("%q: %d is at %s, want %s", text, offset, got, want[offset])
			}
			if offset < len(text) && text[offset]&0xc0 != 0x80 && table.offset(line, column) != offset {
				t.Errorf("%q: %d:%d is at %d, want %d", text, line, column, table.offset(line, column), offset)
			}
		}
	}
}

func TestEdits(t *testing.T) {
	var e edits
	e.insert(3, "X")
	e.replace(3, 5, "YY")
	e.move(8, 0, "moved ")
	e.replace(8, 9, "")
	text, back := e.apply("abcdefghijk")
	if text != "moved abcXYYfghjk" {
		t.Errorf("got %q", text)
	}
	for at, want := range map[int]int{0: 8, 5: 8, 6: 0, 8: 2, 9: 3, 10: 3, 11: 3, 12: 5, 14: 7, 15: 9, 16: 10} {
		if got := back.back(at); got != want {
			t.Errorf("%d was at %d, want %d", at, got, want)
		}
	}
}
