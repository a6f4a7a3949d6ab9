package rules

import (
	"slices"
	"strings"
)

// judgeCall judges a call and its arguments.
func (j *treeJudge) judgeCall(i int32) {
	callee := j.nthChild(i, 0)
	if callee < 0 {
		return
	}
	args := j.childList(i)[1:]
	paths := j.possiblePaths(callee)
	if len(paths) == 0 || strings.HasPrefix(paths[0], "?") {
		j.anyCall(args)
	}
	for _, path := range paths {
		j.callOf(i, path, args)
		j.judgeBound(i, path, args)
	}
	if j.hasKind(callee, Member) {
		j.judgeMethod(i, callee, args)
	}
}

// judgeBound judges calls such as f.bind(…) or partial(f, …), which fix arguments of the function f for later calls.
func (j *treeJudge) judgeBound(i int32, path string, args []int32) {
	if len(args) < 2 {
		return
	}
	if function, ok := strings.CutSuffix(path, ".bind"); ok {
		j.callOf(i, function, args[1:])
	}
	if path == "@functools.partial" {
		for _, function := range j.possiblePaths(args[0]) {
			j.callOf(i, function, args[1:])
		}
	}
}

// callOf judges a call of the function to which a dotted path such as globalThis.eval refers.
func (j *treeJudge) callOf(i int32, path string, args []int32) {
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".call"), ".apply")
	if d, ok := lookupDanger(j.Language, path); ok && j.isBound(j.nthChild(i, 0)) && (d.rule == "code.eval" || d.rule == "code.function") {
		j.reportRun(i, d.rule, path)
	}
	j.findIndirect(i, path, args)
	j.findReplacing(i, path, args)
	j.fileCall(i, path, args)
	j.toolCall(path, args)
	j.wholeGlobal(path, args)
	if slices.Contains(importerFunctions, path) && len(args) > 0 {
		if name, ok := j.constantText(args[0]); ok {
			j.findHiddenName(args[0], name)
			j.fromAddress(args[0], name)
		}
	}
}

// isBound reports whether a node is the name of a variable that the program declares.
func (j *treeJudge) isBound(i int32) bool { return j.hasKind(i, Name) && j.Nodes[i].Bind > 0 }

// judgeMethod judges calls of methods that are dangerous on any object.
func (j *treeJudge) judgeMethod(i, callee int32, args []int32) {
	switch name := j.Nodes[callee].Text; name {
	case "insertAdjacentHTML", "createContextualFragment":
		if j.Language == Script {
			j.addFinding("dom.sink", callee, name)
		}
	case "get_field":
		if len(args) > 0 && j.Language == Python {
			if s, ok := j.constantText(args[0]); ok {
				j.judgeFormat(i, "{"+s+"}")
			}
		}
	case "format", "format_map":
		for _, from := range slices.Concat([]int32{j.nthChild(callee, 0)}, args[:min(1, len(args))]) {
			if s, ok := j.constantText(from); ok && j.Language == Python {
				j.judgeFormat(i, s)
			}
		}
	}
}

// fromAddress finds JavaScript imports whose module is given by a URL.
func (j *treeJudge) fromAddress(i int32, module string) {
	for _, scheme := range []string{"data:", "http:", "https:", "blob:", "file:"} {
		if strings.HasPrefix(module, scheme) && j.Language == Script {
			j.addFinding("code.import", i, scheme)
		}
	}
}

// wholeGlobal finds calls to which a program passes the global object as an argument.
func (j *treeJudge) wholeGlobal(path string, args []int32) {
	if slices.Contains([]string{"call", "apply", "bind"}, lastName(path)) ||
		slices.Contains([]string{"getattr", "setattr", "hasattr", "delattr", "Reflect.has", "isinstance"}, path) {
		return
	}
	for _, arg := range args {
		if slices.Contains(j.possiblePaths(arg), globalObject) {
			j.addFinding("code.computed", arg, path)
		}
	}
}

var formatWalk = compileLazily(`\{[^{}]*(\.__\w+__|\[__\w+__\])`)

