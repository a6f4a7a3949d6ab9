package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// runStylestats runs stylestats with args and returns its output.
func runStylestats(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(args, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestFigures(t *testing.T) {
	want := `files                              4
lines                             46
functions                          8
one-word function names         75.0 %
types                              5
one-word type names             80.0 %
doc comments                       5
comments "X is/are ..."         60.0 %
function length p50                1 lines
function length p99                3 lines
function length max                3 lines
files over 800 lines               0
lines over 140 columns          2.17 %
`
	if diff := cmp.Diff(want, runStylestats(t, "testdata/tree")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestFilesOver800Lines(t *testing.T) {
	dir := t.TempDir()
	for name, lines := range map[string]int{"fits.go": 799, "long.go": 800} {
		text := "package a\n" + strings.Repeat("\n", lines)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := runStylestats(t, dir); !strings.Contains(got, "files over 800 lines               1\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestSample(t *testing.T) {
	all := runStylestats(t, "-sample", "100", "testdata/tree")
	for _, want := range []string{
		"testdata/tree/a/a.go:4  Store\n    Store is a store.\n",
		"testdata/tree/a/a.go:21  two\n    two are the next.\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if strings.Contains(all, "belongs to none") {
		t.Errorf("the comment of a group is drawn:\n%s", all)
	}
	two := runStylestats(t, "-sample", "2", "-seed", "7", "testdata/tree")
	if strings.Count(two, "\n") != 4 || two != runStylestats(t, "-sample", "2", "-seed", "7", "testdata/tree") {
		t.Errorf("the sample is not two comments, or changes:\n%s", two)
	}
	if two == runStylestats(t, "-sample", "2", "-seed", "8", "testdata/tree") {
		t.Errorf("another seed draws the same:\n%s", two)
	}
}

func TestRepeated(t *testing.T) {
	want := "   4 packages  function Close\n   4 packages  type Store\n"
	if diff := cmp.Diff(want, runStylestats(t, "-repeated", "testdata/tree")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestIsOneWord(t *testing.T) {
	for name, want := range map[string]bool{"parse": true, "Parse": true, "URL": true, "sha256": true, "URLOf": false, "parseURL": false, "HTTPServer": false, "a_b": false} {
		if got := isOneWord(name); got != want {
			t.Errorf("isOneWord(%q) = %v", name, got)
		}
	}
}

func TestNoFiles(t *testing.T) {
	if err := run([]string{t.TempDir()}, &bytes.Buffer{}); err == nil {
		t.Error("an empty tree has figures")
	}
}
