package clientfiles

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"retort/internal/config"
)

// fuzzFormat checks for any file of a format that no edit panics. It replaces all servers in the file by Retort and
// then reverses this edit; if both edits succeed, the file must have as many servers as before.
func fuzzFormat(f *testing.F, format fileFormat, at []string, pattern string) {
	files, _ := filepath.Glob(pattern)
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src)
		f.Add(bytes.ReplaceAll(src, []byte("\n"), []byte("\r\n")))
	}
	ours := objectMember{Name: ourName, Value: json.RawMessage(`{"command":"retort","args":["serve","--config","x"]}`)}
	f.Fuzz(func(t *testing.T, src []byte) {
		if len(src) > 1<<16 {
			return
		}
		before, err := format.readMembers(src, at)
		if err != nil {
			return
		}
		for _, m := range before {
			if m.Name == ourName {
				return
			}
		}
		text, err := editOnce(format, src, at, memberNames(before), []objectMember{ours})
		if _, strict := format.(jsonFile); err != nil && strict {
			t.Fatalf("%v: %q", err, src)
		}
		if err != nil {
			return // refused, so nothing would be changed
		}
		back, err := editOnce(format, text, at, []string{ourName}, before)
		if err != nil {
			return
		}
		after, err := format.readMembers(back, at)
		if err != nil || len(after) != len(before) {
			t.Fatalf("%v: %d members, then %d\n%q\n%q\n%q", err, len(before), len(after), src, text, back)
		}
	})
}

func FuzzJSONFile(f *testing.F) {
	fuzzFormat(f, jsonFile{}, []string{"mcpServers"}, "testdata/files/c[lu]*/*")
}
func FuzzTOMLFile(f *testing.F) {
	fuzzFormat(f, tomlFile{}, []string{"mcp_servers"}, "testdata/files/codex/*")
}
func FuzzYAMLFile(f *testing.F) {
	fuzzFormat(f, yamlFile{}, []string{"extensions"}, "testdata/files/goose/*")
}

// FuzzPlaceholders checks that a text keeps its meaning in Retort's server file if it comes from a client that knows
// no placeholders. If it comes from a client that knows placeholders, only these may be replaced.
func FuzzPlaceholders(f *testing.F) {
	for _, s := range []string{"", "$", "${", "$${X}", "$$${X}", "${X}", "${X:-d}", "$X", "{env:X}", "${env:X}", "$${env:X}", "${input:x}", "a${b}c$"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !isText(s) || bytes.ContainsRune([]byte(s), 0) {
			return
		}
		tr := &placeholderTranslator{}
		if got, err := expandInServerFile(t, tr.translateText(s)); err != nil || got != s {
			t.Errorf("%q became %q: %v", s, got, err)
		}
		curly := &placeholderTranslator{placeholderDialect: placeholderDialect{curly: true}}
		if text := curly.translateText("{env:X}" + s); len(curly.notes) == 0 {
			if got, err := expandInServerFile(t, text); err == nil && got[:1] != "x" {
				t.Errorf("%q became %q", "{env:X}"+s, got)
			}
		}
	})
}

// expandInServerFile returns what Retort makes of a text in its server file: the text with its placeholders
// replaced.
func expandInServerFile(t *testing.T, text string) (string, error) {
	entry, err := marshalCompact(map[string]any{"mcpServers": map[string]any{"s": map[string]any{"command": "c", "args": []string{text}}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mcp.json")
	if err := os.WriteFile(file, entry, 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := config.Load(config.Options{Files: []string{file}, Dir: filepath.Dir(file), Getenv: func(k string) (string, bool) { return "x", k == "X" }})
	if err != nil {
		t.Fatal(err)
	}
	if s := c.Servers[0]; s.Err != nil {
		return "", s.Err
	}
	return c.Servers[0].Args[0], nil
}

func TestPlaceholders(t *testing.T) {
	all := placeholderDialect{prefixed: true}
	for _, tt := range []struct {
		d    placeholderDialect
		from string
		want string // as Retort expands it; X is x
	}{
		{placeholderDialect{braces: true}, "a${X}b${Y:-d}", "axbd"},
		{placeholderDialect{braces: true}, "$${X} $X", "$x $X"},
		{placeholderDialect{braces: true, dollar: true}, "$X-${X}$X $5 $$X", "x-xx $5 $x"},
		{all, "${env:X}", "x"},
		{all, "$$$${env:X}${X}", "$$$x${X}"},
		{all, "a${/}b", "a/b"},
		{placeholderDialect{curly: true}, "{env:X} ${X} {env:} {x", "x ${X} {env:} {x"},
		{placeholderDialect{}, "${X} {env:X} $X", "${X} {env:X} $X"},
	} {
		tr := &placeholderTranslator{placeholderDialect: tt.d}
		text := tr.translateText(tt.from)
		if got, err := expandInServerFile(t, text); err != nil || got != tt.want {
			t.Errorf("%q → %q → %q (%v), want %q", tt.from, text, got, err, tt.want)
		}
	}
	for _, s := range []string{"${command:x}", "${file:/x}", "${env:A(B)}", "${input:never declared}"} {
		tr := &placeholderTranslator{placeholderDialect: all}
		if text := tr.translateText(s); len(tr.notes) != 1 {
			t.Errorf("%q → %q says nothing", s, text)
		} else if _, err := expandInServerFile(t, text); err == nil {
			t.Errorf("%q → %q starts", s, text)
		}
	}
}
