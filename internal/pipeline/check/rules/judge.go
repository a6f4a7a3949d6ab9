package rules

import (
	"slices"
	"strings"
)

// RuleFinding locates one place where a program violates a rule.
type RuleFinding struct {
	Rule       string // its ID
	Severity   RuleSeverity
	Start, End int    // bytes in the source
	Detail     string // what was found, as short as possible: "os.system"
}

// RuleReport holds everything that the rules found in a program. Equal programs have equal reports.
type RuleReport struct {
	Findings   []RuleFinding // in source order
	Impact     ProgramImpact
	Complexity int // the highest cyclomatic complexity of a function, or of the code outside of functions
}

// Bounds on a report: the number of findings, the number of findings per rule, and the length of their details.
const (
	maxFindings = 50
	maxSame     = 5 // of one rule
	maxDetail   = 60
)

// JudgeTree applies all rules to a program. Its time is bounded by the size of the tree. The error is ErrTree or
// ErrDeep.
func JudgeTree(t *SyntaxTree) (RuleReport, error) {
	if err := t.CheckStructure(); err != nil {
		return RuleReport{}, err
	}
	j := &treeJudge{analyzedTree: newProgram(t), said: map[string]int{}}
	for i := range t.Nodes {
		j.judgeNode(int32(i))
	}
	j.findComplexity()
	j.judgeLetters()
	j.judgeSymbols()
	slices.SortStableFunc(j.found, func(a, b RuleFinding) int { return a.Start - b.Start })
	return RuleReport{Findings: j.found, Impact: j.findImpact(), Complexity: j.most}, nil
}

type treeJudge struct {
	*analyzedTree
	found []RuleFinding
	said  map[string]int
	most  int // complexity
	// commands counts the bytes of commands in tool arguments that were examined so far.
	commands int
}

// addFinding adds a finding with the severity of its rule.
func (j *treeJudge) addFinding(rule string, i int32, detail string) {
	j.findAs(rule, severityOf(rule), i, detail)
}

func (j *treeJudge) findAs(rule string, s RuleSeverity, i int32, detail string) {
	j.findAt(rule, s, int(j.Nodes[i].Start), int(j.Nodes[i].End), detail)
}

func (j *treeJudge) findAt(rule string, s RuleSeverity, start, end int, detail string) {
	for k := range j.found {
		if f := &j.found[k]; f.Rule == rule && f.Start == start {
			f.Severity = max(f.Severity, s)
			return
		}
	}
	kind := rule + s.String()
	if j.said[kind]++; j.said[kind] > maxSame || len(j.found) >= maxFindings && !j.makeRoom(s) {
		return
	}
	detail = strings.TrimPrefix(strings.TrimPrefix(detail, "@"), "?.")
	if r := []rune(detail); len(r) > maxDetail {
		detail = string(r[:maxDetail]) + "…"
	}
	j.found = append(j.found, RuleFinding{rule, s, start, end, detail})
}

// makeRoom removes the least severe finding to make room for one of severity s. It returns false, and removes
// nothing, if no finding is less severe than s.
func (j *treeJudge) makeRoom(s RuleSeverity) bool {
	mildest := 0
	for k, f := range j.found {
		if f.Severity < j.found[mildest].Severity {
			mildest = k
		}
	}
	if j.found[mildest].Severity >= s {
		return false
	}
	j.found = slices.Delete(j.found, mildest, mildest+1)
	return true
}

func (j *treeJudge) judgeNode(i int32) {
	switch n := &j.Nodes[i]; n.Kind {
	case Name:
		if n.Bind == 0 || j.isTakenApart(i) {
			j.judgeReference(i)
		}
		j.judgeIdentifier(i, n.Text)
	case Member, Index:
		j.judgeReference(i)
		j.judgeMember(i)
	case Import:
		j.judgeImports(i)
	case Imported:
		j.judgeReference(i)
	case Call, New:
		if n.Kind == Call {
			j.judgeReference(i)
		}
		j.judgeCall(i)
	case Assign, Delete:
		j.judgeAssigned(i)
	case String:
		j.judgeLiteral(i)
	case Array:
		j.findNumberText(i)
	case Property:
		j.judgeProperty(i)
	case Parameter, Function, Class:
		j.judgeIdentifier(i, n.Text)
	}
}

