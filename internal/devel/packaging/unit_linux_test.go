package packaging

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestUnit checks that systemd accepts the unit, and that the unit has none of the directives that break the sandbox of
// programs. It skips the first check on machines without systemd-analyze.
func TestUnit(t *testing.T) {
	text := string(read(t, "packaging/retort.service"))
	for _, name := range []string{
		"RestrictNamespaces", "ProtectHostname", "ProtectControlGroups", "MemoryDenyWriteExecute", "ProtectProc", "ProcSubset",
		"ProtectKernelTunables", "ProtectKernelLogs",
	} {
		if regexp.MustCompile(`(?m)^` + name + `=`).MatchString(text) {
			t.Errorf("%s breaks the sandbox", name)
		}
		if !strings.Contains(text, name+"=") {
			t.Errorf("no comment says why %s is left out", name)
		}
	}
	for _, refused := range []string{"@mount", "@process", "@privileged", "pivot_root", "sethostname", "@debug"} {
		if strings.Contains(text, refused) {
			t.Errorf("the filter of system calls names %s", refused)
		}
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip(err)
	}
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	unit := filepath.Join(t.TempDir(), "retort.service")
	changed := strings.ReplaceAll(text, "/usr/local/bin/retort", own) // the unit's binary need not be installed
	if changed == text {
		t.Error("the unit does not start /usr/local/bin/retort")
	}
	if err := os.WriteFile(unit, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	said, err := exec.Command(analyze, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(said), "retort.service") {
		t.Errorf("%v: %s", err, said)
	}
}
