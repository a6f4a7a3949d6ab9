package internal_test

import (
	"go/ast"
	"go/build"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// platformCell describes one feature on one operating system. The file contains the code of the feature for this
// system, so the text is checked with the build constraints of that file.
type platformCell struct{ text, file string }

// platformNames maps each GOOS that Retort is released for to its name in the documentation.
var platformNames = [][2]string{{"linux", "Linux"}, {"darwin", "macOS"}, {"windows", "Windows"}}

// platformRows lists what differs between the operating systems. The cells of a row have the order of platformNames.
var platformRows = []struct {
	feature string
	cells   [3]platformCell
}{
	{"Programs in the built-in JavaScript runtime", [3]platformCell{
		{"in an OS sandbox", "internal/sandbox/process/strength_linux.go"},
		{"in the sandbox of macOS: no other files, no network, no other process", "internal/sandbox/process/child_darwin.go"},
		{"no OS sandbox; the runtime has no functions for files, network or processes", "internal/sandbox/process/child_windows.go"},
	}},
	{"Programs in Python, Node, Bun and Deno", [3]platformCell{
		{"yes", "internal/sandbox/process/child_linux.go"},
		{"only in `docker`", "internal/sandbox/process/child_other.go"},
		{"only in `docker`", "internal/sandbox/process/child_other.go"},
	}},
	{"Sandbox `docker`", [3]platformCell{
		{"yes", "internal/sandbox/process/child_linux.go"},
		{"possible with `docker.guest` and `docker.images`; not tested", "internal/sandbox/process/child_other.go"},
		{"possible with `docker.guest` and `docker.images`; not tested", "internal/sandbox/process/child_other.go"},
	}},
	{"Sandbox `gvisor`", [3]platformCell{
		{"yes", "internal/sandbox/gvisor/backend_linux.go"},
		{"no", "internal/sandbox/gvisor/gvisor_other.go"},
		{"no", "internal/sandbox/gvisor/gvisor_other.go"},
	}},
	{"Sandbox `vm`", [3]platformCell{
		{"yes", "internal/sandbox/vm/backend_linux.go"},
		{"no", "internal/sandbox/vm/vm_other.go"},
		{"no", "internal/sandbox/vm/vm_other.go"},
	}},
	{"Network of programs", [3]platformCell{
		{"`fetch` and connections", "internal/sandbox/process/network_linux.go"},
		{"`fetch`", "internal/sandbox/process/network_other.go"},
		{"`fetch`", "internal/sandbox/process/network_other.go"},
	}},
	{"Commands of programs", [3]platformCell{
		{"yes", "internal/sandbox/process/command_linux.go"},
		{"no", "internal/sandbox/process/command_other.go"},
		{"no", "internal/sandbox/process/command_other.go"},
	}},
	{"`retort approvals` from another terminal", [3]platformCell{
		{"yes", "internal/pipeline/approval/desk_linux.go"},
		{"no", "internal/pipeline/approval/desk_other.go"},
		{"no", "internal/pipeline/approval/desk_other.go"},
	}},
	{"What ends together with an MCP server", [3]platformCell{
		{"all its processes, also daemons", "internal/base/reaper/sys_linux.go"},
		{"the processes of its process group", "internal/base/reaper/sys_darwin.go"},
		{"all its processes, except those from the first moment of its start", "internal/base/reaper/sys_windows.go"},
	}},
}

// platformsPage returns the page about operating systems.
func platformsPage(t *testing.T) string {
	return "# Platforms\n" + writtenBy + `
Retort itself, its clients, MCP servers and HTTP work on Linux, macOS and Windows. These parts differ:

` + platformTable(t) + `
` + "`retort doctor`" + ` says what works on your machine.

Linux is tested most. Retort is built for macOS and Windows too, but the tests run programs on Linux only.

## What confines a program

This list is for the default sandbox, ` + "`process`" + `, and for the built-in JavaScript runtime. The page
[Sandboxes](../isolation.md) compares all sandboxes.

` + confinementLists(t)
}

// platformTable returns a Markdown table of platformRows, with a column for each operating system. The test fails if the
// source file of a cell is not compiled for the operating system of its column, or if it is also compiled for a system
// whose cell in the same row names another file.
func platformTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| | Linux | macOS | Windows |\n|---|---|---|---|\n")
	for _, row := range platformRows {
		b.WriteString("| " + row.feature)
		for i, cell := range row.cells {
			for j, other := range row.cells {
				if built := isBuiltFor(t, platformNames[j][0], cell.file); built != (cell.file == other.file) {
					t.Errorf("%s: %s is built for %s: %v", row.feature, cell.file, platformNames[j][1], built)
				}
			}
			if i > 0 && cell.file == row.cells[i-1].file && cell.text != row.cells[i-1].text {
				t.Errorf("%s: %s has two texts", row.feature, cell.file)
			}
			b.WriteString(" | " + cell.text)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// isBuiltFor reports whether a Go file is compiled for an operating system.
func isBuiltFor(t *testing.T, goos, file string) bool {
	t.Helper()
	c := build.Default
	c.GOOS, c.GOARCH, c.CgoEnabled = goos, "amd64", false
	dir, name := filepath.Split(filepath.Join(root, file))
	matches, err := c.MatchFile(dir, name)
	if err != nil {
		t.Fatal(err)
	}
	return matches
}

// confinementLists returns what Capabilities.Walls of the process backend contains on each operating system.
func confinementLists(t *testing.T) string {
	var b strings.Builder
	for _, p := range platformNames {
		files, err := filepath.Glob(filepath.Join(root, "internal/sandbox/process/*.go"))
		if err != nil {
			t.Fatal(err)
		}
		var walls []string
		for _, file := range files {
			file, _ = filepath.Rel(root, file)
			if !strings.HasSuffix(file, "_test.go") && isBuiltFor(t, p[0], file) {
				walls = append(walls, wallsIn(t, file)...)
			}
		}
		if len(walls) == 0 {
			t.Errorf("no function walledBy for %s", p[1])
		}
		b.WriteString("- " + p[1] + ":\n  - " + strings.Join(walls, "\n  - ") + "\n")
	}
	return b.String()
}

// wallsIn returns the texts in the function walledBy of a file, or nil if the file has no such function. A list that is
// passed to append comes first, as it does in the function's result.
func wallsIn(t *testing.T, file string) (walls []string) {
	for _, d := range parseGo(t, file).Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != "walledBy" {
			continue
		}
		var later []string
		ast.Inspect(f.Body, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if l, ok := n.Rhs[0].(*ast.CompositeLit); ok {
					later = append(later, literalTexts(l.Elts)...)
					return false
				}
			case *ast.CompositeLit:
				walls = append(walls, literalTexts(n.Elts)...)
			}
			return true
		})
		walls = slices.Concat(walls, later)
	}
	return walls
}
