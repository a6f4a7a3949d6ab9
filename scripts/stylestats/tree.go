package main

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"
)

const maxColumns = 140 // maximum width of a line; a tab counts as one column

// tree holds the measurements of all files.
type tree struct {
	declarations []declaration
	fileLines    []int
	wideLines    int // number of lines wider than maxColumns
}

type declKind int

const (
	valueDecl declKind = iota
	functionDecl
	typeDecl
)

// declaration describes one function, method, type, constant or variable at the top level of a file.
type declaration struct {
	kind  declKind
	dir   string // folder of its package
	place string // position in the form file:line
	name  string
	doc   string // text of its own doc comment; "": it has none
	lines int    // length of a function, from func to the closing brace
}

// readTree parses the Go files below roots, in the order of their paths.
func readTree(roots []string) (*tree, error) {
	t := &tree{}
	for _, root := range roots {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && path != root && skippedDir(d.Name()):
				return fs.SkipDir
			case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
				return nil
			}
			return t.addFile(path)
		})
		if err != nil {
			return nil, err
		}
	}
	if len(t.fileLines) == 0 {
		return nil, errors.New("no Go files in " + strings.Join(roots, ", "))
	}
	return t, nil
}

func skippedDir(name string) bool {
	return strings.HasPrefix(name, ".") || slices.Contains([]string{"bin", "dist", "node_modules", "testdata", "vendor"}, name)
}

func (t *tree) addFile(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil || ast.IsGenerated(file) {
		return err
	}
	t.fileLines = append(t.fileLines, bytes.Count(text, []byte("\n")))
	for line := range bytes.Lines(text) {
		if utf8.RuneCount(bytes.TrimRight(line, "\r\n")) > maxColumns {
			t.wideLines++
		}
	}
	for _, d := range file.Decls {
		t.addDecl(set, d)
	}
	return nil
}

func (t *tree) addDecl(set *token.FileSet, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		lines := set.Position(d.End()).Line - set.Position(d.Pos()).Line + 1
		t.add(set, functionDecl, d.Name, d.Doc, lines)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				t.add(set, typeDecl, s.Name, docOf(d, s.Doc), 0)
			case *ast.ValueSpec:
				t.add(set, valueDecl, s.Names[0], docOf(d, s.Doc), 0)
			}
		}
	}
}

// docOf returns the doc comment of a spec: its own, or the one above the
// declaration if that declares a single spec without parentheses. A comment
// above parentheses describes the whole group, so docOf ignores it.
func docOf(d *ast.GenDecl, own *ast.CommentGroup) *ast.CommentGroup {
	if own == nil && !d.Lparen.IsValid() {
		return d.Doc
	}
	return own
}

func (t *tree) add(set *token.FileSet, kind declKind, name *ast.Ident, doc *ast.CommentGroup, lines int) {
	at := set.Position(name.Pos())
	place := fmt.Sprintf("%s:%d", filepath.ToSlash(at.Filename), at.Line)
	t.declarations = append(t.declarations, declaration{
		kind, filepath.ToSlash(filepath.Dir(at.Filename)), place, name.Name, doc.Text(), lines,
	})
}
