package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const testTime = "2026-11-26T17:00:00Z"

// packageFiles runs a command line and returns what it prints. The working directory must be the root of the
// repository.
func packageFiles(args ...string) (string, error) {
	var out bytes.Buffer
	err := run(args, &out)
	return strings.TrimSpace(out.String()), err
}

func namesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// TestFilesOfARelease creates the files of a platform, with this test's binary as the program. It then creates the
// files of a release from the checksums of those files.
func TestFilesOfARelease(t *testing.T) {
	t.Chdir("../..")
	dir := filepath.Join(t.TempDir(), "files")
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	version, err := packageFiles("version")
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"wrapper", "-out", dir},
		{"platform", "-binary", binary, "-os", "linux", "-arch", "amd64", "-time", testTime, "-out", dir},
	} {
		if text, err := packageFiles(args...); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	want := []string{
		"retort-npm-" + version + ".tgz", "retort-npm-linux-x64-" + version + ".tgz",
		"retort_" + version + "_linux_amd64.mcpb", "retort_" + version + "_linux_amd64.spdx.json",
	}
	if names := namesIn(t, dir); !slices.Equal(names, want) {
		t.Errorf("%v is made, not %v", names, want)
	}
	sums := filepath.Join(dir, "SHA256SUMS")
	writeSums(t, dir, sums, append(want, "retort_"+version+"_linux_amd64.tar.gz"))
	commit := strings.Repeat("c", 40)
	for name, args := range map[string][]string{
		"retort.rb": {"formula"}, "server.json": {"registry"}, "statement.json": {"provenance", "-commit=" + commit, "-dry-run=true", "-modified=false"},
	} {
		out := filepath.Join(dir, name)
		printed, err := packageFiles(append(args, "-sums="+sums, "-out="+out)...)
		if text, _ := os.ReadFile(out); err != nil || printed != out || !bytes.Contains(text, []byte(version)) {
			t.Errorf("%s: %v, %s: %s", name, err, printed, text)
		}
	}
}

func writeSums(t *testing.T, dir, sums string, names []string) {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		sum := strings.Repeat("0", 64)
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			if sum, err = digest(filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		b.WriteString(sum + "  " + name + "\n")
	}
	if err := os.WriteFile(sums, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestRefusals checks that an invalid command line creates no file, and that the error names the problem.
func TestRefusals(t *testing.T) {
	t.Chdir("../..")
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not a binary"), 0o755); err != nil {
		t.Fatal(err)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	platform := func(binary, system, at string) []string {
		return []string{"platform", "-binary", binary, "-os", system, "-arch", "amd64", "-time", at, "-out", out}
	}
	for name, tt := range map[string]struct {
		args []string
		want string
	}{
		"no command":      {nil, "first argument"},
		"unknown command": {[]string{"publish"}, "first argument"},
		"unknown flag":    {[]string{"version", "-x"}, "-x"},
		"words":           {[]string{"wrapper", "more"}, "more"},
		"missing flags":   {[]string{"platform", "-os", "linux"}, "-binary, -arch, -time"},
		"missing binary":  {platform(filepath.Join(dir, "none"), "linux", testTime), "none"},
		"text as binary":  {platform(text, "linux", testTime), "text"},
		"unknown system":  {platform(binary, "plan9", testTime), "plan9/amd64"},
		"time":            {platform(binary, "linux", "yesterday"), "yesterday"},
		"no templates":    {[]string{"wrapper", "-packaging", dir, "-out", out}, "manifest.json"},
		"no checksums":    {[]string{"formula", "-sums", filepath.Join(dir, "none"), "-out", filepath.Join(out, "a")}, "none"},
		"bad checksums":   {[]string{"formula", "-sums", text, "-out", filepath.Join(out, "a")}, "line 1"},
	} {
		t.Run(name, func(t *testing.T) {
			printed, err := packageFiles(tt.args...)
			if err == nil || !strings.Contains(err.Error(), tt.want) || printed != "" {
				t.Errorf("%v, %q", err, printed)
			}
			if names := namesIn(t, out); names != nil {
				t.Errorf("%v is made", names)
			}
		})
	}
}

// TestNoHalfFiles checks that no file is left if its content cannot be written.
func TestNoHalfFiles(t *testing.T) {
	dir := t.TempDir()
	r := &release{stdout: io.Discard}
	err := r.create(dir, "half", func(w io.Writer) error {
		_, _ = io.WriteString(w, "half")
		return io.ErrUnexpectedEOF
	})
	if names := namesIn(t, dir); !errors.Is(err, io.ErrUnexpectedEOF) || names != nil {
		t.Errorf("%v, %v", err, names)
	}
}
