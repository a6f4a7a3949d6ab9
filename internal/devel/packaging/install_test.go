package packaging

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

// releaseFolder returns the folder with the files of a release, which RETORT_DIST names. "make test-release" sets it.
func releaseFolder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("RETORT_DIST")
	if dir == "" {
		t.Skip("make test-release makes the packages and tests them")
	}
	return dir
}

// oneFile returns the only file that matches a pattern.
func oneFile(t *testing.T, dir, pattern string) string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil || len(names) != 1 {
		t.Fatalf("%s: %v, %v; one file is expected", filepath.Join(dir, pattern), names, err)
	}
	return names[0]
}

// runInstalled runs an installed program in an empty folder, in an environment without settings, and returns its
// output.
func runInstalled(t *testing.T, dir, program string, args ...string) string {
	t.Helper()
	c := exec.CommandContext(testenv.Context(t), program, args...)
	c.Dir = dir
	home := t.TempDir()
	c.Env = append(os.Environ(), "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home)
	text, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, text)
	}
	return string(text)
}

// checkInstalled runs "retort version" and "retort demo" with an installed program.
func checkInstalled(t *testing.T, program string) {
	t.Helper()
	if got, want := runInstalled(t, t.TempDir(), program, "version"), "retort "+engineVersion(t)+"\n"; got != want {
		t.Errorf("%q, not %q", got, want)
	}
	if text := runInstalled(t, t.TempDir(), program, "demo"); !strings.Contains(text, "Token balance") || !strings.Contains(text, "returned to the model") {
		t.Errorf("the demo says\n%s", text)
	}
}

// TestDebianPackage installs the Debian package into an empty root and runs the program there.
func TestDebianPackage(t *testing.T) {
	file := oneFile(t, releaseFolder(t), "retort_*_"+runtime.GOARCH+".deb")
	dpkg := testenv.Need(t, "dpkg")
	dir := t.TempDir()
	for _, name := range []string{"info/.keep", "updates/.keep", "status", "available"} {
		write(t, filepath.Join(dir, "var/lib/dpkg", name), "")
	}
	install := exec.CommandContext(testenv.Context(t), dpkg, "--root="+dir, "--force-not-root", "--log=/dev/null", "--install", file)
	install.Env = append(os.Environ(), "PATH="+os.Getenv("PATH")+":/usr/sbin:/sbin")
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	for _, name := range []string{
		"usr/share/man/man1/retort.1.gz", "usr/share/doc/retort/copyright", "usr/share/bash-completion/completions/retort",
		"usr/share/zsh/vendor-completions/_retort", "usr/share/fish/vendor_completions.d/retort.fish",
	} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	checkInstalled(t, filepath.Join(dir, "usr/bin/retort"))
}

// TestRPMPackage installs the RPM package into an empty root and runs the program there.
func TestRPMPackage(t *testing.T) {
	architecture := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	file := oneFile(t, releaseFolder(t), "retort-*."+architecture+".rpm")
	rpm := testenv.Need(t, "rpm")
	dir := t.TempDir()
	install := exec.CommandContext(testenv.Context(t), rpm, "--root", dir, "--install", "--nodeps", "--nosignature", file)
	if text, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	if _, err := os.Stat(filepath.Join(dir, "usr/share/zsh/site-functions/_retort")); err != nil {
		t.Error(err)
	}
	checkInstalled(t, filepath.Join(dir, "usr/bin/retort"))
}

// TestArchive unpacks the archive and runs the program.
func TestArchive(t *testing.T) {
	file := oneFile(t, releaseFolder(t), "retort_*_"+runtime.GOOS+"_"+runtime.GOARCH+".tar.gz")
	dir := t.TempDir()
	unpack := exec.CommandContext(testenv.Context(t), testenv.Need(t, "tar"), "-xzf", file, "-C", dir)
	if text, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	oneFile(t, dir, "retort_*/man/retort.1")
	oneFile(t, dir, "retort_*/completions/retort.zsh")
	checkInstalled(t, oneFile(t, dir, "retort_*/retort"))
}

// TestNPMInstall installs the npm packages without network into an empty folder and runs the program, also with npx.
func TestNPMInstall(t *testing.T) {
	files := releaseFolder(t)
	testenv.Need(t, "node")
	npm, npx := testenv.Need(t, "npm"), testenv.Need(t, "npx")
	v, p := engineVersion(t), Platform{runtime.GOOS, runtime.GOARCH}
	dir := t.TempDir()
	runInstalled(t, dir, npm, "install", "--offline", "--no-audit", "--no-fund", "--cache", filepath.Join(dir, "cache"), "--prefix", dir,
		oneFile(t, files, WrapperName(v)), oneFile(t, files, PlatformPackageName(v, p)))
	checkInstalled(t, filepath.Join(dir, "node_modules/.bin/retort"))
	if got, want := runInstalled(t, dir, npx, "--offline", "retort", "version"), "retort "+v+"\n"; got != want {
		t.Errorf("npx says %q, not %q", got, want)
	}
}

// TestReleaseFiles checks the checksums of a release, and that the statement of provenance covers all files. It checks
// the bills of materials and the entry of the registry against their schemas.
func TestReleaseFiles(t *testing.T) {
	dir := releaseFolder(t)
	file := func(name string) []byte {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	files, err := ParseSums(file("SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	check := exec.CommandContext(testenv.Context(t), testenv.Need(t, "sha256sum"), "--check", "--strict", "SHA256SUMS")
	check.Dir = dir
	if text, err := check.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	text := file("retort_" + engineVersion(t) + ".intoto.json")
	checkSchema(t, "provenance/required.schema.json", text)
	var s statement
	if err := json.Unmarshal(text, &s); err != nil || len(s.Subject) != len(files) {
		t.Errorf("%d subjects, %d files: %v", len(s.Subject), len(files), err)
	}
	bills := 0
	for i, f := range files {
		if s.Subject[i].Name != f.Name || s.Subject[i].Digest["sha256"] != f.SHA256 {
			t.Errorf("%v, not %v", s.Subject[i], f)
		}
		if strings.HasSuffix(f.Name, ".spdx.json") {
			bills++
			checkSchema(t, "spdx/required.schema.json", file(f.Name))
			if !bytes.Contains(file(f.Name), []byte("pkg:golang/golang.org/x/")) {
				t.Errorf("%s names no modules", f.Name)
			}
		}
	}
	if bills == 0 {
		t.Error("no bill of materials")
	}
	checkSchema(t, "registry/server.schema.json", file("registry/server.json"))
	if !bytes.Contains(file("homebrew/retort.rb"), []byte("class Retort < Formula")) {
		t.Error("the formula is empty")
	}
}
