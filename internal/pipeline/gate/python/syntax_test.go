package python

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/pipeline/gate/gatetest"
	"retort/internal/pipeline/gate/rules"
)

// listed is a tree, a line for each node with its depth, bytes and variable.
func listed(t *rules.Tree) string {
	var b strings.Builder
	var ends []int
	for i, n := range t.Nodes {
		for len(ends) > 0 && ends[len(ends)-1] <= i {
			ends = ends[:len(ends)-1]
		}
		fmt.Fprintf(&b, "%s%s %q", strings.Repeat(" ", len(ends)), n.Kind, n.Text)
		if n.Bind > 0 {
			fmt.Fprintf(&b, " #%d", n.Bind)
		}
		fmt.Fprintf(&b, " at {%d %d}\n", n.Start, n.End)
		ends = append(ends, i+int(n.Size))
	}
	return b.String()
}

var positions = regexp.MustCompile(` at \{[0-9 ]+\}`)

// TestSyntax reads the programs in testdata/syntax.txtar. Each is followed by its
// facts and its tree.
func TestSyntax(t *testing.T) {
	const name = "testdata/syntax.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parser := gatetest.NewInterpreter(t)
	c, want := New(parser), map[string]string{}
	var told []txtar.File
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		p, refusal := c.parse(context.Background(), string(f.Data), sample(), unjudged)
		if refusal != nil {
			if !strings.HasPrefix(parser.Version, "3.9.") {
				t.Errorf("%s: %v", f.Name, refusal)
			}
			continue
		}
		got := described(p.facts) + listed(p.tree)
		told = append(told, f, txtar.File{Name: f.Name + ".want", Data: []byte(got)})
		expected := want[f.Name+".want"]
		if !strings.HasPrefix(parser.Version, "3.11.") {
			got, expected = positions.ReplaceAllString(got, ""), positions.ReplaceAllString(expected, "")
		}
		if got != expected && !*update {
			t.Errorf("%s\n--- got\n%s--- want\n%s", f.Name, got, expected)
		}
		if err := p.tree.Check(); err != nil {
			t.Error(f.Name, err)
		}
	}
	if *update {
		archive.Files = told
		if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