// judgeReference finds uses of dangerous names, in whatever way the program accesses them.
func (j *treeJudge) judgeReference(i int32) {
	if j.isInner(i) {
		return
	}
	for _, path := range j.possiblePaths(i) {
		if j.hasKind(i, Call) && strings.HasSuffix(path, "()") {
			continue
		}
		d, ok := lookupDanger(j.Language, path)
		if !ok || j.isAsked(i) {
			continue
		}
		severity := d.severity
		if severity == 0 {
			severity = severityOf(d.rule)
		}
		if d.rule == "code.eval" || d.rule == "code.function" {
			j.reportRun(i, d.rule, path)
			continue
		}
		if d.rule == "process.env" && !j.isWhole(i) || d.rule == "code.import" && j.isConstantCall(i) ||
			path == "Buffer.from" && !j.isDecoding(i) {
			continue
		}
		j.findAs(d.rule, severity, i, path)
	}
}

// isTakenApart reports whether a node is a variable in a destructuring pattern, such as a in const {a} = b. Such a
// variable gets a part of another value.
func (j *treeJudge) isTakenApart(i int32) bool {
	return j.hasKind(j.parents[i], Property) &&
		slices.ContainsFunc(j.defs[j.Nodes[i].Bind], func(d variableDef) bool { return len(d.keys) > 0 })
}

// isInner reports whether a node is the inner part of a longer name, such as a in a.b. In that case only the longer
// name is judged.
func (j *treeJudge) isInner(i int32) bool {
	parent := j.parents[i]
	return j.hasKind(parent, Member, Index) && parent+1 == i && !j.hasKind(i, Call)
}

// isAsked reports whether a program only asks what a value is, with typeof or a comparison, and does not use the
// value otherwise.
func (j *treeJudge) isAsked(i int32) bool {
	parent := j.parents[i]
	if !j.hasKind(parent, Unary, Binary) {
		return false
	}
	switch j.Nodes[parent].Text {
	case "typeof", "instanceof", "in", "===", "!==", "==", "!=", "is", "is not":
		return true
	}
	return false
}

// isWhole reports whether a program uses a value as a whole, and not only one of its members.
func (j *treeJudge) isWhole(i int32) bool {
	parent := j.parents[i]
	return !j.hasKind(parent, Member, Index, Unary, Binary, Logical) ||
		j.hasKind(parent, Member) && slices.Contains([]string{"items", "copy", "values"}, j.Nodes[parent].Text)
}

// isConstantCall reports whether a node is the called function of a call whose first argument is a constant string.
// In a call such as require("fs") the module is judged by its name, so the use of require itself is not reported.
func (j *treeJudge) isConstantCall(i int32) bool {
	parent := j.parents[i]
	if !j.hasKind(parent, Call) || parent+1 != i {
		return false
	}
	_, ok := j.constantText(j.nthChild(parent, 1))
	return ok
}

// isDecoding reports whether a call of Buffer.from decodes base64 or hexadecimal data, or may do so.
func (j *treeJudge) isDecoding(i int32) bool {
	parent := j.parents[i]
	if !j.hasKind(parent, Call) || parent+1 != i || len(j.childList(parent)) != 3 {
		return false
	}
	encoding, ok := j.constantText(j.nthChild(parent, 2))
	return !ok || slices.Contains([]string{"base64", "base64url", "hex"}, encoding)
}

// judgeImports finds imports of modules that no harmless program needs.
func (j *treeJudge) judgeImports(i int32) {
	path := j.modulePath(j.Nodes[i].Text)
	j.fromAddress(i, j.Nodes[i].Text)
	if d, ok := lookupDanger(j.Language, path); ok {
		severity := d.severity
		if severity == 0 {
			severity = severityOf(d.rule)
		}
		j.findAs(d.rule, severity, i, path)
	}
}

