package demo

import (
	"embed"
	"path"
	"strings"
)

// programFiles has the example programs, programs/*.ts. Each begins with a comment: its first line is the title, the
// others say what the program shows.
//
//go:embed programs/*.ts
var programFiles embed.FS

// ExampleProgram represents an example that shows a use of code execution. It runs against the bundled servers.
type ExampleProgram struct {
	Name  string // such as "1-copy-transcript"
	Title string
	About string // description in one or two sentences
	Code  string // TypeScript, without the leading comment
}

// ExamplePrograms returns the examples in the order of presentation.
func ExamplePrograms() []ExampleProgram {
	entries, err := programFiles.ReadDir("programs")
	if err != nil {
		panic(err) // embedded
	}
	var list []ExampleProgram
	for _, e := range entries {
		source, err := programFiles.ReadFile(path.Join("programs", e.Name()))
		if err != nil {
			panic(err) // embedded
		}
		list = append(list, newProgram(strings.TrimSuffix(e.Name(), ".ts"), string(source)))
	}
	return list
}

func newProgram(name, source string) ExampleProgram {
	front, code, _ := strings.Cut(source, "\n\n")
	title, about, _ := strings.Cut(strings.ReplaceAll("\n"+front, "\n// ", "\n")[1:], "\n")
	return ExampleProgram{Name: name, Title: title, About: strings.ReplaceAll(about, "\n", " "), Code: code}
}
