package bindings

import (
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
)

func TestTree(t *testing.T) {
	tools := []definition{{Name: "list_issues"}, {Name: "index"}, {Name: "con"}, {Name: "getX"}, {Name: "getx"}}
	ts := toolset(listing{"github", tools}, listing{"google-drive", tools[:1]}, listing{Name: "empty"})
	want := map[core.Language][]string{
		core.TypeScript: {
			"client.ts", "servers/index.ts", "servers/empty/index.ts", "servers/github/index.ts", "servers/github/listIssues.ts",
			"servers/github/index~1bc04b.ts", "servers/github/con~1143da.ts", "servers/github/getX~3d57b8.ts", "servers/github/getx~6e44ff.ts",
			"servers/google-drive/index.ts", "servers/google-drive/listIssues.ts",
		},
		core.Python: {
			"client.py", "servers/__init__.py", "servers/empty/__init__.py", "servers/github/__init__.py", "servers/google_drive/__init__.py",
		},
	}
	for lang, paths := range want {
		var got []string
		for name, text := range WrapperFiles(ts, lang) {
			got = append(got, name)
			if again, ok := WrapperFile(ts, lang, name); !ok || again != text {
				t.Errorf("File(%s) is not what Files has", name)
			}
			dir, base := path.Split(name)
			if names, ok := ListWrappers(ts, lang, dir); !ok || !slices.Contains(names, base) {
				t.Errorf("List(%q) lacks %s: %q", dir, base, names)
			}
		}
		if !slices.Equal(got, paths) {
			t.Errorf("%s: got %q, want %q", lang, got, paths)
		}
	}
}

func TestList(t *testing.T) {
	ts := toolset(listing{"b", []definition{{Name: "x"}}}, listing{"a", nil})
	tests := []struct {
		dir  string
		want []string
	}{
		{"", []string{"client.ts", "servers/"}},
		{".", []string{"client.ts", "servers/"}},
		{"/servers", []string{"a/", "b/", "index.ts"}},
		{"servers/", []string{"a/", "b/", "index.ts"}},
		{"servers/b", []string{"index.ts", "x.ts"}},
	}
	for _, tt := range tests {
		if got, ok := ListWrappers(ts, core.TypeScript, tt.dir); !ok || !slices.Equal(got, tt.want) {
			t.Errorf("List(%q) = %q, want %q", tt.dir, got, tt.want)
		}
	}
	for _, dir := range []string{"server", "servers/c", "servers/b/x.ts", "..", "servers/../.."} {
		if got, ok := ListWrappers(ts, core.TypeScript, dir); ok {
			t.Errorf("List(%q) = %q, but it does not exist", dir, got)
		}
	}
	if _, ok := WrapperFile(ts, core.TypeScript, "servers/b"); ok {
		t.Error("a folder is a file")
	}
}

var safePath = regexp.MustCompile(`^[\p{L}\p{N}._~-]+$`)

func TestFolders(t *testing.T) {
	var listed []listing
	for _, name := range []string{
		"plain", "with space", "with-space", "../../etc", "..", ".", "", "a/b", `a\b`, "CON", "con.txt", "COM1", "Plain", "ü", "😀", "trailing.", strings.Repeat("x", 300),
	} {
		listed = append(listed, listing{Name: name})
	}
	for _, lang := range []core.Language{core.TypeScript, core.Python} {
		seen := map[string]bool{}
		for name, folder := range ServerFolders(toolset(listed...), lang) {
			stem, _, _ := strings.Cut(folder, ".")
			if !safePath.MatchString(folder) || isDevice(stem) || strings.HasSuffix(folder, ".") || strings.HasPrefix(folder, ".") || len(folder) > 200 {
				t.Errorf("%q has the folder %q", name, folder)
			}
			if key := strings.ToLower(folder); seen[key] {
				t.Errorf("%q shares its folder %q", name, folder)
			} else {
				seen[key] = true
			}
		}
	}
	if got := ServerFolders(toolset(listed...), core.TypeScript)["with-space"]; got != "with-space" {
		t.Errorf("with-space is in %q", got)
	}
}

func TestAmbient(t *testing.T) {
	text := AmbientDeclarations()
	for _, name := range []string{"console", "setTimeout", "structuredClone", "URL", "TextDecoder", "crypto", "AbortController", "fetch", "Headers", "Response", "performance", "callMCPTool", "state", "Buffer"} {
		if !regexp.MustCompile(`(?m)^declare (var|function) ` + name + `\b`).MatchString(text) {
			t.Errorf("%s is not declared", name)
		}
	}
	for _, name := range []string{"EventSource", "XMLHttpRequest", "WebSocket"} {
		if regexp.MustCompile(`(?m)^declare .*\b` + name + `\b`).MatchString(text) {
			t.Errorf("%s is declared, but programs do not have it", name)
		}
	}
}