// judgeMember finds accesses to members such as __proto__, through which a program can get from an object to its type
// or to other objects.
func (j *treeJudge) judgeMember(i int32) {
	n := &j.Nodes[i]
	key, object := n.Text, j.nthChild(i, 0)
	if n.Kind == Index {
		index := j.nthChild(i, 1)
		key = j.indexKey(index)
		j.findHiddenName(index, key)
		j.findComputedMember(i, object, key)
	}
	if j.Language == Python {
		j.findDunder(i, object, key)
		return
	}
	switch key {
	case "__proto__", "__defineGetter__", "__defineSetter__", "__lookupGetter__", "__lookupSetter__":
		j.addFinding("proto.walk", i, key)
	case "constructor":
		j.findConstructor(i, object)
	}
}

// findHiddenName finds dangerous names that a program builds from parts, such as "ev" + "al", to hide them from a
// check.
func (j *treeJudge) findHiddenName(i int32, name string) {
	if !j.hasKind(i, String) && !j.hasKind(i, Name) && slices.Contains(hideableNames, name) {
		j.addFinding("code.hidden", i, name)
	}
	if j.hasKind(i, Name) && slices.Contains(hideableNames, name) && !j.hasKind(j.onlyValue(i), String) {
		j.addFinding("code.hidden", i, name)
	}
}

// hideableNames lists dangerous names that programs build from parts, such as "ev" + "al", to hide them from a check.
// Harmless programs have no reason to do that.
var hideableNames = []string{
	"eval", "Function", "constructor", "__proto__", "require", "process", "child_process", "node:child_process", "exec", "execSync", "spawn",
	"globalThis", "mainModule", "fetch", "system", "popen", "os", "subprocess", "ctypes", "socket", "__import__", "__builtins__", "__class__",
	"__subclasses__", "__globals__", "__base__", "__bases__", "__mro__", "__dict__", "__code__", "compile", "fs",
	"net", "vm", "binding", "pty", "pickle",
}

// findComputedMember finds accesses to members of the global object or of dangerous modules by a name that the
// program computes.
func (j *treeJudge) findComputedMember(i, object int32, key string) {
	if key != "[?]" {
		return
	}
	for _, path := range j.possiblePaths(object) {
		switch {
		case path == globalObject, path == "process", path == "@os", path == "@sys", path == "@fs", path == "@sys.modules":
			j.addFinding("code.computed", i, path)
		}
	}
}

// findConstructor finds accesses to the Function constructor through a value, as in x.constructor.constructor.
func (j *treeJudge) findConstructor(i, object int32) {
	for _, path := range j.possiblePaths(i) {
		switch {
		case strings.HasSuffix(path, ".constructor.constructor"), strings.HasPrefix(path, "function.") && strings.HasSuffix(path, ".constructor"),
			path == "function.constructor", path == "class.constructor" && !j.hasKind(object, Name):
			j.addFinding("code.constructor", i, path)
		}
	}
}

// findDunder finds Python attributes such as __subclasses__, through which a program can get from any object to all
// others.
func (j *treeJudge) findDunder(i, object int32, key string) {
	switch key {
	case "__subclasses__":
		if j.hasKind(object, Name) && j.Nodes[object].Bind > 0 && slices.Equal(j.possiblePaths(object), []string{"class"}) {
			j.addFinding("dunder.base", i, key)
			return
		}
		j.addFinding("dunder.walk", i, key)
	case "__globals__", "__builtins__", "__code__", "__closure__", "__getattribute__", "f_globals", "f_locals", "f_builtins", "f_back", "f_code", "tb_frame",
		"gi_frame", "gi_code", "cr_frame", "cr_code", "ag_frame", "func_globals", "func_code", "__reduce_ex__", "__loader__", "_getframe", "__self__":
		if key == "__getattribute__" && j.isSuper(object) {
			return
		}
		j.addFinding("dunder.walk", i, key)
	case "__bases__", "__base__", "__mro__", "mro":
		if key == "mro" && !strings.Contains(j.sourceOf(i), "__") {
			return
		}
		if j.hasKind(object, Member) && j.Nodes[object].Text == "__class__" && !j.hasKind(j.nthChild(object, 0), Name) ||
			j.hasKind(object, Member) && j.Nodes[object].Text == key {
			j.addFinding("dunder.walk", i, key)
			return
		}
		j.addFinding("dunder.base", i, key)
	}
}

