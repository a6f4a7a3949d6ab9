package packaging

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"strings"
	"testing"
	"time"
)

var testSum = strings.Repeat("0a", 32)

func testBinary() Binary {
	return Binary{
		Build: &debug.BuildInfo{GoVersion: "go1.26.8 X:test", Deps: []*debug.Module{
			{Path: "example.org/a/b", Version: "v1.2.3", Sum: "h1:AAAA="},
			{Path: "example.org/a-b", Version: "v1.2.3"},
			{Path: "example.org/old", Version: "v2.0.0+incompatible"},
			{Path: "example.org/local", Version: "v0.0.0", Replace: &debug.Module{Path: "./local", Version: "(devel)"}},
			{Path: "example.org/forked", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/fork", Version: "v1.0.1"}},
		}},
		SHA256: testSum, Platform: platforms[0], Time: time.Date(2026, 11, 26, 17, 0, 0, 0, time.FixedZone("", 3600)),
	}
}

func TestSBOM(t *testing.T) {
	text, err := SBOM("1.2.3", testAccounts(), testBinary())
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "spdx/required.schema.json", text)
	var d spdxDocument
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	var names []string
	ids := map[string]bool{"SPDXRef-DOCUMENT": true}
	for _, p := range d.Packages {
		names = append(names, p.Name+" "+p.Version)
		if ids[p.ID] {
			t.Errorf("%s is the identifier of two packages", p.ID)
		}
		ids[p.ID] = true
	}
	want := "retort 1.2.3,stdlib 1.26.8,example.org/a/b v1.2.3,example.org/a-b v1.2.3,example.org/old v2.0.0+incompatible,example.org/local ,example.org/fork v1.0.1"
	if got := strings.Join(names, ","); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	for _, r := range d.Relationships {
		if !ids[r.From] || !ids[r.To] {
			t.Errorf("%v relates to nothing", r)
		}
	}
	if len(d.Relationships) != len(d.Packages) || d.Creation.Created != "2026-11-26T16:00:00Z" || d.Packages[0].Checksums[0].Value != testSum {
		t.Errorf("%s", text)
	}
	if !strings.Contains(string(text), "pkg:golang/example.org/old@v2.0.0%2Bincompatible") || !strings.Contains(string(text), "h1:AAAA=") {
		t.Errorf("%s", text)
	}
}

func TestSBOMRefuses(t *testing.T) {
	for name, change := range map[string]func(*Binary){
		"no build information": func(b *Binary) { b.Build = nil },
		"no version of Go":     func(b *Binary) { b.Build = &debug.BuildInfo{} },
		"no time":              func(b *Binary) { b.Time = time.Time{} },
		"digest":               func(b *Binary) { b.SHA256 = "0a" },
	} {
		b := testBinary()
		change(&b)
		if text, err := SBOM("1.2.3", testAccounts(), b); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
	for _, v := range hostileVersions() {
		if text, err := SBOM(v, testAccounts(), testBinary()); err == nil {
			t.Errorf("%q: %s", v, text)
		}
	}
}

func testBuild() Build {
	return Build{
		Version: "1.2.3", Commit: strings.Repeat("c", 40), Go: "go1.26.8",
		GoSum: []byte("example.org/a v1.0.0 h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\nexample.org/a v1.0.0/go.mod h1:AAAA=\n"),
	}
}

func TestProvenance(t *testing.T) {
	files := []ReleaseFile{{"a.tar.gz", testSum}, {"b.deb", testSum}}
	text, err := Provenance(testAccounts(), testBuild(), files)
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "provenance/required.schema.json", text)
	var s statement
	if err := json.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	if len(s.Subject) != 2 || s.Subject[1].Name != "b.deb" || s.Predicate.Run.Builder.ID != testAccounts().Builder {
		t.Errorf("%+v", s)
	}
	dependencies := s.Predicate.Definition.Dependencies
	if len(dependencies) != 2 || dependencies[0].Digest["gitCommit"] != testBuild().Commit ||
		dependencies[1].URI != "pkg:golang/example.org/a@v1.0.0" ||
		dependencies[1].Digest["dirHash"] != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
		t.Errorf("%+v", dependencies)
	}
}