// judgeFormat finds Python format strings that access attributes.
func (j *treeJudge) judgeFormat(i int32, s string) {
	if m := formatWalk().FindString(s); m != "" {
		j.addFinding("dunder.format", i, m)
	}
}

// findIndirect finds functions that are called through another function, for example by a timer that runs a text as
// code.
func (j *treeJudge) findIndirect(i int32, path string, args []int32) {
	switch {
	case path == "setTimeout", path == "setInterval", path == "setImmediate":
		if len(args) > 0 && j.isText(args[0]) {
			j.reportRun(i, "code.eval", path)
		}
	case strings.HasSuffix(path, ".constructor") && j.Language == Script && len(args) > 0 && j.isCode(args[len(args)-1]):
		j.addFinding("code.constructor", i, path)
	case path == "getattr" || path == "setattr" || path == "delattr" || path == "@operator.attrgetter" || path == "@operator.methodcaller":
		j.judgeAttribute(i, path, args)
	case slices.Contains(memberReaders, path) && len(args) > 1:
		j.judgeMemberRead(i, args)
	case path == "String.fromCharCode" || path == "String.fromCodePoint":
		j.characterCodes(i, args)
	}
}

// memberReaders lists JavaScript functions that read a member of an object, given the member's name.
var memberReaders = []string{"Reflect.get", "Reflect.getOwnPropertyDescriptor", "Object.getOwnPropertyDescriptor"}

// judgeMemberRead judges calls of memberReaders with a constant name, such as Reflect.get(x, "constructor").
func (j *treeJudge) judgeMemberRead(i int32, args []int32) {
	name, ok := j.constantText(args[1])
	if !ok {
		return
	}
	j.findHiddenName(args[1], name)
	switch name {
	case "constructor":
		j.addFinding("code.constructor", i, name)
	case "__proto__":
		j.addFinding("proto.walk", i, name)
	}
}

// isText reports whether an expression is a constant string, a template string or a sum, so that its value is
// probably a string.
func (j *treeJudge) isText(i int32) bool {
	i = j.onlyValue(i)
	_, constant := j.constantText(i)
	return constant || j.hasKind(i, Template) || j.hasKind(i, Binary) && j.Nodes[i].Text == "+"
}

var codeLike = compileLazily(`[;({=]|\breturn\b|\bthis\b`)

// isCode reports whether an expression is probably a string that contains JavaScript.
func (j *treeJudge) isCode(i int32) bool {
	s, ok := j.constantText(i)
	return ok && codeLike().MatchString(s) || !ok && j.hasKind(j.onlyValue(i), Template)
}

// judgeAttribute judges calls of getattr and similar Python functions.
func (j *treeJudge) judgeAttribute(i int32, path string, args []int32) {
	at := 1
	if strings.HasPrefix(path, "@operator.") {
		at = 0
	}
	if len(args) <= at {
		return
	}
	object := args[0]
	name, constant := j.constantText(args[at])
	if !constant {
		j.findComputedMember(i, object, "[?]")
		return
	}
	j.findHiddenName(args[at], name)
	for _, part := range strings.Split(name, ".") {
		if at == 0 {
			object = -1
		}
		j.findDunder(i, object, part)
	}
	if path == "setattr" {
		for _, owner := range j.possiblePaths(object) {
			if owner == globalObject || slices.Contains(builtinObjects, owner) {
				j.addFinding("proto.builtin", i, name)
			}
		}
	}
}

// findReplacing finds calls that replace members of an object that is shared by all code, such as Object.prototype.
func (j *treeJudge) findReplacing(i int32, path string, args []int32) {
	switch path {
	case "Object.defineProperty", "Object.defineProperties", "Object.assign", "Object.setPrototypeOf", "Reflect.set",
		"Reflect.setPrototypeOf", "Reflect.defineProperty":
	case "JSON.parse":
		if len(args) > 0 {
			if s, ok := j.constantText(args[0]); ok && strings.Contains(s, `"__proto__"`) {
				j.addFinding("proto.pollute", i, "__proto__")
			}
		}
		return
	default:
		return
	}
	if len(args) == 0 {
		return
	}
	for _, owner := range j.possiblePaths(args[0]) {
		name, isPrototype := strings.CutSuffix(owner, ".prototype")
		switch {
		case isPrototype && scriptGlobals[name], strings.HasSuffix(owner, ".__proto__"), strings.HasSuffix(owner, ".constructor.prototype"):
			j.addFinding("proto.pollute", i, owner)
		case owner == globalObject, slices.Contains(builtinObjects, owner):
			j.addFinding("proto.builtin", i, owner)
		}
	}
}

