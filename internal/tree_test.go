package internal_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	root   = ".." // of the module, seen from here
	module = "retort"
)

// source holds one parsed Go file of the module.
type source struct {
	path string // below the root, with slashes
	dir  string
	test bool
	file *ast.File
	fset *token.FileSet
}

func parse(fset *token.FileSet, file string, text any) (source, error) {
	f, err := parser.ParseFile(fset, filepath.Join(root, file), text, parser.SkipObjectResolution)
	return source{file, path.Dir(file), strings.HasSuffix(file, "_test.go"), f, fset}, err
}

func (s source) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(n.Pos()).Line)
}

// imported describes one import of a file. name is the name by which the file refers to the package.
type imported struct {
	name, path string
	spec       *ast.ImportSpec
}

func (s source) imports() []imported {
	var all []imported
	for _, spec := range s.file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		i := imported{path.Base(p), p, spec}
		if spec.Name != nil {
			i.name = spec.Name.Name
		}
		all = append(all, i)
	}
	return all
}

// members calls the function visit for every mention of a member of an imported package, with a name such as
// "os.Exit".
func (s source) members(visit func(name string, n ast.Node)) {
	packages := map[string]string{}
	for _, i := range s.imports() {
		packages[i.name] = path.Base(i.path)
	}
	ast.Inspect(s.file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && packages[x.Name] != "" {
				visit(packages[x.Name]+"."+sel.Sel.Name, sel)
			}
		}
		return true
	})
}

// walk calls visit for every file of the module. It skips nested modules, test data, installed packages and hidden
// folders.
func walk(t *testing.T, visit func(file string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(p, root), string(filepath.Separator)))
		if !d.IsDir() {
			visit(rel)
			return nil
		}
		if name := d.Name(); rel != "" && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || name == "bin" || name == "dist") {
			return fs.SkipDir
		}
		if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && rel != "" {
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func sources(t *testing.T) []source {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	walk(t, func(file string) {
		if !strings.HasSuffix(file, ".go") {
			return
		}
		s, err := parse(fset, file, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	})
	if len(all) < 50 {
		t.Fatalf("found only %d files; is this the right directory?", len(all))
	}
	return all
}

// hold checks a rule on the whole module. The function rules returns the violations of the rule, and each one fails
// the test with an error of its own.
func hold(t *testing.T, rules func([]source) []string) {
	t.Helper()
	for _, v := range rules(sources(t)) {
		t.Error(v)
	}
}

// violations checks that the function rules finds exactly the violations in want when it is given made-up files.
func violations(t *testing.T, rules func([]source) []string, files map[string]string, want []string) {
	t.Helper()
	var all []source
	fset := token.NewFileSet()
	for _, file := range slices.Sorted(maps.Keys(files)) {
		s, err := parse(fset, file, files[file])
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	got := rules(all)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestNoLongFile(t *testing.T) {
	const most = 800
	walk(t, func(file string) {
		switch path.Ext(file) {
		case ".go", ".js", ".mjs", ".ts", ".py", ".sh":
		default:
			return
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > most {
			t.Errorf("%s has %d lines; split it where a reader would, %d are the most", file, n, most)
		}
	})
}

// treeLine matches a line of the drawn directory tree: indentation, the directory's name, and a sentence about it.
var treeLine = regexp.MustCompile(`^( *)([\w./-]+?)/? {2,}(\S.*)$`)

// drawing reads the directory tree that is drawn in a document. It maps the path of each directory to its sentence.
func drawing(t *testing.T, doc string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, doc))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```\nengine.go ")
	block, _, ended := strings.Cut("engine.go "+block, "\n```")
	if !found || !ended {
		t.Fatalf("%s holds no tree that begins with engine.go", doc)
	}
	said := map[string]string{}
	var parents []string
	for _, line := range strings.Split(block, "\n") {
		if m := treeLine.FindStringSubmatch(line); m != nil {
			depth := len(m[1]) / 2
			parents = append(parents[:min(depth, len(parents))], m[2])
			said[path.Join(parents...)] = m[3]
		} else if dir := strings.TrimRight(strings.TrimSpace(line), "/"); dir != "" {
			depth := (len(line) - len(strings.TrimLeft(line, " "))) / 2
			parents = append(parents[:min(depth, len(parents))], dir)
			said[path.Join(parents...)] = ""
		}
	}
	return said
}

// TestTreeIsDrawn checks that the tree in ARCHITECTURE.md has a sentence for every package and lists no directory
// that does not exist.
func TestTreeIsDrawn(t *testing.T) {
	const doc = "docs/ARCHITECTURE.md"
	dirs := map[string]bool{}
	for _, s := range sources(t) {
		if !s.test {
			dirs[s.dir] = true
		}
	}
	said := drawing(t, doc)
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		if dir != "." && !strings.HasPrefix(dir, "examples") && said[dir] == "" {
			t.Errorf("%s: the tree has no sentence for %s", doc, dir)
		}
	}
	for dir := range said {
		if _, err := os.Stat(filepath.Join(root, dir)); err != nil {
			t.Errorf("%s: the tree shows %s, which does not exist", doc, dir)
		}
	}
}
