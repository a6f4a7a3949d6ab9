package sandbox

import (
	"strings"
	"testing"
)

// TestNeedsFolders checks that NeedsFolders recognizes a path of the workspace in an argument in many spellings.
func TestNeedsFolders(t *testing.T) {
	folders := []MountedPath{{Below: "/srv", Name: ".", Target: "/workspace"}}
	for argument, want := range map[string]bool{
		"./workspace/a.json": true, "workspace/a.json": true, "/workspace": true, "/workspace/a": true, "./workspace": true, "workspace": true,
		"--file=./workspace/a": true, "-f/workspace/a": true, "-fworkspace/a": true, "@workspace/a": true, ".//workspace/a": true,
		"../workspace/a": true, "./x/../workspace/a": true, "file:///workspace/a": true, `open("workspace/a").read()`: true,
		`BEGIN { while ((getline l < "./workspace/a") > 0) print l }`: true, "cat </workspace/a": true,
		"a": false, "-": false, "the workspace": false, "workspaces/a": false, "myworkspace/a": false, "/var/workspace": false,
		"https://example.com/workspace/": false, "/workspace2": false, "/workspace.bak": false, "workspace.json": false, ".workspace": false,
	} {
		if got := (HostCommand{Args: []string{"-n", argument}, Folders: folders}).NeedsFolders(); got != want {
			t.Errorf("%q: %v", argument, got)
		}
	}
	if (HostCommand{Args: []string{"./workspace/a"}}).NeedsFolders() {
		t.Error("a command that was given no folders needs them")
	}
}

// TestExplainFailure checks that the standard error is extended only for a failed command whose input or standard
// error names a path of the workspace.
func TestExplainFailure(t *testing.T) {
	folders := []MountedPath{{Target: "/workspace"}}
	const script, missing = "read x < ./workspace/a", "sh: cannot open ./workspace/a"
	for name, c := range map[string]struct {
		stdin, stderr string
		code          int
		folders       []MountedPath
		want          bool
	}{
		"in the input":  {script, "sh: cannot open it", 2, folders, true},
		"in the errors": {"", missing, 2, folders, true},
		"not at all":    {"1", "sh: bad", 2, folders, false},
		"no failure":    {script, missing, 0, folders, false},
		"no folders":    {script, missing, 2, nil, false},
	} {
		ended := CommandResult{Code: c.code, Stderr: []byte(c.stderr)}
		HostCommand{Name: "sh", Stdin: []byte(c.stdin), Folders: c.folders}.ExplainFailure(&ended, "docker")
		if got := strings.Contains(string(ended.Stderr), "sandboxMode: process"); got != c.want || !strings.HasPrefix(string(ended.Stderr), c.stderr) {
			t.Errorf("%s: %q", name, ended.Stderr)
		}
	}
}