// reportRun reports a place where a program runs a string as code. The finding belongs to a more severe rule if the
// string was decoded or comes from outside of the program.
func (j *treeJudge) reportRun(i int32, rule, path string) {
	call := i
	if parent := j.parents[i]; !j.hasKind(i, Call, New) && j.hasKind(parent, Call, New) {
		call = parent
	}
	if j.Language == Python && !j.hasKind(call, Call) && j.hasKind(i, Name) && j.hasKind(j.parents[i], Property) {
		call = -1
	}
	var from valueOrigin
	if j.hasKind(call, Call, New) {
		for _, arg := range j.childList(call)[1:] {
			from |= j.followOrigin(arg)
		}
	}
	switch {
	case from&fromDecoded != 0:
		j.addFinding("code.decoded", i, path)
	case from&fromOutside != 0:
		j.addFinding("code.fetched", i, path)
	default:
		j.addFinding(rule, i, path)
	}
}

// valueOrigin is a set of flags that say where a value comes from: from decoding, or from outside of the program.
type valueOrigin uint8

const (
	fromDecoded valueOrigin = 1 << iota // it was decoded from something unreadable
	fromOutside                         // a tool, a file or the network gave it
)

const maxFollowed = 2000 // nodes that one question of origin looks at

// followOrigin returns the origins of all values in an expression. It follows variables to their assignments.
func (j *treeJudge) followOrigin(i int32) (from valueOrigin) {
	todo, left, seen := []int32{i}, maxFollowed, map[int32]bool{}
	for len(todo) > 0 && left > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for c := range j.subtreeNodes(at) {
			if left--; left < 0 {
				break
			}
			n := &j.Nodes[c]
			if n.Kind == Name && n.Bind > 0 && !seen[n.Bind] {
				seen[n.Bind] = true
				for _, d := range j.defs[n.Bind] {
					if d.node >= 0 && !j.hasKind(d.node, Class) {
						todo = append(todo, d.node)
					}
				}
			}
			if n.Kind == Call || n.Kind == New {
				from |= j.callOrigin(c)
			}
			if n.Kind == Array && j.spellsText(c) {
				from |= fromDecoded
			}
		}
	}
	return from
}

// callOrigin returns the origin of a call's result.
func (j *treeJudge) callOrigin(i int32) (from valueOrigin) {
	for _, path := range j.possiblePaths(j.nthChild(i, 0)) {
		switch {
		case slices.Contains(
			decoderFunctions, path,
		), strings.HasSuffix(path, ".fromhex"), strings.HasPrefix(path, "@base64."), strings.HasPrefix(path, "@zlib."),
			strings.HasSuffix(path, ".fromCharCode"), strings.HasSuffix(path, ".fromCodePoint"), strings.HasPrefix(path, "@codecs."):
			from |= fromDecoded
		case path == "Buffer.from" && len(j.childList(i)) == 3:
			from |= fromDecoded
		case j.toolPath(path) != "", strings.HasPrefix(path, "@fs.read"), path == "open", path == "read_file", strings.HasPrefix(path, "fetch"),
			strings.HasPrefix(path, "@urllib.request"), strings.HasPrefix(path, "@requests"), path == "input":
			from |= fromOutside
		}
	}
	return from
}

var decoderFunctions = []string{
	"atob", "chr", "unescape", "@binascii.unhexlify", "@binascii.a2b_base64", "@marshal.loads", "@lzma.decompress",
	"@bz2.decompress", "@gzip.decompress",
}
