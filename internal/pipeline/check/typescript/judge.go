package typescript

import (
	"fmt"
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// checkFinding describes a problem in a program. If kind is empty, it is a warning, otherwise a reason to refuse the
// program.
type checkFinding struct {
	kind       core.Kind
	message    string
	hint       string
	start, end int
	server     string
	tool       string
	unknown    string // the name, if nothing binds it
	advice     bool   // based on a tool's learned answers
}

// syntaxFindings returns the syntax errors of a program as findings.
func (p *scriptProgram) syntaxFindings() []checkFinding {
	var found []checkFinding
	for _, d := range p.source.Errors() {
		found = append(found, checkFinding{kind: core.KindSyntax, message: d.Message, start: d.Start, end: d.End})
	}
	if first, _ := source.ParseFence(strings.SplitN(p.textFrom(found[0].start), "\n", 2)[0]); first != "" {
		found[0].hint = "send one program, without Markdown around it"
	}
	return found
}

// textFrom returns the program's text from the beginning of the line that contains offset.
func (p *scriptProgram) textFrom(offset int) string {
	text := p.source.Text()
	return text[strings.LastIndexByte(text[:min(offset, len(text))], '\n')+1:]
}

// judgeFindings returns all findings in a program in source order, including those that are only warnings.
func (p *scriptProgram) judgeFindings(diagnostics []tsc.Diagnostic, modules []string, advice []checkFinding) []checkFinding {
	found := p.findAbsent()
	found = append(found, p.findAbsentModules(modules)...)
	found = append(found, advice...)
	for _, at := range p.reach.loose {
		found = append(found, checkFinding{
			kind: core.KindType, message: "import skills one by one",
			hint: "write import { f } from './skills/<name>', or skills.<name>.f(…); list_skills lists the skills", start: at.start,
			end: at.end,
		})
	}
	for _, d := range diagnostics {
		f, ok := p.toFinding(d)
		if ok && !slices.ContainsFunc(found, func(g checkFinding) bool { return isSameFinding(f, g) }) {
			found = append(found, f)
		}
	}
	slices.SortStableFunc(found, func(a, b checkFinding) int { return a.start - b.start })
	return found
}

// isSameFinding reports whether only one of two findings is shown, because they are about the same problem: they
// overlap, or they are warnings or syntax errors with the same message about the same tool.
func isSameFinding(f, g checkFinding) bool {
	overlap := f.start < g.end && g.start < f.end
	repeated := f.message == g.message && f.tool == g.tool && (f.kind == "" || f.kind == core.KindSyntax)
	return overlap || repeated
}

// findAbsent returns a finding for each server or tool that the program names but that does not exist.
func (p *scriptProgram) findAbsent() []checkFinding {
	var found []checkFinding
	for _, a := range p.reach.missing {
		f := checkFinding{kind: core.KindToolNotFound, start: a.start, end: a.end}
		if e := source.RefusalOf(p.tools, a.server, a.name); e != nil {
			f.kind, f.message, f.hint, f.server, f.tool = e.Kind, e.Message, e.Hint, e.Server, e.Tool
		} else if a.server != nil {
			f.server = a.server.Name
			f.message, f.hint = p.nameErrors().NoTool(a.server, a.name)
		} else {
			f.message, f.hint = p.nameErrors().NoServer(p.tools, a.name)
		}
		found = append(found, f)
	}
	return found
}

// findAbsentModules returns a finding for each import of a module that does not exist, and for each re-export, which
// is not allowed. The argument modules lists modules that exist in addition to servers and skills.
func (p *scriptProgram) findAbsentModules(modules []string) []checkFinding {
	var found []checkFinding
	for _, i := range p.source.Facts().Imports {
		f := checkFinding{kind: core.KindType, start: i.Start, end: i.End}
		switch known := resolveSpecifier(i.Specifier, p.tools).kind != moduleOther || slices.Contains(modules, i.Specifier); {
		case i.Form == tsc.ImportReExport:
			f.message = "a program cannot export from another module, because nothing imports a program"
			f.hint = "return a value, or export default one"
			if p.module {
				f.message, f.hint = "a skill can export only what it declares itself", "import it, and export a function that calls it"
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
			return "list the skills with list_skills, and write import { f } from './skills/<name>'"
		case "workspace":
			return "read files with node:fs/promises"
		}
	}
	if hint := suggestInstead(specifier); hint != "" {
		return hint
	}
	if near := core.NearestNames(specifier, modules, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	known := slices.DeleteFunc(slices.Clone(modules), func(m string) bool { return !strings.HasPrefix(m, "node:") })
	return "no packages are installed; you can import ./servers/<server>, ./client, " + strings.Join(known, ", ")
}

// unknownNames returns the names that do not exist although the program uses them, according to the findings.
func unknownNames(found []checkFinding) []string {
	var names []string
	for _, f := range found {
		if f.unknown != "" {
			names = append(names, f.unknown)
		}
	}
	return names
}

// refuseFindings returns the error for the findings that are reasons to refuse the program, or nil if none is found.
// The error describes the first of these findings in full and some others in one line each.
func (p *scriptProgram) refuseFindings(found []checkFinding) *core.Error {
	refused := slices.DeleteFunc(slices.Clone(found), func(f checkFinding) bool { return f.kind == "" })
	if len(refused) == 0 {
		return nil
	}
	const others = 4
	first := refused[0]
	message := first.message
	for i, f := range refused[1:] {
		line, _ := p.originalPosition(f.start)
		if i == others {
			message += fmt.Sprintf("\nand %d more", len(refused)-1-others)
			break
		}
		message += fmt.Sprintf("\nalso: line %d: %s", line, f.message)
	}
	e := &core.Error{
		Kind: first.kind, Op: "gate.typescript", Message: message, Hint: first.hint, Server: first.server, Tool: first.tool,
	}
	e.Line, e.Column = p.originalPosition(first.start)
	if names := unknownNames(refused); len(names) > 0 {
		e.Err = &core.UnknownNames{Names: names}
	}
	e.Frame = source.CodeFrame(p.src.Code, e.Line, e.Column, p.findingWidth(first))
	return e
}

// originalPosition converts an offset in the program to the line and column in the text as it was sent.
func (p *scriptProgram) originalPosition(offset int) (line, column int) {
	line, column = p.source.Position(offset)
	return line + p.lines, column
}

// findingWidth returns how many columns a finding covers on its first line.
func (p *scriptProgram) findingWidth(f checkFinding) int {
	text := p.source.Text()
	marked, _, _ := strings.Cut(text[min(f.start, len(text)):min(max(f.end, f.start), len(text))], "\n")
	return len([]rune(marked))
}

const (
	maxWarnings    = 5
	maxWarningSize = 200 // code points
)

// findingWarnings returns the texts of the findings that are only warnings: the first maxWarnings of them, each
// shortened to maxWarningSize. For JavaScript, it includes only warnings about fields of tool results.
func (p *scriptProgram) findingWarnings(found []checkFinding) []string {
	var list []string
	for _, f := range found {
		if f.kind != "" || p.src.Language == core.JavaScript && !f.advice {
			continue
		}
		if len(list) == maxWarnings {
			break
		}
		line, _ := p.originalPosition(f.start)
		text := []rune(fmt.Sprintf("line %d: %s", line, f.message))
		if len(text) > maxWarningSize {
			text = append(text[:maxWarningSize], '…')
		}
		list = append(list, string(text))
	}
	return list
}
