// Package templates renders the texts that Retort writes for models and into files: prompts, program skeletons,
// SKILL.md and the text around generated wrapper code. A project may override the templates. They use the syntax of
// text/template, but this package executes them itself. The package text/template calls methods by name, so that the
// linker has to keep every method of the program in the binary.
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

// TemplateName is the file name of a template.
type TemplateName string

// Names of all templates. Each comment names the type of the data in parentheses.
const (
	System     TemplateName = "system.md"   // tells a model how to write programs (SystemData)
	Task       TemplateName = "task.md"     // asks a model for a program (TaskData)
	Repair     TemplateName = "repair.md"   // reports a refused or failed program to a model (RepairData)
	SkeletonTS TemplateName = "skeleton.ts" // skeleton of a program (TaskData)
	SkeletonPy TemplateName = "skeleton.py"
	Skill      TemplateName = "skill.md"   // body of SKILL.md (SkillData)
	WrapperTS  TemplateName = "wrapper.ts" // wrapper file of one tool (WrapperData)
	WrapperPy  TemplateName = "wrapper.py" // wrapper file of one server (WrapperData)
	StubTS     TemplateName = "stub.ts"    // describes a tool to a model (StubData)
	StubPy     TemplateName = "stub.py"
)

// TemplateNames returns the names of all templates.
func TemplateNames() []TemplateName {
	return []TemplateName{System, Task, Repair, SkeletonTS, SkeletonPy, Skill, WrapperTS, WrapperPy, StubTS, StubPy}
}

//go:embed files
var builtinFiles embed.FS

// maxTemplate bounds the size of a template file, in bytes.
const maxTemplate = 256 << 10

// TemplateSet holds the templates of a project. It is immutable.
type TemplateSet struct {
	trees map[TemplateName]*parse.Tree
	files map[TemplateName]string // paths of the files that override built-in templates
}

// Open reads the templates in a folder. For templates that the folder does not contain, it uses the built-in text. The
// folder may be missing. The error names the first fault, with file and line.
func Open(dir string) (*TemplateSet, *core.Error) {
	s := &TemplateSet{trees: map[TemplateName]*parse.Tree{}, files: map[TemplateName]string{}}
	for _, name := range TemplateNames() {
		text, err := BuiltinText(name)
		if err != nil {
			return nil, core.AsError(err)
		}
		file := string(name)
		own, err := readTemplate(dir, name)
		switch {
		case err == nil:
			text, file = own, filepath.Join(dir, string(name))
			s.files[name] = file
		case !errors.Is(err, fs.ErrNotExist):
			return nil, core.Errorf(core.KindInvalidArguments, "templates", "%s cannot be read: %v", filepath.Join(dir, string(name)), err)
		}
		if s.trees[name], err = parseTemplate(file, text); err != nil {
			return nil, templateError(err)
		}
		if _, refused := s.Render(name, ExampleData(name)); refused != nil {
			return nil, refused
		}
	}
	return s, checkUnknownFiles(dir)
}

// templateError returns err as the typed error for an invalid template.
func templateError(err error) *core.Error {
	return core.Errorf(core.KindInvalidArguments, "templates", "%s", strings.TrimPrefix(err.Error(), "template: ")).
		WithHint("fix the file, or remove it to use the built-in one; retort templates eject writes that")
}

// BuiltinText returns the built-in text of a template.
func BuiltinText(name TemplateName) (string, error) {
	text, err := builtinFiles.ReadFile("files/" + string(name))
	return string(text), err
}

// readTemplate reads a template file from the folder. It refuses a link to a place outside the folder.
func readTemplate(dir string, name TemplateName) (string, error) {
	if dir == "" {
		return "", fs.ErrNotExist
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return "", fs.ErrNotExist // opening a named pipe would block
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
		return "", errors.New("it is not a regular file")
	case info.Size() > maxTemplate:
		return "", errors.New("it is too large for a template")
	}
	text, err := root.ReadFile(string(name))
	return string(text), err
}

// checkUnknownFiles returns an error if the folder has files that are not templates. A template with a misspelled name
// would otherwise be ignored silently.
func checkUnknownFiles(dir string) *core.Error {
	if dir == "" {
		return nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil // there is no folder
	}
	var known []string
	for _, n := range TemplateNames() {
		known = append(known, string(n))
	}
	for _, e := range entries {
		if e.IsDir() || slices.Contains(known, e.Name()) || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if ext := filepath.Ext(e.Name()); ext == ".md" || ext == ".ts" || ext == ".py" || ext == ".tmpl" {
			refused := core.Errorf(core.KindInvalidArguments, "templates", "%s is not a template", filepath.Join(dir, e.Name()))
			if near := core.NearestNames(e.Name(), known, 1); len(near) > 0 {
				return refused.WithHint("did you mean %s?", near[0])
			}
			return refused.WithHint("templates are %s", strings.Join(known, ", "))
		}
	}
	return nil
}

// OverriddenFile returns the path of the project's file that replaces a template. It returns "" if the built-in
// template is used.
func (s *TemplateSet) OverriddenFile(name TemplateName) string { return s.files[name] }

// Render renders a template with data. It first converts data to objects, arrays, strings and numbers, as
// encoding/json does.
func (s *TemplateSet) Render(name TemplateName, data any) (string, *core.Error) {
	text, err := json.Marshal(data)
	if err != nil {
		return "", core.AsError(err)
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return "", core.AsError(err)
	}
	out, err := executeTemplate(s.trees[name], plain)
	if err != nil {
		return "", templateError(err)
	}
	return out, nil
}

// WriteBuiltins writes those built-in templates to the folder that it does not contain yet. It returns their names.
func WriteBuiltins(dir string) ([]string, *core.Error) {
	written := []string{}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "templates.eject", "%w", err)
	}
	for _, name := range TemplateNames() {
		text, err := BuiltinText(name)
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
