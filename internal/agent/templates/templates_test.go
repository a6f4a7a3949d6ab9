package templates

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExecute(t *testing.T) {
	data := map[string]any{
		"name": "n", "empty": "", "none": nil, "n": 3.0, "list": []any{"a", "b", "c"},
		"object": map[string]any{"b": 2.0, "a": map[string]any{"deep": "x"}}, "rows": []any{map[string]any{"id": 1.0, "tags": []any{}}, map[string]any{"id": 2.0, "tags": []any{"t"}}},
	}
	for _, c := range [][2]string{
		{"plain", "plain"},
		{"{{.name}} {{ .n }} {{.object.a.deep}} {{$.name}} {{.list}}", `n 3 x n ["a","b","c"]`},
		{"{{if .empty}}yes{{else if .n}}n{{else}}no{{end}}", "n"},
		{"{{range .list}}<{{.}}{{$.name}}>{{end}}", "<an><bn><cn>"},
		{"{{range $i, $v := .list}}{{$i}}{{$v}}{{if eq $v \"b\"}}{{break}}{{end}}{{end}}", "0a1b"},
		{"{{range .list}}{{if eq . \"b\"}}{{continue}}{{end}}{{.}}{{end}}", "ac"},
		{"{{range $k, $v := .object}}{{$k}};{{end}}{{range .none}}x{{else}}none{{end}}", "a;b;none"},
		{"{{with .object.a}}{{.deep}}{{end}}{{with .empty}}x{{else}}e{{end}}", "xe"},
		{"{{$x := 1}}{{if true}}{{$x = 2}}{{$x := 3}}{{end}}{{$x}}", "2"},
		{"{{range .rows}}{{.id}}{{range .tags}}{{.}}{{end}},{{end}}", "1,2t,"},
		{"{{.list | join \"-\"}} {{len .list | json}} {{(index0 .)}}", ""},
		{"{{and .name .empty}}|{{or .empty .name}}|{{not .n}}|{{lt .n 4}}|{{gt .n 4}}|{{ne .n 3}}", "|n|false|true|false|false"},
		{"a {{- /* comment */ -}} b{{/* x */}}", "ab"},
		{"{{(.object).b}} {{quote \"a\\nb\"}} {{line \" a\\n b\\u2028c\"}} {{indent \"  \" \"a\\nb\"}}", "2 > a\n> b a b c a\n  b"},
		{"", ""},
	} {
		tree, err := parseTemplate("t", c[0])
		if c[1] == "" && c[0] != "" {
			if err == nil {
				t.Errorf("%q was parsed", c[0])
			}
			continue
		}
		if err != nil {
			t.Errorf("%q: %v", c[0], err)
			continue
		}
		got, err := executeTemplate(tree, data)
		if err != nil || got != c[1] {
			t.Errorf("%q: %q, %v; want %q", c[0], got, err, c[1])
		}
	}
}

// TestWrong checks that each error in a template is reported with its position. It also checks that rendering stops if
// it takes too many steps or the output becomes too long.
func TestWrong(t *testing.T) {
	for _, c := range [][2]string{
		{"a\nb {{.nane}}", "t:2:4: .nane does not exist here; the existing names are .list, .name"},
		{"{{.name.first}}", "it is a text"},
		{"{{range .name}}{{end}}", "range needs an array"},
		{"{{.name | upper}}", `t:1: function "upper" not defined`},
		{"x\n{{if}}", "t:2:"},
		{"{{if .name}}", "unexpected EOF"},
		{"{{define \"x\"}}y{{end}}{{template \"x\"}}", "define and block are not supported"},
		{"{{template \"x\"}}", "is not supported here"},
		{"{{.name 1}}", "is no function"},
		{"{{len}}", "len does not take 0 arguments"},
		{"{{join \",\" .name}}", "join needs an array"},
		{"{{lt .name 1}}", "a text and a number cannot be compared"},
		{"{{range .list}}{{range $.list}}{{range $.list}}{{range $.list}}{{range $.list}}{{range $.list}}{{end}}{{end}}{{end}}{{end}}{{end}}{{end}}", "it takes too long"},
		{"{{range .list}}{{range $.list}}{{range $.list}}{{$.list | json | indent \"x\"}}{{end}}{{end}}{{end}}", "longer than"},
	} {
		data := map[string]any{"name": "n", "list": make([]any, 100)}
		var err error
		if tree, failed := parseTemplate("t", c[0]); failed != nil {
			err = failed
		} else {
			_, err = executeTemplate(tree, data)
		}
		if err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%q: %v, want %q", c[0], err, c[1])
		}
	}
}

// TestOpen checks that every built-in template renders without missing values, and that a template in the project's
// folder replaces the built-in one.
func TestOpen(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(filepath.Join(dir, "none"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range TemplateNames() {
		text, err := s.Render(name, ExampleData(name))
		if err != nil || strings.Contains(text, "{{") || strings.Contains(text, "no value") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
	if names, err := WriteBuiltins(dir); err != nil || len(names) != len(TemplateNames()) {
		t.Fatal(names, err)
	}
	if names, err := WriteBuiltins(dir); err != nil || len(names) != 0 {
		t.Errorf("what was there is written again: %v, %v", names, err)
	}
	ejected, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range TemplateNames() {
		a, _ := s.Render(name, ExampleData(name))
		b, _ := ejected.Render(name, ExampleData(name))
		if diff := cmp.Diff(a, b); diff != "" || ejected.OverriddenFile(name) == "" || s.OverriddenFile(name) != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for file, c := range map[string][2]string{
		"task.md":  {"one\n{{.taks}}", "task.md:2:2: .taks does not exist here"},
		"task.ts":  {"x", "task.ts is not a template"},
		"skill.md": {"{{range .functions}}", "skill.md:1: unexpected EOF"},
	} {
		bad := t.TempDir()
		if err := os.WriteFile(filepath.Join(bad, file), []byte(c[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(bad); err == nil || !strings.Contains(err.Message, c[1]) {
			t.Errorf("%s: %v, want %q", file, err, c[1])
		}
	}
	outside := filepath.Join(t.TempDir(), "secret")
	_ = os.WriteFile(outside, []byte("secret"), 0o600)
	linked := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(linked, "task.md")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(linked); err == nil {
		t.Error("a link out of the folder was read")
	}
}
