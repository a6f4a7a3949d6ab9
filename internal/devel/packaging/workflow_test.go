package packaging

import (
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

const workflowFile = ".github/workflows/release.yml"

type workflowStep struct {
	Uses, Run string
	With      map[string]any
}

// TestReleaseWorkflow checks that the workflow is the builder in the accounts file, that it starts with tags only, that
// its actions are pinned to commits, and that its commands exist and run in the right order.
func TestReleaseWorkflow(t *testing.T) {
	var workflow struct {
		On          map[string]map[string][]string
		Permissions map[string]string
		Jobs        map[string]struct{ Steps []workflowStep }
	}
	if err := yaml.Unmarshal(read(t, workflowFile), &workflow); err != nil {
		t.Fatal(err)
	}
	a, err := ParseAccounts(read(t, accountsFile))
	if err != nil || !strings.HasSuffix(a.Builder, "/"+workflowFile) {
		t.Errorf("the builder is %s, %v", a.Builder, err)
	}
	if tags := workflow.On["push"]["tags"]; len(workflow.On) != 1 || !slices.Equal(tags, []string{"v*"}) {
		t.Errorf("the workflow starts on %v", workflow.On)
	}
	if workflow.Permissions == nil || len(workflow.Permissions) > 0 {
		t.Errorf("all jobs have the permissions %v", workflow.Permissions)
	}
	steps := workflow.Jobs["publish"].Steps
	if len(workflow.Jobs) != 1 || len(steps) == 0 {
		t.Fatalf("%d jobs, %d steps", len(workflow.Jobs), len(steps))
	}
	var commands []string
	for _, s := range steps {
		if s.Uses != "" && !regexp.MustCompile(`^[\w-]+/[\w-]+@[0-9a-f]{40}$`).MatchString(s.Uses) {
			t.Errorf("%s is not pinned to a commit", s.Uses)
		}
		if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
			t.Error("the clone keeps the token, so every later step could push")
		}
		if s.Run != "" && !strings.HasPrefix(s.Run, "sudo sysctl ") {
			commands = append(commands, s.Run)
		}
	}
	want := []string{"scripts/release.sh check", "make test", "scripts/release.sh publish", "scripts/release.sh sign"}
	if !slices.Equal(commands, want) {
		t.Errorf("the workflow runs %q, want %q", commands, want)
	}
}

const imageDigest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// TestSignRelease checks what scripts/release.sh sign runs, with programs that only write down their arguments in place
// of cosign and gh. It checks that nothing is signed if the files or the digest of the image are missing.
func TestSignRelease(t *testing.T) {
	signed := []string{
		"cosign sign-blob --yes --new-bundle-format --bundle dist/SHA256SUMS.sigstore.json dist/SHA256SUMS",
		"cosign attest-blob --yes --new-bundle-format --bundle dist/retort_1.2.3.sigstore.json --statement dist/retort_1.2.3.intoto.json",
		"cosign sign --yes " + testAccounts().Image + "@" + imageDigest,
		"gh release upload v1.2.3 dist/SHA256SUMS.sigstore.json dist/retort_1.2.3.sigstore.json --repo some-one/retort",
	}
	for name, tt := range map[string]struct {
		digest, sums, accounts string
		want                   []string
		message                string
	}{
		"complete":    {imageDigest, "dist/SHA256SUMS", accountsText(testAccounts()), signed, ""},
		"no digest":   {"", "dist/SHA256SUMS", accountsText(testAccounts()), nil, "is not the digest"},
		"no files":    {imageDigest, "dist/other", accountsText(testAccounts()), nil, "run scripts/release.sh publish first"},
		"no accounts": {imageDigest, "dist/SHA256SUMS", string(read(t, accountsFile)), nil, "packaging/accounts.env"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "scripts/release.sh"), string(read(t, "scripts/release.sh")))
			write(t, filepath.Join(dir, accountsFile), tt.accounts)
			write(t, filepath.Join(dir, tt.sums), "")
			record := "#!/bin/sh\necho \"${0##*/} $*\" >>" + filepath.Join(dir, "calls") + "\n"
			writeProgram(t, filepath.Join(dir, "tools/cosign"), record)
			writeProgram(t, filepath.Join(dir, "tools/gh"), record)
			writeProgram(t, filepath.Join(dir, "tools/docker"), "#!/bin/sh\necho '"+tt.digest+"'\n")
			writeProgram(t, filepath.Join(dir, "bin/release/package"), "#!/bin/sh\necho 1.2.3\n")
			c := exec.Command(testenv.Need(t, "bash"), filepath.Join(dir, "scripts/release.sh"), "sign")
			c.Env = []string{"PATH=" + filepath.Join(dir, "tools") + ":/usr/bin:/bin"}
			text, err := c.CombinedOutput()
			if (err == nil) != (tt.message == "") || !strings.Contains(string(text), tt.message) {
				t.Errorf("%v: %s", err, text)
			}
			calls, _ := os.ReadFile(filepath.Join(dir, "calls"))
			if got := strings.TrimSuffix(string(calls), "\n"); got != strings.Join(tt.want, "\n") {
				t.Errorf("the script ran:\n%s", got)
			}
		})
	}
}

func writeProgram(t *testing.T, name, text string) {
	t.Helper()
	write(t, name, text)
	if err := os.Chmod(name, 0o755); err != nil {
		t.Fatal(err)
	}
}
