package python

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/devel/testenv"
	"retort/internal/pipeline/check/python/parsertest"
	"retort/internal/pipeline/check/rules"
)

// listed returns a tree as text: one line per node, with its depth, range of bytes and variable.
func listed(t *rules.SyntaxTree) string {
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

// TestSyntax checks the facts and trees of the programs in testdata/syntax.txtar. Each program is followed by the
// expected text.
func TestSyntax(t *testing.T) {
	const name = "testdata/syntax.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	parser := parsertest.NewInterpreter(t)
	c, want := New(parser), map[string]string{}
	var told []txtar.File
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	for _, f := range archive.Files {
		if strings.HasSuffix(f.Name, ".want") {
			continue
		}
		p, refusal := c.parseProgram(context.Background(), string(f.Data), sample(), unjudged)
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
		if err := p.tree.CheckStructure(); err != nil {
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

// pickles returns syntax trees of the test programs as the interpreter has pickled them.
func pickles(t testing.TB) [][]byte {
	parser := parsertest.NewInterpreter(t)
	archive, err := txtar.ParseFile("testdata/syntax.txtar")
	if err != nil {
		t.Fatal(err)
	}
	var all [][]byte
	for _, f := range archive.Files {
		if parsed, err := parser.Parse(context.Background(), string(f.Data)); err != nil {
			t.Fatal(err)
		} else if len(parsed.Tree) > 0 {
			all = append(all, parsed.Tree)
		}
	}
	return all
}

// whole reports whether every node except the root has exactly one parent.
func whole(s *syntaxTree) bool {
	seen := make([]bool, len(s.nodes))
	for id := range s.nodes {
		for child := range s.childNodes(nodeID(id)) {
			if child <= 0 || int(child) >= id || seen[child] || s.nodes[child].depth >= s.nodes[id].depth {
				return false
			}
			seen[child] = true
		}
	}
	return s.classOf(s.root) == classModule
}

// TestDamaged checks that a truncated pickle is an error, and that a pickle with a changed byte gives an error or a
// tree in which every node has one parent.
func TestDamaged(t *testing.T) {
	step := 5
	if testenv.Full() {
		step = 1
	}
	for _, pickle := range pickles(t) {
		if s, err := unpickleTree(pickle); err != nil || !whole(s) {
			t.Fatal(err)
		}
		for i := 0; i < len(pickle); i += step {
			if _, err := unpickleTree(pickle[:i]); err == nil {
				t.Errorf("the first %d bytes are a tree", i)
			}
			changed := bytes.Clone(pickle)
			changed[i] ^= byte(1 + i%255)
			if s, err := unpickleTree(changed); err == nil && !whole(s) {
				t.Errorf("with byte %d changed a node is in two places", i)
			}
		}
	}
}

// TestShared checks that a pickle is refused if a node in it has two parents, or if it names a class outside of
// Python's module ast.
func TestShared(t *testing.T) {
	const name = "\x8c\x03ast\x8c\x04Name\x93)R}b\x94"
	tree := func(items string) []byte {
		return []byte("\x80\x04\x8c\x03ast\x8c\x06Module\x93)R}\x8c\x04body](" + items + "esb.")
	}
	if s, err := unpickleTree(tree(name)); err != nil || len(s.fieldList(s.root, fieldBody)) != 1 {
		t.Fatal(err)
	}
	for _, items := range []string{name + "h\x00", "]\x94h\x00", "}\x94h\x00", "\x8c\x02os\x8c\x06system\x93", "\x8c\x08builtins\x8c\x04eval\x93", name + "}b", "h\x05", "(((", "t", "0"} {
		if _, err := unpickleTree(tree(items)); err == nil {
			t.Errorf("%q is a tree", items)
		}
	}
}

// FuzzUnpickle checks that any bytes give an error or a valid tree.
func FuzzUnpickle(f *testing.F) {
	for _, pickle := range pickles(f) {
		f.Add(pickle)
	}
	f.Fuzz(func(t *testing.T, pickle []byte) {
		s, err := unpickleTree(pickle)
		if err != nil {
			return
		}
		if !whole(s) {
			t.Fatal("a node is in two places")
		}
		const code = "one line\ntwo é lines"
		x := scopesOf(s)
		tree, err := treeOf(code, x)
		if err == nil {
			err = tree.CheckStructure()
		}
		if err != nil && err != rules.ErrDeep && err != rules.ErrLarge {
			t.Error(err)
		}
		for _, u := range factsOf(strings.Split(code, "\n"), x, &guestFacts{}).Uses {
			if u.Line < 1 || u.Line > 2 || u.Column < 1 || u.Width < 0 {
				t.Errorf("%+v", u)
			}
		}
	})
}
