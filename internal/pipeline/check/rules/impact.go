package rules

import (
	"slices"
	"strings"
)

// ProgramImpact lists what a program can touch, judged by its syntax tree.
type ProgramImpact struct {
	Calls   []ToolUse // the tools it names, each once, in source order
	Reads   []string  // files, as far as their names are constant
	Writes  []string
	Deletes []string
	Domains []string // hosts of the addresses in its strings
	// Affects lists the files that the program writes, moves, replaces or deletes. Commands lists the commands that
	// it starts, with constant arguments. Both are shown to the person who approves the program. The constant
	// Computed replaces parts that are not constant.
	Affects, Commands []string
	Repeats           bool // it may do something more than once
}

// ToolUse describes a tool that a program names, and whether the program may call it repeatedly.
type ToolUse struct {
	Name string // as the program has it: github.listIssues, or the raw name
	Loop bool   // it may be called more than once
}

const (
	maxUses  = 200
	maxNames = 20 // of files and domains
)

func (j *treeJudge) findImpact() ProgramImpact {
	m := ProgramImpact{}
	for i := range j.Nodes {
		at := int32(i)
		switch n := &j.Nodes[i]; n.Kind {
		case Member, Index, Imported, Name:
			if n.Kind != Name || n.Bind > 0 {
				for _, path := range j.possiblePaths(at) {
					m.noteTool(j.toolPath(path), j.loops[at])
				}
			}
		case Call:
			m.Repeats = m.Repeats || j.loops[at]
			j.impactOf(at, &m)
		case String:
			for _, d := range textDomains(n.Text) {
				m.Domains = addDistinct(m.Domains, d)
			}
		}
	}
	return m
}

func (j *treeJudge) impactOf(i int32, m *ProgramImpact) {
	for _, path := range j.possiblePaths(j.nthChild(i, 0)) {
		arg := j.nthChild(i, 1)
		m.noteCommand(j, i, path)
		for _, paged := range j.pagedTools(path, []int32{arg}) {
			m.noteTool(j.toolPath(paged), true)
		}
		if slices.Contains(rawCallers, path) {
			if name, ok := j.constantText(arg); ok {
				m.noteTool(name, j.loops[i])
			}
			continue
		}
		use := fileUseOf(path)
		if use == 0 || path == "@pathlib.Path" {
			continue
		}
		name := "?"
		if s, ok := j.constantText(arg); ok && !strings.HasPrefix(path, "@pathlib.Path().") {
			name = s
		} else if s := j.pathOf(i); strings.HasPrefix(path, "@pathlib.Path().") && s != "" {
			name = s
		}
		if mode, ok := j.constantText(j.nthChild(i, 2)); ok && path == "open" && strings.ContainsAny(mode, "wax+") {
			use = useWrites
		}
		m.noteFiles(j, i, path, name, use)
		switch use {
		case useReads:
			m.Reads = addDistinct(m.Reads, name)
		case useWrites:
			m.Writes = addDistinct(m.Writes, name)
		default:
			m.Deletes = addDistinct(m.Deletes, name)
		}
	}
}

// Computed is the text that a ProgramImpact shows in place of a name that the program computes.
const Computed = "(a name that the program computes)"

// secondArgument lists functions that write to the file named by their second argument, such as copyFile.
var secondArgument = []string{
	"cp", "cpSync", "copyFile", "copyFileSync", "copy", "copy2", "copytree", "move", "rename", "renameSync",
	"replace", "link", "linkSync", "symlink", "symlinkSync",
}

// noteFiles adds the files that a call changes to the files of the ProgramImpact.
func (m *ProgramImpact) noteFiles(j *treeJudge, i int32, path, name string, use fileUse) {
	if use != useReads {
		m.Affects = addDistinct(m.Affects, namedOr(name))
	}
	if slices.Contains(secondArgument, lastName(path)) {
		to, _ := j.constantText(j.nthChild(i, 2))
		m.Affects = addDistinct(m.Affects, namedOr(to))
	}
}

func namedOr(name string) string {
	if name == "" || name == "?" {
		return Computed
	}
	return shortenText(name)
}

