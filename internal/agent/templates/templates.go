// Package templates is the texts that Retort writes for models and into files, which a project may have in other
// words: prompts, skeletons, SKILL.md, and what stands around wrappers. They are written in the syntax of
// text/template, over plain data. They are not run by text/template, which calls methods by name and so
// keeps every method of the program in the binary.
package templates

import (
	"embed"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/template/parse"

	"retort/internal/core"
)

// Name is the file of a template.
type Name string

// The templates.
const (
	System     Name = "system.md"   // what a model is told of programs: language
	Task       Name = "task.md"     // what is asked of it: task, language, inputs, tools, skills, skeleton
	Repair     Name = "repair.md"   // what is said of a program that was refused or has failed: error, effects, left
	SkeletonTS Name = "skeleton.ts" // a program to begin with: task, tools, inputs
	SkeletonPy Name = "skeleton.py"
	Skill      Name = "skill.md"   // the text of SKILL.md: name, description, use, functions, tools
	WrapperTS  Name = "wrapper.ts" // the file of a tool: server, tool, code
	WrapperPy  Name = "wrapper.py" // the same of a server
	StubTS     Name = "stub.ts"    // what a model is told of a tool: server, tool, name, definition, full
	StubPy     Name = "stub.py"
)

// Names are all templates.
func Names() []Name {
	return []Name{System, Task, Repair, SkeletonTS, SkeletonPy, Skill, WrapperTS, WrapperPy, StubTS, StubPy}
}

//go:embed files
var builtin embed.FS

// maxTemplate bounds the file of a template, in bytes.
const maxTemplate = 256 << 10

// Set is the templates of a project. It does not change.
type Set struct {
	trees map[Name]*parse.Tree
	files map[Name]string // of those that a project has in other words
}

// Open reads the templates of a folder; what it has none of is as it is built in. A folder that is not there
// has none. The first thing that is wrong is an error with file and line.
func Open(dir string) (*Set, *core.Error) {
	s := &Set{trees: map[Name]*parse.Tree{}, files: map[Name]string{}}
	for _, name := range Names() {
		text, err := Builtin(name)
		if err != nil {
			return nil, core.AsError(err)
		}
		file := string(name)
		own, err := read(dir, name)
		switch {
		case err == nil:
			text, file = own, filepath.Join(dir, string(name))
			s.files[name] = file
		case !errors.Is(err, fs.ErrNotExist):
			return nil, core.Errorf(core.KindInvalidArguments, "templates", "%s cannot be read: %v", filepath.Join(dir, string(name)), err)
		}
		if s.trees[name], err = parsed(file, text); err != nil {
			return nil, wrong(err)
		}
		if _, refused := s.Render(name, Example(name)); refused != nil {
			return nil, refused
		}
	}
	return s, strangers(dir)
}

// wrong is the error of a template.
func wrong(err error) *core.Error {
	return core.Errorf(core.KindInvalidArguments, "templates", "%s", strings.TrimPrefix(err.Error(), "template: ")).
		WithHint("mend the file, or remove it: then the built-in one counts; retort templates eject writes that")
}

// Builtin is the text of a template that nobody has changed.
func Builtin(name Name) (string, error) {
	text, err := builtin.ReadFile("files/" + string(name))
	return string(text), err
}

// read reads a file of the folder, which may not be a link out of it.
func read(dir string, name Name) (string, error) {
	if dir == "" {
		return "", fs.ErrNotExist
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fs.ErrNotExist // a named pipe would be waited for
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	info, err := root.Stat(string(name))
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", errors.New("it is no file")
	case info.Size() > maxTemplate:
		return "", errors.New("it is too large for a template")
	}
	text, err := root.ReadFile(string(name))
	return string(text), err
}

// strangers refuses files that are no templates: a misspelt name would quietly change nothing.
func strangers(dir string) *core.Error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there is no folder
	}
	var known []string
	for _, n := range Names() {
		known = append(known, string(n))
	}
	for _, e := range entries {
		if e.IsDir() || slices.Contains(known, e.Name()) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if ext := filepath.Ext(e.Name()); ext == ".md" || ext == ".ts" || ext == ".py" || ext == ".tmpl" {
			refused := core.Errorf(core.KindInvalidArguments, "templates", "%s is no template", filepath.Join(dir, e.Name()))
			if near := core.Nearest(e.Name(), known, 1); len(near) > 0 {
				return refused.WithHint("did you mean %s?", near[0])
			}
			return refused.WithHint("templates are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// Changed is the file in which a project has a template in other words; "" if it has not.
func (s *Set) Changed(name Name) string { return s.files[name] }

// Render fills in a template. data is what encoding/json makes of it: objects, arrays, strings, numbers.
func (s *Set) Render(name Name, data any) (string, *core.Error) {
	text, err := json.Marshal(data)
	if err != nil {
		return "", core.AsError(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return "", core.AsError(err)
	}
	out, err := execute(s.trees[name], plain)
	if err != nil {
		return "", wrong(err)
	}
	return out, nil
}

// Eject writes the built-in templates into a folder, those that are not there yet, and returns their names.
func Eject(dir string) ([]string, *core.Error) {
	written := []string{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "templates.eject", "%w", err)
	}
	for _, name := range Names() {
		text, err := Builtin(name)
		if err != nil {
			return written, core.AsError(err)
		}
		f, err := os.OpenFile(filepath.Join(dir, string(name)), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err == nil {
			_, err = f.WriteString(text)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			return written, core.Errorf(core.KindInvalidArguments, "templates.eject", "%w", err)
		}
		written = append(written, string(name))
	}
	return written, nil
}