func (j *treeJudge) isSuper(i int32) bool {
	return slices.ContainsFunc(j.possiblePaths(i), func(s string) bool { return s == "super()" || s == "object" })
}

// judgeProperty judges the name of a property. It finds hooks for Python's deserialisation, names that are assembled
// from parts, and React's property for raw HTML.
func (j *treeJudge) judgeProperty(i int32) {
	if key := j.Nodes[i].Text; j.Language == Python && (key == "__reduce__" || key == "__reduce_ex__") {
		j.addFinding("code.deserialize", i, key)
	}
	name := j.Nodes[i].Text
	if key := j.nthChild(i, 0); name == "" && j.nthChild(i, 1) >= 0 {
		if text, ok := j.constantText(key); ok {
			j.findHiddenName(key, text)
			name = text
		}
	}
	if j.Language == Script && name == reactSink {
		j.addFinding("dom.sink", i, name)
	}
	j.judgeIdentifier(i, j.Nodes[i].Text)
}

// reactSink is the property with which React writes raw HTML into a page.
const reactSink = "dangerouslySetInnerHTML"

// judgeAssigned finds assignments that replace built-in functions or objects.
func (j *treeJudge) judgeAssigned(i int32) {
	target := j.nthChild(i, 0)
	if !j.hasKind(target, Member, Index) || j.isOf(i) {
		return
	}
	for _, path := range j.possiblePaths(target) {
		j.findReplaced(target, path)
	}
}

func (j *treeJudge) isOf(i int32) bool { return j.hasKind(i, Assign) && j.Nodes[i].Text == "of" }

func (j *treeJudge) findReplaced(target int32, path string) {
	owner := path[:max(strings.LastIndexByte(path, '.'), 0)]
	switch {
	case j.Language == Script && slices.Contains([]string{"innerHTML", "outerHTML", "srcdoc", reactSink}, lastName(path)):
		j.addFinding("dom.sink", target, lastName(path))
	case j.Language == Script && (strings.HasSuffix(owner, ".__proto__") || strings.HasSuffix(owner, ".constructor.prototype")),
		j.Language == Script && strings.HasSuffix(owner, ".prototype") && scriptGlobals[strings.TrimSuffix(owner, ".prototype")]:
		j.addFinding("proto.pollute", target, path)
	case j.isGlobalMember(target), owner != "" && slices.Contains(builtinObjects, owner),
		slices.Contains(j.possiblePaths(j.nthChild(target, 0)), "@sys.modules"):
		j.addFinding("proto.builtin", target, path)
	}
}

// isGlobalMember reports whether a node is a built-in member of the global object.
func (j *treeJudge) isGlobalMember(i int32) bool {
	names := j.globalNames()
	return slices.Contains(j.possiblePaths(j.nthChild(i, 0)), globalObject) && slices.ContainsFunc(j.possiblePaths(i), func(s string) bool {
		return names[s] || s == "callMCPTool" || s == "call_mcp_tool" || s == "servers"
	})
}

// builtinObjects lists built-in objects whose members must not be replaced.
var builtinObjects = []string{
	"JSON", "Math", "Object", "Promise", "Reflect", "Array", "String", "Symbol", "Number", "Date", "RegExp",
	"Function", "@json", "@os", "@sys",
}
