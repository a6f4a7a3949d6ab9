package packaging

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const root = "../../.."

var platforms = Platforms()

// testAccounts returns accounts that differ from those in packaging/accounts.env.
func testAccounts() Accounts {
	return Accounts{
		Owner: "some-one", NPMScope: "@some-scope", NPMPackage: "@some-scope/retort", Image: "registry.example/some-one/retort",
		HomebrewTap: "some-one/tap", Maintainer: "maintainers@some.example", Builder: "https://builder.example/release",
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// checkSchema checks that a document is valid against a schema in testdata.
func checkSchema(t *testing.T, schema string, document []byte) {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", schema))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(v); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
}

// engineVersion returns the value of the constant Version in the source of package engine.
func engineVersion(t *testing.T) string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "internal", "engine", "engine.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	if o := file.Scope.Lookup("Version"); o != nil {
		if spec, ok := o.Decl.(*ast.ValueSpec); ok {
			v, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err == nil {
				return v
			}
		}
	}
	t.Fatal("engine.go has no constant Version")
	return ""
}

func TestVersionsAgree(t *testing.T) {
	want := engineVersion(t)
	for _, name := range []string{"packaging/manifest.json", "packaging/server.json"} {
		if got, err := ReadVersion(read(t, name)); got != want || err != nil {
			t.Errorf("%s: %q, %v; retort.Version is %q", name, got, err, want)
		}
	}
	if !strings.Contains(string(read(t, "packaging/server.json")), `"@IMAGE@:`+want+`"`) {
		t.Errorf("server.json does not name the image of %s", want)
	}
	for _, broken := range []string{`{}`, `{"version": "v1"}`, `{"version": "../1.2.3"}`} {
		if v, err := ReadVersion([]byte(broken)); err == nil {
			t.Errorf("%s: %q", broken, v)
		}
	}
}

func TestManifest(t *testing.T) {
	template := read(t, "packaging/manifest.json")
	checkSchema(t, "mcpb/manifest.schema.json", template)
	for _, p := range platforms {
		text, err := RenderManifest(template, p)
		if err != nil {
			t.Fatal(err)
		}
		checkSchema(t, "mcpb/manifest.schema.json", text)
	}
	var m struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal(template, &m); err != nil || len(m.Tools) == 0 {
		t.Fatal(m, err)
	}
	for _, tool := range m.Tools {
		if _, err := os.Stat(filepath.Join(root, "internal/mcp/server/tools", tool.Name+".json")); err != nil {
			t.Errorf("the manifest names a tool that is not there: %v", err)
		}
	}
	for _, broken := range []string{`[]`, `{}`, `{"server":{}}`} {
		if text, err := RenderManifest([]byte(broken), platforms[0]); err == nil {
			t.Errorf("%s: %s", broken, text)
		}
	}
}

func TestBundle(t *testing.T) {
	template := read(t, "packaging/manifest.json")
	for _, p := range platforms {
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := WriteBundle(b, template, strings.NewReader("binary"), p); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%v: two bundles of the same differ", p)
		}
		z, err := zip.NewReader(bytes.NewReader(first.Bytes()), int64(first.Len()))
		if err != nil {
			t.Fatal(err)
		}
		var m struct {
			Server struct {
				Entry  string                   `json:"entry_point"`
				Config struct{ Command string } `json:"mcp_config"`
			}
			Compatibility struct{ Platforms []string }
		}
		if err := json.Unmarshal(content(t, z, "manifest.json"), &m); err != nil {
			t.Fatal(err)
		}
		if string(content(t, z, m.Server.Entry)) != "binary" || m.Server.Config.Command != "${__dirname}/"+m.Server.Entry {
			t.Errorf("%v: %+v", p, m)
		}
		if f := z.File[1]; f.Mode().Perm() != 0o755 || strings.HasSuffix(f.Name, ".exe") != (p.OS == "windows") || !slices.Contains([]string{"linux", "darwin", "win32"}, m.Compatibility.Platforms[0]) {
			t.Errorf("%v: %s %v %v", p, f.Name, f.Mode(), m.Compatibility)
		}
	}
}

func content(t *testing.T, z *zip.Reader, name string) []byte {
	t.Helper()
	f, err := z.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestEntry(t *testing.T) {
	template := read(t, "packaging/server.json")
	sum := strings.Repeat("0a", 32)
	text, err := RegistryEntry(template, testAccounts(), []ReleaseFile{{BundleName(engineVersion(t), platforms[0]), sum}})
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "registry/server.schema.json", text)
	for _, want := range []string{
		`"name": "io.github.some-one/retort"`, `"registry.example/some-one/retort:`, `"fileSha256": "` + sum + `"`,
		`"https://github.com/some-one/retort/releases/download/v` + engineVersion(t) + `/retort_` + engineVersion(t) + `_linux_amd64.mcpb"`,
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
	for _, broken := range []string{`{"name": "io.github.@OWN@/retort", "version": "1.2.3"}`, `{"version": "1"}`, `{}`, `[]`} {
		if left, err := RegistryEntry([]byte(broken), testAccounts(), nil); err == nil {
			t.Errorf("%s becomes %s", broken, left)
		}
	}
}

// TestTemplateIsNoEntry checks that the template of the registry entry is not itself a valid entry.
func TestTemplateIsNoEntry(t *testing.T) {
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "registry/server.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, "packaging/server.json")))
	if err != nil {
		t.Fatal(err)
	}
	if s.Validate(v) == nil {
		t.Error("packaging/server.json can be published as it is")
	}
}

// TestSchemasCanRefuse checks that the schemas in testdata reject invalid documents. Otherwise the other tests would
// prove nothing.
func TestSchemasCanRefuse(t *testing.T) {
	for schema, document := range map[string]any{
		"registry/server.schema.json":     map[string]any{"name": "no namespace", "description": "d", "version": "1"},
		"spdx/required.schema.json":       map[string]any{"spdxVersion": "SPDX-2.3", "packages": []any{}},
		"provenance/required.schema.json": map[string]any{"_type": "https://in-toto.io/Statement/v1", "subject": []any{}},
		"mcpb/manifest.schema.json":       map[string]any{"manifest_version": "0.3", "name": "n", "version": "1", "description": "d", "author": map[string]any{"name": "a"}},
	} {
		s, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", schema))
		if err != nil {
			t.Fatal(err)
		}
		if s.Validate(document) == nil {
			t.Errorf("%s takes %v", schema, document)
		}
	}
}
