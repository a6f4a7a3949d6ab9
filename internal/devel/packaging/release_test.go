package packaging

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"retort/internal/devel/testenv"
)

const accountsFile = "packaging/accounts.env"

// TestRelease checks that the release configuration builds for all platforms, and that the files it names exist.
func TestRelease(t *testing.T) {
	var release struct {
		Builds []struct {
			Main    string
			Env     []string
			Targets []string
		}
		Packages []struct {
			Formats  []string
			Contents []struct{ Src string }
		} `yaml:"nfpms"`
		Checksum struct {
			Files []struct{ Glob string } `yaml:"extra_files"`
		}
		Release struct {
			Draft bool
			Files []struct{ Glob string } `yaml:"extra_files"`
		}
		Images []struct{ Dockerfile string } `yaml:"dockers_v2"`
	}
	text := read(t, ".goreleaser.yaml")
	if err := yaml.Unmarshal(text, &release); err != nil {
		t.Fatal(err)
	}
	b := release.Builds[0]
	var targets []string
	for _, p := range platforms {
		targets = append(targets, p.OS+"_"+p.Arch)
	}
	if !slices.Equal(b.Targets, targets) || !slices.Contains(b.Env, "CGO_ENABLED=0") {
		t.Errorf("%v is built, not %v", b, targets)
	}
	if !slices.Equal(release.Checksum.Files, release.Release.Files) || len(release.Release.Files) != 1 || !release.Release.Draft {
		t.Errorf("the checksums cover %v, and %v is uploaded", release.Checksum.Files, release.Release)
	}
	if !slices.Equal(release.Packages[0].Formats, []string{"deb", "rpm"}) {
		t.Errorf("packages for %v", release.Packages[0].Formats)
	}
	names := []string{b.Main, release.Images[0].Dockerfile, "packaging/Dockerfile"}
	for _, c := range release.Packages[0].Contents {
		if !strings.HasPrefix(c.Src, "bin/") {
			names = append(names, c.Src)
		}
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Error(err)
		}
	}
	if !regexp.MustCompile(`(?m)^    targets: \[`).Match(text) {
		t.Error("scripts/release.sh cannot find the targets")
	}
}

func TestImage(t *testing.T) {
	dockerfile := string(read(t, "packaging/Dockerfile"))
	for _, want := range []string{"\nFROM scratch\n", "\nUSER 65532:65532\n", "\nVOLUME /home/retort\n", "\nENTRYPOINT [\"/usr/bin/retort\"]\n"} {
		if !strings.Contains(dockerfile, want) {
			t.Errorf("the Dockerfile lacks %q", want)
		}
	}
}

// TestReleaseNeedsAccounts checks that publishing a release fails, before anything is built, as long as a name in the
// accounts file is missing or a placeholder.
func TestReleaseNeedsAccounts(t *testing.T) {
	bash := testenv.Need(t, "bash")
	valid := accountsText(testAccounts())
	for name, tt := range map[string]struct{ text, want string }{
		"placeholder": {strings.Replace(valid, "=some-one\n", "=placeholder\n", 1), "RELEASE_OWNER"},
		"empty":       {strings.Replace(valid, "=@some-scope\n", "=\n", 1), "RELEASE_NPM_SCOPE"},
		"missing":     {strings.Replace(valid, "RELEASE_BUILDER=https://builder.example/release\n", "", 1), "RELEASE_BUILDER"},
		"complete":    {valid, "GoReleaser"}, // it could not build that
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []struct{ name, text string }{
				{"scripts/release.sh", string(read(t, "scripts/release.sh"))}, {accountsFile, tt.text},
			} {
				write(t, filepath.Join(dir, file.name), file.text)
			}
			c := exec.Command(bash, filepath.Join(dir, "scripts/release.sh"), "publish")
			c.Env = []string{"PATH=/nowhere"}
			text, err := c.CombinedOutput()
			if err == nil || !strings.Contains(string(text), tt.want) {
				t.Errorf("%v: %s", err, text)
			}
		})
	}
}

// TestReleaseNeedsTheScript checks that GoReleaser cannot publish without the variables that scripts/release.sh sets.
func TestReleaseNeedsTheScript(t *testing.T) {
	text := string(read(t, ".goreleaser.yaml"))
	if !strings.Contains(text, "{{ .Env.RELEASE_OWNER }}") || strings.Contains(text, "envOrDefault") {
		t.Error(".goreleaser.yaml has defaults for accounts")
	}
}

