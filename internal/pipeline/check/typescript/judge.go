package typescript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// finding describes a problem of a program. Without a kind it is a warning.
type finding struct {
	kind       core.Kind
	message    string
	hint       string
	start, end int
	server     string
	tool       string
	unknown    string // the name, if nothing binds it
	advice     bool   // based on a tool's learned answers
}

// syntax returns the findings of a program that does not parse.
func (p *program) syntax() []finding {
	var found []finding
	for _, d := range p.source.Errors() {
		found = append(found, finding{kind: core.KindSyntax, message: d.Message, start: d.Start, end: d.End})
	}
	if first, _ := source.Fence(strings.SplitN(p.at(found[0].start), "\n", 2)[0]); first != "" {
		found[0].hint = "send one program, without Markdown around it"
	}
	return found
}

// at returns the program's text from the line of an offset on.
func (p *program) at(offset int) string {
	text := p.source.Text()
	return text[strings.LastIndexByte(text[:min(offset, len(text))], '\n')+1:]
}

// judge returns all findings in source order. advice is added to them.
func (p *program) judge(diagnostics []tsc.Diagnostic, modules []string, advice []finding) []finding {
	found := p.absences()
	found = append(found, p.imports(modules)...)
	found = append(found, advice...)
	for _, at := range p.reach.loose {
		found = append(found, finding{kind: core.KindType, message: "skills are named one by one", hint: "import { f } from './skills/<name>', or skills.<name>.f(…); list_skills lists them", start: at.start, end: at.end})
	}
	for _, d := range diagnostics {
		f, ok := p.diagnosed(d)
		if ok && !slices.ContainsFunc(found, func(g finding) bool { return same(f, g) }) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b finding) int { return a.start - b.start })
	return found
}

// same reports whether one finding only repeats another, elsewhere or for the same place.
func same(f, g finding) bool {
	overlap := f.start < g.end && g.start < f.end
	repeated := f.message == g.message && f.tool == g.tool && (f.kind == "" || f.kind == core.KindSyntax)
	return overlap || repeated
}

// absences returns findings for servers and tools that the program names and that do not exist.
func (p *program) absences() []finding {
	var found []finding
	for _, a := range p.reach.missing {
		f := finding{kind: core.KindToolNotFound, start: a.start, end: a.end}
		if e := source.Refused(p.tools, a.server, a.name); e != nil {
			f.kind, f.message, f.hint, f.server, f.tool = e.Kind, e.Message, e.Hint, e.Server, e.Tool
		} else if a.server != nil {
			f.server = a.server.Name
			f.message, f.hint = p.words().NoTool(a.server, a.name)
		} else {
			f.message, f.hint = p.words().NoServer(p.tools, a.name)
		}
		found = append(found, f)
	}
	return found
}

// imports returns findings for modules that do not exist.
func (p *program) imports(modules []string) []finding {
	var found []finding
	for _, i := range p.source.Facts().Imports {
		f := finding{kind: core.KindType, start: i.Start, end: i.End}
		switch known := resolve(i.Specifier, p.tools).kind != moduleOther || slices.Contains(modules, i.Specifier); {
		case i.Form == tsc.ImportReExport:
			f.message = "a program cannot export from another module: nothing imports it"
			f.hint = "return a value, or export default one"
			if p.module {
				f.message, f.hint = "a skill exports what it declares itself", "import it, and export a function that calls it"
			}
		case known, i.Form == tsc.ImportType:
			continue
		default:
			f.message = fmt.Sprintf("there is no module %q", i.Specifier)
			f.hint = moduleHint(i.Specifier, modules)
		}
		found = append(found, f)
	}
	return found
}

func moduleHint(specifier string, modules []string) string {
	path, inTree := treePath(specifier)
	if inTree {
		switch dir, _, _ := strings.Cut(path, "/"); dir {
		case "skills":
			return "list_skills lists them; it is import { f } from './skills/<name>'"
		case "workspace":
			return "files are read with node:fs/promises"
		}
	}
	if hint := instead(specifier); hint != "" {
		return hint
	}
	if near := core.Nearest(specifier, modules, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	known := slices.DeleteFunc(slices.Clone(modules), func(m string) bool { return !strings.HasPrefix(m, "node:") })
	return "no packages are installed; there are ./servers/<server>, ./client, " + strings.Join(known, ", ")
}

// unknownNames returns the unbound names in findings.
func unknownNames(found []finding) []string {
	var names []string
	for _, f := range found {
		if f.unknown != "" {
			names = append(names, f.unknown)
		}
	}
	return names
}

// refuse returns the error for the findings that are reasons to refuse, or nil. It describes the first in full and
// some others in one line each.
func (p *program) refuse(found []finding) *core.Error {
	refused := slices.DeleteFunc(slices.Clone(found), func(f finding) bool { return f.kind == "" })
	if len(refused) == 0 {
		return nil
	}
	const others = 4
	first := refused[0]
	message := first.message
	for i, f := range refused[1:] {
		line, _ := p.position(f.start)
		if i == others {
			message += fmt.Sprintf("\nand %d more", len(refused)-1-others)
			break
		}
		message += fmt.Sprintf("\nalso: line %d: %s", line, f.message)
	}
	e := &core.Error{
		Kind: first.kind, Op: "gate.typescript", Message: message, Hint: first.hint, Server: first.server, Tool: first.tool,
	}
	e.Line, e.Column = p.position(first.start)
	if names := unknownNames(refused); len(names) > 0 {
		e.Err = &core.UnknownNames{Names: names}
	}
	e.Frame = source.Frame(p.src.Code, e.Line, e.Column, p.width(first))
	return e
}

// position returns a position in the text as it was written.
func (p *program) position(offset int) (line, column int) {
	line, column = p.source.Position(offset)
	return line + p.lines, column
}

// width returns how many columns of its first line a finding covers.
func (p *program) width(f finding) int {
	text := p.source.Text()
	marked, _, _ := strings.Cut(text[min(f.start, len(text)):min(max(f.end, f.start), len(text))], "\n")
	return len([]rune(marked))
}

const (
	maxWarnings    = 5
	maxWarningSize = 200 // code points
)

// warnings returns the findings that are not reasons to refuse. Of those about types that JavaScript does not state,
// only the ones about tools are included.
func (p *program) warnings(found []finding) []string {
	var list []string
	for _, f := range found {
		if f.kind != "" || p.src.Language == core.JavaScript && !f.advice {
			continue
		}
		if len(list) == maxWarnings {
			break
		}
		line, _ := p.position(f.start)
		text := []rune(fmt.Sprintf("line %d: %s", line, f.message))
		if len(text) > maxWarningSize {
			text = append(text[:maxWarningSize], '…')
		}
		list = append(list, string(text))
	}
	return list
}
