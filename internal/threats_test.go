package internal_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatModel checks that every test named in the threat model exists, that every threat names a test, and that
// the threat model names every script that reproduces a closed security hole.
func TestThreatModel(t *testing.T) {
	page, err := os.ReadFile(filepath.Join(root, "docs/security/threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	holes, err := filepath.Glob(filepath.Join(root, "testdata/script/hole-*.txtar"))
	if err != nil || len(holes) == 0 {
		t.Fatal(holes, err)
	}
	for _, problem := range threatProblems(t, string(page), holes) {
		t.Error(problem)
	}
	for text, holes := range map[string][]string{
		"`hole-none.txtar`":                         nil,
		"`internal/audit.TestNone`":                 nil,
		"`internal/none.TestTampering`":             nil,
		"`internal/audit.TestTampering` | nothing":  {"hole-x.txtar"},
		"| a threat without a test | a defence | |": nil,
	} {
		if len(threatProblems(t, text, holes)) == 0 {
			t.Errorf("nothing was found in %q", text)
		}
	}
}

var (
	namedScript = regexp.MustCompile("`([a-z0-9-]+\\.txtar)`")
	namedTest   = regexp.MustCompile("`([a-z0-9_/]+)\\.((?:Test|Fuzz)\\w+)`")
)

func threatProblems(t *testing.T, page string, holes []string) (found []string) {
	for _, m := range namedScript.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, "testdata/script", m[1])); err != nil {
			found = append(found, "there is no script "+m[1])
		}
	}
	for _, m := range namedTest.FindAllStringSubmatch(page, -1) {
		dir := m[1]
		if dir == module {
			dir = "."
		}
		if !hasTest(t, dir, m[2]) {
			found = append(found, "there is no test "+m[1]+"."+m[2])
		}
	}
	for _, hole := range holes {
		if name := filepath.Base(hole); !strings.Contains(page, "`"+name+"`") {
			found = append(found, name+" is not named")
		}
	}
	for line := range strings.SplitSeq(page, "\n") {
		cells := strings.Split(line, "|")
		if len(cells) == 5 && !strings.Contains(line, "---") && !strings.Contains(line, "guarded by") && !namedScript.MatchString(cells[3]) && !namedTest.MatchString(cells[3]) {
			found = append(found, "no test guards: "+line)
		}
	}
	return found
}

// hasTest reports whether a folder contains a test function with this name.
func hasTest(t *testing.T, dir, name string) bool {
	files, err := filepath.Glob(filepath.Join(root, dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
