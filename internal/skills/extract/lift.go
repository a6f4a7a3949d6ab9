// Package extract converts a program that has run to a function of a skill. Literals that look like input values
// become parameters. The package does no I/O. It works only on tokens, without a parser, so the caller must check the
// result. The caller can exclude parameters.
package extract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"retort/internal/core"
)

// LiteralParam describes a parameter that was a literal in the program.
type LiteralParam struct {
	Name    string
	Literal string // literal as written in the program
	Type    string // type of the parameter: "string" or "number"
	Needed  bool   // whether callers must pass the parameter; it has no default if its literal was personal
}

// ExtractedFunction holds the code of a function and its parameters.
type ExtractedFunction struct {
	Code   string
	Params []LiteralParam
}

const (
	maxParams = 12
	maxValue  = 500 // maximum length of a literal, in bytes
)

// sealedToken matches a privacy token, which stands for a personal value. An example is [EMAIL_1]. The same token
// stands for different values in different sessions.
var sealedToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[[A-Z][A-Z0-9_]*_[0-9]+\]`)
})

// FromProgram converts a program to a function with the name of the skill. It creates no parameters whose names are in
// skip; their literals stay in the code. A TypeScript program that already exports something is not changed.
func FromProgram(code string, lang core.Language, skill string, skip []string) (ExtractedFunction, *core.Error) {
	p := &sourceProgram{code: strings.ReplaceAll(code, "\r\n", "\n"), python: lang == core.Python, skip: skip, names: map[string]bool{}}
	p.tokens = scanTokens(p.code, p.python)
	for _, t := range p.tokens {
		if t.kind == word {
			p.names[t.text] = true
		}
	}
	if !p.python && p.hasExports() {
		return ExtractedFunction{Code: p.code}, nil
	}
	p.findLiterals()
	name := core.SkillIdentifier(skill, lang)
	if p.names[name] {
		name += "Skill"
		if p.python {
			name = strings.TrimSuffix(name, "Skill") + "_skill"
		}
	}
	if p.python {
		return p.toPythonFunction(name), nil
	}
	return p.toFunction(name), nil
}

// WrapBody converts a program to a function that has no parameters.
func WrapBody(code string, lang core.Language, skill string) ExtractedFunction {
	p := &sourceProgram{code: strings.ReplaceAll(code, "\r\n", "\n"), python: lang == core.Python, names: map[string]bool{}}
	p.tokens = scanTokens(p.code, p.python)
	name := core.SkillIdentifier(skill, lang)
	if p.python {
		return p.toPythonFunction(name)
	}
	return p.toFunction(name)
}

// HasReturn reports whether a program has a return statement outside of functions.
func HasReturn(code string, lang core.Language) bool {
	if lang == core.Python {
		return topReturn().MatchString(code)
	}
	p := &sourceProgram{code: code}
	return slices.ContainsFunc(
		scanTokens(p.code, false),
		func(t sourceToken) bool { return t.kind == word && t.text == "return" && t.depth == 0 },
	)
}

var topReturn = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?m)^return\b`)
})

// sourceProgram holds a program that is being converted to a function.
type sourceProgram struct {
	code   string
	python bool
	tokens []sourceToken
	skip   []string
	names  map[string]bool
	params []LiteralParam
	edits  []textEdit
}

// textEdit replaces a part of the program by a text.
type textEdit struct {
	start, end int
	text       string
}

func (p *sourceProgram) hasExports() bool {
	return slices.ContainsFunc(p.tokens, func(t sourceToken) bool { return t.kind == word && t.text == "export" && t.depth == 0 })
}

func (p *sourceProgram) tokenAt(i int) sourceToken {
	if i < 0 || i >= len(p.tokens) {
		return sourceToken{}
	}
	return p.tokens[i]
}

// findLiterals converts literals to parameters if they are the value of an object member, a keyword argument or a
// constant.
func (p *sourceProgram) findLiterals() {
	for i, t := range p.tokens {
		if t.kind != text && t.kind != number || len(t.text) > maxValue || t.text == `""` || t.text == "''" || strings.Contains(t.text, "\n") ||
			p.python && p.isInPattern(t.start) ||
			!p.python && p.isTypeDeclaration(i) {
			continue
		}
		key, ends := p.tokenAt(i-2), p.tokenAt(i+1)
		switch {
		case p.tokenAt(i-1).text == ":" && t.depth > 0 && slices.Contains([]string{",", "}"}, ends.text) &&
			slices.Contains([]string{",", "{"}, p.tokenAt(i-3).text),
			p.python && p.tokenAt(i-1).text == "=" && t.depth > 0 && slices.Contains([]string{",", ")"}, ends.text) &&
				slices.Contains([]string{",", "("}, p.tokenAt(i-3).text):
			p.liftLiteral(key, t, textEdit{start: t.start, end: t.end})
		case p.tokenAt(i-1).text == "=" && t.depth == 0 && (ends.text == ";" || ends.text == "" || p.hasNewline(t.end, ends.start)):
			p.liftConstant(i, key, t)
		}
	}
}

// isInPattern reports whether an offset is in a pattern of a Python match statement. A literal there must not become a
// parameter, because a name as a pattern matches every value.
func (p *sourceProgram) isInPattern(at int) bool {
	line := p.code[strings.LastIndexByte(p.code[:at], '\n')+1 : at]
	return strings.HasPrefix(strings.TrimSpace(line), "case ")
}