// noteCommand adds the command that a call starts to the commands of the ProgramImpact.
func (m *ProgramImpact) noteCommand(j *treeJudge, i int32, path string) {
	d, ok := lookupDanger(j.Language, path)
	if !ok || d.rule != "process.command" && d.rule != "process.spawn" {
		return
	}
	var words []string
	for c := 1; ; c++ {
		arg := j.nthChild(i, c)
		if arg < 0 {
			break
		}
		if list := j.onlyValue(arg); j.hasKind(list, Array) {
			for _, item := range j.childList(list) {
				words = append(words, constantOf(j, item))
			}
		} else if !j.hasKind(list, Object) {
			words = append(words, constantOf(j, arg))
		}
	}
	m.Commands = addDistinct(m.Commands, namedOr(strings.Join(words, " ")))
}

func constantOf(j *treeJudge, i int32) string {
	if s, ok := j.constantText(i); ok {
		return s
	}
	return "(computed)"
}

// noteTool adds a tool that the program calls to the tools of the ProgramImpact.
func (m *ProgramImpact) noteTool(name string, loop bool) {
	if name == "" || !strings.ContainsAny(name, "._") {
		return
	}
	for k := range m.Calls {
		if m.Calls[k].Name == name {
			m.Calls[k].Loop = m.Calls[k].Loop || loop
			return
		}
	}
	if len(m.Calls) < maxUses {
		m.Calls = append(m.Calls, ToolUse{name, loop})
	}
}

func addDistinct(list []string, s string) []string {
	if len(list) == maxNames || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

var addressPattern = compileLazily(`(?i)\b(?:https?|wss?|ftp)://([a-z0-9.-]+|\[[0-9a-f:]+\])`)

// textDomains returns the hosts of the URLs in a text.
func textDomains(text string) []string {
	if len(text) > 10_000 {
		text = text[:10_000]
	}
	var found []string
	for _, m := range addressPattern().FindAllStringSubmatch(text, maxNames) {
		found = append(found, strings.ToLower(strings.Trim(m[1], ".")))
	}
	return found
}

// repeatingMethods lists functions that call a function argument once for each of many items.
var repeatingMethods = []string{
	"map", "forEach", "flatMap", "filter", "reduce", "reduceRight", "some", "every", "find", "findIndex", "sort",
	"from", "setInterval", "filterfalse", "starmap", "replace",
}

// findRepeated finds the nodes that may run more than once: those in loops, in functions that are called in a loop or
// recursively, and in functions passed to a function that calls them repeatedly.
func (p *analyzedTree) findRepeated() []bool {
	loops := make([]bool, len(p.Nodes))
	var todo []int32
	for i := range p.Nodes {
		at := int32(i)
		switch n := &p.Nodes[i]; n.Kind {
		case Loop:
			todo = append(todo, p.loopBody(at)...)
		case Call:
			todo = append(todo, p.repeatedBy(at)...)
		case Name:
			if f := p.functionOf(n.Bind); f >= 0 && f < at && at < f+p.Nodes[f].Size {
				todo = append(todo, f) // it calls itself
			}
		}
	}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for c, end := at, at+p.Nodes[at].Size; c < end; {
			if loops[c] { // and so is all below it
				c += p.Nodes[c].Size
				continue
			}
			loops[c] = true
			if f := p.functionOf(p.Nodes[c].Bind); f >= 0 && p.hasKind(c, Name) {
				todo = append(todo, f)
			}
			c++
		}
	}
	return loops
}

// loopBody returns the parts of a loop that may run more than once. These are all parts except the expression over
// whose items the loop runs.
func (p *analyzedTree) loopBody(i int32) []int32 {
	return slices.DeleteFunc(p.childList(i), func(c int32) bool { return p.hasKind(c, Assign) && p.Nodes[c].Text == "of" })
}

// functionOf returns the function that is assigned to a variable, or -1 if no function is.
func (p *analyzedTree) functionOf(bind int32) int32 {
	if bind == 0 {
		return -1
	}
	for _, d := range p.defs[bind] {
		if p.hasKind(d.node, Function) && len(d.keys) == 0 {
			return d.node
		}
	}
	return -1
}

// repeatedBy returns the function arguments that a call may run repeatedly, such as f in list.map(f).
func (p *analyzedTree) repeatedBy(i int32) []int32 {
	callee := p.nthChild(i, 0)
	name := ""
	if p.hasKind(callee, Member, Name) {
		name = p.Nodes[callee].Text
	}
	if !slices.Contains(repeatingMethods, name) {
		return nil
	}
	return slices.DeleteFunc(p.childList(i)[1:], func(c int32) bool { return !p.hasKind(c, Function, Name, Member) })
}
