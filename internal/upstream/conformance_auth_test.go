//go:build unix

package upstream

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"retort/internal/testenv"
)

// The suite of logins of MCP's conformance tests, whole, and what is not in a suite.
func TestConformanceOfLogins(t *testing.T) {
	modules, node := testenv.NPM22(t), testenv.Need(t, "node22")
	suite := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	for _, what := range [][]string{
		{"--suite", "auth"},
		{"--scenario", "auth/2025-03-26-oauth-metadata-backcompat"}, {"--scenario", "auth/2025-03-26-oauth-endpoint-fallback"},
		{"--scenario", "auth/resource-mismatch"}, {"--scenario", "auth/offline-access-scope"}, {"--scenario", "auth/offline-access-not-supported"},
	} {
		t.Run(filepath.Base(what[1]), func(t *testing.T) {
			cmd := exec.Command(node, append([]string{suite, "client", "--command", os.Args[0] + " conformance"}, what...)...)
			cmd.Dir = t.TempDir()
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
			if regexp.MustCompile(`(?m)^(Total|Passed): *[1-9]`).Find(out) == nil {
				t.Errorf("nothing passed:\n%s", out)
			}
			t.Logf("%s", regexp.MustCompile(`(?m)^(Total|Passed):.*$`).Find(out))
		})
	}
}
