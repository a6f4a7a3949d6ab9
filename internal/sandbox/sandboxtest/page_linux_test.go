package sandboxtest

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the table of docs/reference/escape-attempts.md")

// backends lists the backends that are tested with CheckEscapes. For each backend, leftOut names the attempts that
// its test skips, with the reasons.
var backends = []struct {
	name    string
	leftOut map[string]string
}{
	{"process", nil},
	{"docker, runc", map[string]string{"a thousand threads": "bounded by the control group"}},
	{"docker, runsc", map[string]string{
		"a thousand threads": "bounded by the control group", "a million files": "bounded by the control group", "read /etc/hostname": "that of the container", "list /sys": "empty",
	}},
	{"gvisor", map[string]string{"a million files": "bounded by memory"}},
	{"vm", nil},
}

// TestPage checks that the table in docs/reference/escape-attempts.md lists exactly the escape attempts that the tests make. With the
// flag -update it writes the table.
func TestPage(t *testing.T) {
	const page, from, to = "../../../docs/reference/escape-attempts.md", "<!-- tried -->\n", "<!-- end of tried -->"
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(data), from)
	_, after, ok2 := strings.Cut(rest, to)
	if !ok1 || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	want := before + from + table() + to + after
	switch {
	case want == string(data):
	case *update:
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Error("docs/reference/escape-attempts.md does not name what is tried: -update writes it")
	}
}

// table returns a Markdown table with a row for each escape attempt and a column for each backend.
func table() string {
	var b strings.Builder
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	head, rule := []string{"way"}, []string{"---"}
	for _, backend := range backends {
		head, rule = append(head, backend.name), append(rule, "---")
	}
	line(head)
	line(rule)
	var names []string
	for _, a := range escapeAttempts("/srv/secret") {
		names = append(names, a.name)
	}
	files := len(fileAttempts("/srv/secret"))
	slices.Sort(names[files:]) // some come from maps
	for _, name := range names {
		row := []string{strings.ReplaceAll(name, "|", `\|`)}
		for _, backend := range backends {
			mark := backend.leftOut[name]
			if mark == "" {
				mark = "closed"
			}
			row = append(row, mark)
		}
		line(row)
	}
	return b.String()
}