func accountsText(a Accounts) string {
	var b strings.Builder
	b.WriteString("# A comment.\n\n")
	for _, rule := range accountRules {
		fmt.Fprintf(&b, "%s=%s\n", rule.variable, *rule.field(&a))
	}
	return b.String()
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestAccounts(t *testing.T) {
	if _, err := ParseAccounts(read(t, accountsFile)); err != nil {
		t.Error(err)
	}
	valid := accountsText(testAccounts())
	if a, err := ParseAccounts([]byte(valid)); a != testAccounts() || err != nil {
		t.Errorf("%+v, %v", a, err)
	}
	for _, owner := range []string{"", "a/b", `a"b`, "a..b", "-a", "@OWNER@", "a b", "$(id)", "a\r"} {
		if a, err := ParseAccounts([]byte(strings.Replace(valid, "=some-one\n", "="+owner+"\n", 1))); err == nil {
			t.Errorf("%q is accepted: %+v", owner, a)
		}
	}
	for _, text := range []string{"", valid + "RELEASE_OWNER=other\n", valid + "PATH=/tmp\n", valid + "RELEASE_OWNER\n", strings.Replace(valid, "@some-scope\n", "Some\n", 1)} {
		if a, err := ParseAccounts([]byte(text)); err == nil {
			t.Errorf("%s is accepted: %+v", text, a)
		}
	}
}

// TestAccountsStandInOneFile checks that no other file of the repository contains the name of an account.
func TestAccountsStandInOneFile(t *testing.T) {
	a, err := ParseAccounts(read(t, accountsFile))
	if err != nil {
		t.Fatal(err)
	}
	tap, _, _ := strings.Cut(a.HomebrewTap, "/")
	names := []string{"github.com/" + a.Owner, a.NPMScope + "/", a.Image, tap + "/", a.Maintainer, a.Builder}
	if strings.Contains(a.Owner, "placeholder") {
		names = append(names, a.Owner, a.NPMScope)
	}
	skipped := []string{".git", "bin", "dist", "node_modules", "testdata", ".retort"}
	files := 0
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()) && path != root:
			return filepath.SkipDir
		case !d.Type().IsRegular() || path == filepath.Join(root, accountsFile):
			return nil
		}
		text, err := os.ReadFile(path)
		files++
		for _, name := range names {
			if bytes.Contains(text, []byte(name)) {
				t.Errorf("%s contains %q; take it from %s", path, name, accountsFile)
			}
		}
		return err
	})
	if err != nil || files < 500 {
		t.Errorf("%d files: %v", files, err)
	}
}

func TestCheckVersion(t *testing.T) {
	for _, v := range []string{"0.1.0", "1.2.3-rc.1", "10.20.30-0"} {
		if err := CheckVersion(v); err != nil {
			t.Error(err)
		}
	}
	for _, v := range hostileVersions() {
		if CheckVersion(v) == nil {
			t.Errorf("%q is a version", v)
		}
	}
}

// hostileVersions returns texts that would mean something else in a path, a URL, Ruby, a shell or JSON.
func hostileVersions() []string {
	return []string{
		"", "1", "1.2", "v1.2.3", "1.2.3 ", " 1.2.3", "1.2.3\n", "01.2.3", "1.2.3+meta", "1.2.3-", "../1.2.3", "1.2.3/..",
		`1.2.3"; system("id")`, `1.2.3-#{id}`, "1.2.3-$(id)", "1.2.3-`id`", "1.2.3-\x00", "1.2.3-é", "1.2.3-" + strings.Repeat("a", 100),
	}
}

func TestParseSums(t *testing.T) {
	sum := strings.Repeat("0a", 32)
	files, err := ParseSums([]byte(sum + "  a.tar.gz\n" + sum + "  b~rc1_amd64.deb\n"))
	if want := []ReleaseFile{{"a.tar.gz", sum}, {"b~rc1_amd64.deb", sum}}; !slices.Equal(files, want) || err != nil {
		t.Errorf("%v, %v", files, err)
	}
	for _, text := range []string{
		"", "\n", sum, sum + " a", sum + "  ", sum + "  ../a", sum + "  a/b", sum + "  -a", sum + "  a b", sum + `  a"b`,
		strings.ToUpper(sum) + "  a", sum[1:] + "  a", sum + "  a\n\n" + sum + "  b", sum + "  a\n" + sum + "  a", sum + "  a\r\n",
	} {
		if files, err := ParseSums([]byte(text)); err == nil {
			t.Errorf("%q is accepted: %v", text, files)
		}
	}
}
