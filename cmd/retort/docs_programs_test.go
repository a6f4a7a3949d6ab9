package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// programBlock matches a block of a page that contains a program. Its groups are the reason for which the block is not
// run, the language, and the program.
var programBlock = regexp.MustCompile("(?m)^(?:<!-- not run: (.+) -->\\n)?```(ts|typescript|js|javascript|python)\\n((?:.*\\n)*?)^```$")

// TestProgramBlocks checks that the programs in the pages for users pass the checks and run with the bundled servers.
// The programs run without effects. A comment "not run: REASON" before a block excludes the block.
func TestProgramBlocks(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".mcp.json"), demoConfig("drive and sheets"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran, skipped := 0, 0
	for _, page := range userPages(t) {
		text := readDoc(t, page)
		if n := len(regexp.MustCompile("(?m)^```(?:ts|typescript|js|javascript|python)$").FindAllString(text, -1)); n != len(programBlock.FindAllString(text, -1)) {
			t.Errorf("%s: a block with a program does not end", page)
		}
		for _, m := range programBlock.FindAllStringSubmatch(text, -1) {
			if m[1] != "" {
				skipped++
				continue
			}
			ran++
			if problem := programProblem(t, dir, m[2], m[3]); problem != "" {
				t.Errorf("%s: %s\n%s", page, problem, m[3])
			}
		}
	}
	if ran < 6 || skipped > 4 {
		t.Errorf("%d programs were run and %d were not", ran, skipped)
	}
	for language, wrong := range map[string]string{
		"ts": "return crm.searchRecord({objectType: 'Lead'})", "python": "result = crm.search_records()",
	} {
		if programProblem(t, dir, language, wrong) == "" {
			t.Errorf("nothing was found in %q", wrong)
		}
	}
}

// programProblem runs a program without effects, in a folder whose configuration has all bundled servers. It returns
// the reason why the program failed, or "".
func programProblem(t *testing.T, dir, language, code string) string {
	t.Helper()
	file := filepath.Join(dir, "program.ts")
	if language == "python" {
		file = filepath.Join(dir, "program.py")
	}
	if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	command := retortIn(t, dir, "--home", filepath.Join(dir, "home"), "run", "--json", "--dry-run", file)
	command.Env = append(os.Environ(), "PATH="+filepath.Dir(command.Path)+string(os.PathListSeparator)+os.Getenv("PATH"))
	o := outcomeOf(t, command)
	if o.DryRun && o.Error == nil {
		return ""
	}
	return strings.TrimSpace(string(o.Status) + " " + o.Error.Error())
}
