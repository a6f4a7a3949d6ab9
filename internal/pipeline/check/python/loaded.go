package python

import (
	"strings"

	"retort/internal/core"
)

// loadingCall is the name of the function with which programs load the code of a skill.
const loadingCall = "load_skill"

// withImports returns the program with each top-level statement exec(load_skill("name")) replaced by an import of the
// skill. It also replaces exec(x) if x = load_skill("name") is the only assignment to x. Imported skills are checked,
// and the checked code is the code that runs. found is false if there is no such statement.
func (p *pythonProgram) withImports() (code string, found bool) {
	if !strings.Contains(p.code, loadingCall) || !strings.Contains(p.code, "exec") {
		return "", false
	}
	l := skillLoading{s: p.scopes.s, x: p.scopes, assigned: map[textID]string{}}
	if l.isBound("exec") || l.isBound(loadingCall) {
		return "", false
	}
	l.walkScope(l.s.root)
	if len(l.executed) == 0 {
		return "", false
	}
	return l.replaceLoading(p.code)
}

// skillLoading finds the statements with which a program executes a skill's code.
type skillLoading struct {
	s        *syntaxTree
	x        *scopeTable
	assigned map[textID]string // the skills that variables of the module are assigned
	executed []nodeID          // statements exec(…) at the top level, in the order of the text
}

// isBound reports whether the program assigns to a name at its top level, or in a function through a global
// declaration.
func (l *skillLoading) isBound(name string) bool {
	text, ok := l.s.places[name]
	return ok && l.x.findScope(text, l.x.module) != 0
}

// walkScope visits the statements below a node that belong to the module's scope, so not those in functions and
// classes.
func (l *skillLoading) walkScope(id nodeID) {
	for child := range l.s.childNodes(id) {
		switch l.s.classOf(child) {
		case classFunctionDef, classAsyncFunctionDef, classClassDef, classLambda:
			continue
		case classAssign:
			l.noteAssignment(child)
		case classExpr:
			if call := l.s.childNode(child, fieldValue); l.isCallOf(call, "exec") {
				l.executed = append(l.executed, child)
			}
		}
		l.walkScope(child)
	}
}

func (l *skillLoading) noteAssignment(id nodeID) {
	targets := l.s.fieldList(id, fieldTargets)
	skill := l.loadedSkill(l.s.childNode(id, fieldValue))
	if len(targets) != 1 || skill == "" || l.s.classOf(nodeOf(targets[0])) != className {
		return
	}
	name := l.s.fieldText(nodeOf(targets[0]), fieldID)
	if l.x.bindings[scopeVariable{l.x.module, name}].count == 1 {
		l.assigned[name] = skill
	}
}

// isCallOf reports whether a node calls a function by its simple name and without keyword arguments.
func (l *skillLoading) isCallOf(id nodeID, function string) bool {
	if id == 0 || l.s.classOf(id) != classCall || len(l.s.fieldList(id, fieldKeywords)) > 0 {
		return false
	}
	called := l.s.childNode(id, fieldFunc)
	return l.s.classOf(called) == className && l.s.fieldString(called, fieldID) == function
}

// loadedSkill returns the skill whose code an expression evaluates to, or "" if that is unknown. It recognises
// load_skill("name"), the same followed by ["code"] or .code, and a variable with such a value.
func (l *skillLoading) loadedSkill(id nodeID) string {
	switch l.s.classOf(id) {
	case classSubscript:
		if key := l.s.childNode(id, fieldSlice); !l.s.isText(key) || l.s.fieldString(key, fieldValue) != "code" {
			return ""
		}
		return l.loadedSkill(l.s.childNode(id, fieldValue))
	case classAttribute:
		if l.s.fieldString(id, fieldAttr) != "code" {
			return ""
		}
		return l.loadedSkill(l.s.childNode(id, fieldValue))
	case className:
		return l.assigned[l.s.fieldText(id, fieldID)]
	}
	args := l.s.fieldList(id, fieldArgs)
	if !l.isCallOf(id, loadingCall) || len(args) != 1 || !l.s.isText(nodeOf(args[0])) {
		return ""
	}
	name := strings.ReplaceAll(l.s.fieldString(nodeOf(args[0]), fieldValue), "_", "-")
	if core.ValidSkillName(name) != nil {
		return ""
	}
	return name
}

// replaceLoading returns the code with imports in place of the statements that execute skills. Line numbers stay the same.
func (l *skillLoading) replaceLoading(code string) (string, bool) {
	lines := lineStarts(code)
	any := false
	for i := len(l.executed) - 1; i >= 0; i-- { // from the end, so that what comes before stays where it is
		n := l.s.nodes[l.executed[i]]
		args := l.s.fieldList(l.s.childNode(l.executed[i], fieldValue), fieldArgs)
		if len(args) == 0 || len(args) > 1 && !(len(args) == 2 && l.isCallOf(nodeOf(args[1]), "globals")) || n.line != n.endLine {
			continue
		}
		skill := l.loadedSkill(nodeOf(args[0]))
		start, end, ok := bytesOf(code, lines, n)
		if skill == "" || !ok || !strings.HasPrefix(code[start:end], "exec") {
			continue
		}
		code = code[:start] + "from skills." + core.SkillIdentifier(skill, core.Python) + " import *" + code[end:]
		any = true
	}
	return code, any
}

// bytesOf returns the range of bytes that a node covers in the code. The node must be on one line. The argument lines
// holds the offsets in the code at which its lines begin.
func bytesOf(code string, lines []int, n syntaxNode) (start, end int, ok bool) {
	if n.line < 1 || int(n.line) > len(lines) {
		return 0, 0, false
	}
	start, end = lines[n.line-1]+int(n.column), lines[n.line-1]+int(n.endColumn)
	return start, end, start <= end && end <= len(code)
}
