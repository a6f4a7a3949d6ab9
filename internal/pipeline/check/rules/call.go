package rules

import (
	"slices"
	"strings"
)

// call judges a call and its arguments.
func (j *judge) call(i int32) {
	callee := j.child(i, 0)
	if callee < 0 {
		return
	}
	args := j.list(i)[1:]
	paths := j.path(callee)
	if len(paths) == 0 || strings.HasPrefix(paths[0], "?") {
		j.anyCall(args)
	}
	for _, path := range paths {
		j.callOf(i, path, args)
		j.bound(i, path, args)
	}
	if j.is(callee, Member) {
		j.method(i, callee, args)
	}
}

// bound judges calls that bind some arguments of a function.
func (j *judge) bound(i int32, path string, args []int32) {
	if len(args) < 2 {
		return
	}
	if function, ok := strings.CutSuffix(path, ".bind"); ok {
		j.callOf(i, function, args[1:])
	}
	if path == "@functools.partial" {
		for _, function := range j.path(args[0]) {
			j.callOf(i, function, args[1:])
		}
	}
}

// callOf judges a call of the function that a path stands for.
func (j *judge) callOf(i int32, path string, args []int32) {
	path = strings.TrimSuffix(strings.TrimSuffix(path, ".call"), ".apply")
	if d, ok := lookup(j.Language, path); ok && j.isBound(j.child(i, 0)) && (d.rule == "code.eval" || d.rule == "code.function") {
		j.run(i, d.rule, path)
	}
	j.indirect(i, path, args)
	j.replacing(i, path, args)
	j.fileCall(i, path, args)
	j.toolCall(path, args)
	j.wholeGlobal(path, args)
	if slices.Contains(importers, path) && len(args) > 0 {
		if name, ok := j.text(args[0]); ok {
			j.hidden(args[0], name)
			j.fromAddress(args[0], name)
		}
	}
}

// isBound reports whether a node is a variable of the program.
func (j *judge) isBound(i int32) bool { return j.is(i, Name) && j.Nodes[i].Bind > 0 }

// method judges calls of methods that are dangerous on any object.
func (j *judge) method(i, callee int32, args []int32) {
	switch name := j.Nodes[callee].Text; name {
	case "insertAdjacentHTML", "createContextualFragment":
		if j.Language == Script {
			j.find("dom.sink", callee, name)
		}
	case "get_field":
		if len(args) > 0 && j.Language == Python {
			if s, ok := j.text(args[0]); ok {
				j.format(i, "{"+s+"}")
			}
		}
	case "format", "format_map":
		for _, from := range slices.Concat([]int32{j.child(callee, 0)}, args[:min(1, len(args))]) {
			if s, ok := j.text(from); ok && j.Language == Python {
				j.format(i, s)
			}
		}
	}
}

// fromAddress finds modules that are imported from a URL.
func (j *judge) fromAddress(i int32, module string) {
	for _, scheme := range []string{"data:", "http:", "https:", "blob:", "file:"} {
		if strings.HasPrefix(module, scheme) && j.Language == Script {
			j.find("code.import", i, scheme)
		}
	}
}

// wholeGlobal finds calls that get the whole global object.
func (j *judge) wholeGlobal(path string, args []int32) {
	if slices.Contains([]string{"call", "apply", "bind"}, last(path)) || slices.Contains([]string{"getattr", "setattr", "hasattr", "delattr", "Reflect.has", "isinstance"}, path) {
		return
	}
	for _, arg := range args {
		if slices.Contains(j.path(arg), globalObject) {
			j.find("code.computed", arg, path)
		}
	}
}

var formatWalk = lazily(`\{[^{}]*(\.__\w+__|\[__\w+__\])`)

// format finds format strings that walk attributes.
func (j *judge) format(i int32, s string) {
	if m := formatWalk().FindString(s); m != "" {
		j.find("dunder.format", i, m)
	}
}

// indirect finds disguised calls of other functions.
func (j *judge) indirect(i int32, path string, args []int32) {
	switch {
	case path == "setTimeout", path == "setInterval", path == "setImmediate":
		if len(args) > 0 && j.isText(args[0]) {
			j.run(i, "code.eval", path)
		}
	case strings.HasSuffix(path, ".constructor") && j.Language == Script && len(args) > 0 && j.isCode(args[len(args)-1]):
		j.find("code.constructor", i, path)
	case path == "getattr" || path == "setattr" || path == "delattr" || path == "@operator.attrgetter" || path == "@operator.methodcaller":
		j.attribute(i, path, args)
	case slices.Contains(readers, path) && len(args) > 1:
		j.reads(i, args)
	case path == "String.fromCharCode" || path == "String.fromCodePoint":
		j.characterCodes(i, args)
	}
}

// readers lists functions that return a member by its name.
var readers = []string{"Reflect.get", "Reflect.getOwnPropertyDescriptor", "Object.getOwnPropertyDescriptor"}

// reads judges access to a member by its name.
func (j *judge) reads(i int32, args []int32) {
	name, ok := j.text(args[1])
	if !ok {
		return
	}
	j.hidden(args[1], name)
	switch name {
	case "constructor":
		j.find("code.constructor", i, name)
	case "__proto__":
		j.find("proto.walk", i, name)
	}
}