// TestProvenanceOfDryRun checks that the statement of a dry run differs from that of a release.
func TestProvenanceOfDryRun(t *testing.T) {
	b := testBuild()
	b.DryRun, b.Modified = true, true
	text, err := Provenance(testAccounts(), b, []ReleaseFile{{"a.tar.gz", testSum}})
	if err != nil {
		t.Fatal(err)
	}
	checkSchema(t, "provenance/required.schema.json", text)
	for _, want := range []string{`"id": "` + testAccounts().Builder + `#dry-run"`, `"dryRun": true`, `"modified": true`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

func TestProvenanceRefuses(t *testing.T) {
	files := []ReleaseFile{{"a.tar.gz", testSum}}
	for name, change := range map[string]func(*Build){
		"short commit":         func(b *Build) { b.Commit = "cccccccc" },
		"no commit":            func(b *Build) { b.Commit = "none" },
		"modified release":     func(b *Build) { b.Modified = true },
		"no version of Go":     func(b *Build) { b.Go = "" },
		"no go.sum":            func(b *Build) { b.GoSum = nil },
		"go.sum with HTML":     func(b *Build) { b.GoSum = []byte("<html>\n") },
		"go.sum with bad hash": func(b *Build) { b.GoSum = []byte("example.org/a v1.0.0 h1:???\n") },
		"go.sum with new hash": func(b *Build) { b.GoSum = []byte("example.org/a v1.0.0 h2:AAAA\n") },
	} {
		b := testBuild()
		change(&b)
		if text, err := Provenance(testAccounts(), b, files); err == nil {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text, err := Provenance(testAccounts(), testBuild(), nil); err == nil {
		t.Errorf("without files: %s", text)
	}
	for _, v := range hostileVersions() {
		b := testBuild()
		b.Version = v
		if text, err := Provenance(testAccounts(), b, files); err == nil {
			t.Errorf("%q: %s", v, text)
		}
	}
}

func TestFormula(t *testing.T) {
	template := read(t, "packaging/homebrew/retort.rb")
	var files []ReleaseFile
	for i, p := range platforms {
		files = append(files, ReleaseFile{p.fileName("1.2.3", "tar.gz"), strings.Repeat(string(rune('a'+i)), 64)})
	}
	text, err := Formula(template, "1.2.3", testAccounts(), files)
	if err != nil {
		t.Fatal(err)
	}
	order := []string{
		"class Retort < Formula", `version "1.2.3"`, "on_macos do", "on_arm do",
		"https://github.com/some-one/retort/releases/download/v1.2.3/retort_1.2.3_darwin_arm64.tar.gz", strings.Repeat("d", 64),
		"on_intel do", "retort_1.2.3_darwin_amd64.tar.gz", strings.Repeat("c", 64),
		"on_linux do", "on_arm do", "retort_1.2.3_linux_arm64.tar.gz", strings.Repeat("b", 64),
		"on_intel do", "retort_1.2.3_linux_amd64.tar.gz", strings.Repeat("a", 64), "def install", "test do",
	}
	rest := string(text)
	for _, want := range order {
		_, after, found := strings.Cut(rest, want)
		if !found {
			t.Fatalf("no %q where it belongs in\n%s", want, text)
		}
		rest = after
	}
	if opened, ended := bytes.Count(text, []byte(" do\n"))+bytes.Count(text, []byte("class "))+bytes.Count(text, []byte("def ")), bytes.Count(text, []byte("end\n")); opened != ended {
		t.Errorf("%d blocks begin and %d end in\n%s", opened, ended, text)
	}
	if partial, err := Formula(template, "1.2.3", testAccounts(), files[:1]); err != nil || strings.Contains(string(partial), "on_macos") {
		t.Errorf("%v: %s", err, partial)
	}
}

func TestFormulaRefuses(t *testing.T) {
	template := read(t, "packaging/homebrew/retort.rb")
	files := []ReleaseFile{{"retort_1.2.3_linux_amd64.tar.gz", testSum}}
	for _, v := range append(hostileVersions(), "1.2.4") {
		if text, err := Formula(template, v, testAccounts(), files); err == nil {
			t.Errorf("%q: %s", v, text)
		}
	}
	for _, broken := range []string{"{{ .Nothing }}", "{{"} {
		if text, err := Formula([]byte(broken), "1.2.3", testAccounts(), files); err == nil {
			t.Errorf("%q: %s", broken, text)
		}
	}
}