// isTypeDeclaration reports whether a token is part of a type declaration.
func (p *sourceProgram) isTypeDeclaration(i int) bool {
	for i--; i >= 0; i-- {
		switch t := p.tokens[i]; {
		case t.depth > 0:
		case t.text == ";":
			return false
		case t.kind == word && (t.text == "type" || t.text == "interface"):
			return true
		}
	}
	return false
}

func (p *sourceProgram) hasNewline(from, to int) bool {
	return to >= from && strings.Contains(p.code[from:to], "\n")
}

// liftConstant converts a constant to a parameter of the function and removes the constant's declaration.
func (p *sourceProgram) liftConstant(i int, key, value sourceToken) {
	from := key.start
	if p.python {
		if key.start > 0 && p.code[key.start-1] != '\n' {
			return
		}
	} else if p.tokenAt(i-3).text != "const" {
		return
	} else {
		from = p.tokenAt(i - 3).start
	}
	to := value.end
	if p.tokenAt(i+1).text == ";" {
		to = p.tokenAt(i + 1).end
	}
	if key.kind != word || slices.Contains(p.skip, key.text) || p.python && p.assignmentCount(key.text) > 1 || key.text == "result" {
		return
	}
	if p.addParam(key.text, value, "") != "" {
		p.edits = append(p.edits, textEdit{from, to, ""})
	}
}

// assignmentCount counts the assignments to a name.
func (p *sourceProgram) assignmentCount(name string) (n int) {
	for i, t := range p.tokens {
		if t.text == name && strings.HasSuffix(p.tokenAt(i+1).text, "=") && p.tokenAt(i+1).text != "==" {
			n++
		}
	}
	return n
}

func (p *sourceProgram) liftLiteral(key, value sourceToken, e textEdit) {
	name := strings.Trim(key.text, `"'`)
	if key.kind != word && key.kind != text || !identifier().MatchString(name) || reservedNames[name] {
		return
	}
	if p.python {
		name = snakeCase(name)
	}
	if e.text = p.addParam(name, value, "value"); e.text != "" {
		p.edits = append(p.edits, e)
	}
}

var identifier = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
})

var capital = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([a-z0-9])([A-Z])`)
})

func snakeCase(name string) string {
	return strings.ToLower(capital().ReplaceAllString(name, "${1}_${2}"))
}

// addParam makes a literal a parameter of the function and returns the parameter's name. It returns "" if the literal
// must stay in the code, for example because the name is taken. If other is not empty, a name that is taken gets a
// number instead, and equal literals with the same name share a parameter.
func (p *sourceProgram) addParam(name string, value sourceToken, other string) string {
	base := name
	for n := 2; ; n++ {
		i := slices.IndexFunc(p.params, func(q LiteralParam) bool { return q.Name == name })
		switch {
		case i >= 0 && p.params[i].Literal == value.text && other != "":
			return name
		case i < 0 && (other == "" || !p.isUsedName(name)):
			if len(p.params) >= maxParams || slices.Contains(p.skip, name) {
				return ""
			}
			q := LiteralParam{Name: name, Literal: value.text, Type: "string", Needed: sealedToken().MatchString(value.text)}
			if value.kind == number {
				q.Type = "number"
			}
			p.params = append(p.params, q)
			return name
		case other == "":
			return ""
		}
		name = fmt.Sprintf("%s%d", base, n)
	}
}

// isUsedName reports whether the program already uses a name, for example for a variable. Names of object members and
// of keyword arguments do not count.
func (p *sourceProgram) isUsedName(name string) bool {
	for i, t := range p.tokens {
		if t.kind != word || t.text != name {
			continue
		}
		if next, before := p.tokenAt(i+1).text, p.tokenAt(i-1).text; before != "." && !(next == ":" && (before == "," || before == "{")) &&
			!(p.python && next == "=" && t.depth > 0) {
			return true
		}
	}
	return false
}

// editedText returns the part of the program between two offsets, with the edits applied.
func (p *sourceProgram) editedText(from, to int) string {
	slices.SortFunc(p.edits, func(a, b textEdit) int { return a.start - b.start })
	var b strings.Builder
	for _, e := range p.edits {
		if e.start < from || e.end > to {
			continue
		}
		b.WriteString(p.code[from:e.start] + e.text)
		from = e.end
	}
	return b.String() + p.code[from:to]
}

// paramList returns the parameter list of the function. Parameters without a default come first.
func (p *sourceProgram) paramList() string {
	types, assign := map[string]string{"string": "string", "number": "number"}, " = "
	if p.python {
		types = map[string]string{"string": "str", "number": "float"}
	}
	var all []string
	for _, needed := range []bool{true, false} {
		for _, q := range p.params {
			if q.Needed != needed {
				continue
			}
			kind := types[q.Type]
			if p.python && q.Type == "number" && !strings.ContainsAny(q.Literal, ".eE") {
				kind = "int"
			}
			one := q.Name + ": " + kind
			if !needed {
				one += assign + q.Literal
			}
			all = append(all, one)
		}
	}
	return strings.Join(all, ", ")
}