// isText reports whether an expression is certainly a string.
func (j *judge) isText(i int32) bool {
	i = j.only(i)
	_, constant := j.text(i)
	return constant || j.is(i, Template) || j.is(i, Binary) && j.Nodes[i].Text == "+"
}

var codeLike = lazily(`[;({=]|\breturn\b|\bthis\b`)

// isCode reports whether an expression is a string that contains JavaScript.
func (j *judge) isCode(i int32) bool {
	s, ok := j.text(i)
	return ok && codeLike().MatchString(s) || !ok && j.is(j.only(i), Template)
}

// attribute judges getattr and similar functions.
func (j *judge) attribute(i int32, path string, args []int32) {
	at := 1
	if strings.HasPrefix(path, "@operator.") {
		at = 0
	}
	if len(args) <= at {
		return
	}
	object := args[0]
	name, constant := j.text(args[at])
	if !constant {
		j.computed(i, object, "[?]")
		return
	}
	j.hidden(args[at], name)
	for _, part := range strings.Split(name, ".") {
		if at == 0 {
			object = -1
		}
		j.dunder(i, object, part)
	}
	if path == "setattr" {
		for _, owner := range j.path(object) {
			if owner == globalObject || slices.Contains(builtinObjects, owner) {
				j.find("proto.builtin", i, name)
			}
		}
	}
}

// replacing finds calls that change what every object has.
func (j *judge) replacing(i int32, path string, args []int32) {
	switch path {
	case "Object.defineProperty", "Object.defineProperties", "Object.assign", "Object.setPrototypeOf", "Reflect.set", "Reflect.setPrototypeOf", "Reflect.defineProperty":
	case "JSON.parse":
		if len(args) > 0 {
			if s, ok := j.text(args[0]); ok && strings.Contains(s, `"__proto__"`) {
				j.find("proto.pollute", i, "__proto__")
			}
		}
		return
	default:
		return
	}
	if len(args) == 0 {
		return
	}
	for _, owner := range j.path(args[0]) {
		name, isPrototype := strings.CutSuffix(owner, ".prototype")
		switch {
		case isPrototype && scriptGlobals[name], strings.HasSuffix(owner, ".__proto__"), strings.HasSuffix(owner, ".constructor.prototype"):
			j.find("proto.pollute", i, owner)
		case owner == globalObject, slices.Contains(builtinObjects, owner):
			j.find("proto.builtin", i, owner)
		}
	}
}

// run reports a place where text is run as code. The finding depends on where the text comes from.
func (j *judge) run(i int32, rule, path string) {
	call := i
	if parent := j.parents[i]; !j.is(i, Call, New) && j.is(parent, Call, New) {
		call = parent
	}
	if j.Language == Python && !j.is(call, Call) && j.is(i, Name) && j.is(j.parents[i], Property) {
		call = -1
	}
	var from origin
	if j.is(call, Call, New) {
		for _, arg := range j.list(call)[1:] {
			from |= j.origin(arg)
		}
	}
	switch {
	case from&fromDecoded != 0:
		j.find("code.decoded", i, path)
	case from&fromOutside != 0:
		j.find("code.fetched", i, path)
	default:
		j.find(rule, i, path)
	}
}

// origin classifies where a value comes from.
type origin uint8

const (
	fromDecoded origin = 1 << iota // it was decoded from something unreadable
	fromOutside                    // a tool, a file or the network gave it
)

const maxFollowed = 2000 // nodes that one question of origin looks at

// origin follows an expression through variables to the origin of its values.
func (j *judge) origin(i int32) (from origin) {
	todo, left, seen := []int32{i}, maxFollowed, map[int32]bool{}
	for len(todo) > 0 && left > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for c := range j.inside(at) {
			if left--; left < 0 {
				break
			}
			n := &j.Nodes[c]
			if n.Kind == Name && n.Bind > 0 && !seen[n.Bind] {
				seen[n.Bind] = true
				for _, d := range j.defs[n.Bind] {
					if d.node >= 0 && !j.is(d.node, Class) {
						todo = append(todo, d.node)
					}
				}
			}
			if n.Kind == Call || n.Kind == New {
				from |= j.gives(c)
			}
			if n.Kind == Array && j.spells(c) {
				from |= fromDecoded
			}
		}
	}
	return from
}

// gives returns the origin of a call's result.
func (j *judge) gives(i int32) (from origin) {
	for _, path := range j.path(j.child(i, 0)) {
		switch {
		case slices.Contains(decoders, path), strings.HasSuffix(path, ".fromhex"), strings.HasPrefix(path, "@base64."), strings.HasPrefix(path, "@zlib."),
			strings.HasSuffix(path, ".fromCharCode"), strings.HasSuffix(path, ".fromCodePoint"), strings.HasPrefix(path, "@codecs."):
			from |= fromDecoded
		case path == "Buffer.from" && len(j.list(i)) == 3:
			from |= fromDecoded
		case j.toolPath(path) != "", strings.HasPrefix(path, "@fs.read"), path == "open", path == "read_file", strings.HasPrefix(path, "fetch"),
			strings.HasPrefix(path, "@urllib.request"), strings.HasPrefix(path, "@requests"), path == "input":
			from |= fromOutside
		}
	}
	return from
}

var decoders = []string{"atob", "chr", "unescape", "@binascii.unhexlify", "@binascii.a2b_base64", "@marshal.loads", "@lzma.decompress", "@bz2.decompress", "@gzip.decompress"}
