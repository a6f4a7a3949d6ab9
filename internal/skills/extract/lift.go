// Package extract turns a program that has run into a function: literals that look like values become parameters. It
// does no I/O and does not understand programs. The caller must check the result and can exclude parameters.
package extract

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"retort/internal/core"
)

// Param represents a literal that has become a parameter.
type Param struct {
	Name    string
	Literal string // as it was written
	Type    string // "string" or "number"
	Needed  bool   // it has no default: it was something personal
}

// Lifted represents a function with parameters.
type Lifted struct {
	Code   string
	Params []Param
}

const (
	maxParams = 12
	maxValue  = 500 // bytes of a literal
)

// sealed matches a token for a personal value, which stands for another value in each session.
var sealed = regexp.MustCompile(`\[[A-Z][A-Z0-9_]*_[0-9]+\]`)

// Program turns a program into a function named after a skill. Parameters in skip stay literals. A program that
// exports functions already is returned unchanged.
func Program(code string, lang core.Language, skill string, skip []string) (Lifted, *core.Error) {
	p := &program{code: strings.ReplaceAll(code, "\r\n", "\n"), python: lang == core.Python, skip: skip, names: map[string]bool{}}
	p.tokens = scan(p.code, p.python)
	for _, t := range p.tokens {
		if t.kind == word {
			p.names[t.text] = true
		}
	}
	if !p.python && p.exports() {
		return Lifted{Code: p.code}, nil
	}
	p.find()
	name := core.SkillIdentifier(skill, lang)
	if p.names[name] {
		name += "Skill"
		if p.python {
			name = strings.TrimSuffix(name, "Skill") + "_skill"
		}
	}
	if p.python {
		return p.snake(name), nil
	}
	return p.script(name), nil
}

// Body turns a program into a function without parameters.
func Body(code string, lang core.Language, skill string) Lifted {
	p := &program{code: strings.ReplaceAll(code, "\r\n", "\n"), python: lang == core.Python, names: map[string]bool{}}
	p.tokens = scan(p.code, p.python)
	name := core.SkillIdentifier(skill, lang)
	if p.python {
		return p.snake(name)
	}
	return p.script(name)
}

// Returns reports whether a program returns a value outside of functions.
func Returns(code string, lang core.Language) bool {
	if lang == core.Python {
		return topReturn.MatchString(code)
	}
	p := &program{code: code}
	return slices.ContainsFunc(scan(p.code, false), func(t token) bool { return t.kind == word && t.text == "return" && t.depth == 0 })
}

var topReturn = regexp.MustCompile(`(?m)^return\b`)

// program represents a program that is being turned into a function.
type program struct {
	code   string
	python bool
	tokens []token
	skip   []string
	names  map[string]bool
	params []Param
	edits  []edit
}

// edit replaces a part of the program with another text.
type edit struct {
	start, end int
	text       string
}

func (p *program) exports() bool {
	return slices.ContainsFunc(p.tokens, func(t token) bool { return t.kind == word && t.text == "export" && t.depth == 0 })
}

func (p *program) at(i int) token {
	if i < 0 || i >= len(p.tokens) {
		return token{}
	}
	return p.tokens[i]
}

// find lifts literals that are the value of a member, of a keyword argument or of a constant.
func (p *program) find() {
	for i, t := range p.tokens {
		if t.kind != text && t.kind != number || len(t.text) > maxValue || t.text == `""` || t.text == "''" || strings.Contains(t.text, "\n") || p.python && p.matches(t.start) || !p.python && p.declares(i) {
			continue
		}
		key, ends := p.at(i-2), p.at(i+1)
		switch {
		case p.at(i-1).text == ":" && t.depth > 0 && slices.Contains([]string{",", "}"}, ends.text) && slices.Contains([]string{",", "{"}, p.at(i-3).text),
			p.python && p.at(i-1).text == "=" && t.depth > 0 && slices.Contains([]string{",", ")"}, ends.text) && slices.Contains([]string{",", "("}, p.at(i-3).text):
			p.lift(key, t, edit{start: t.start, end: t.end})
		case p.at(i-1).text == "=" && t.depth == 0 && (ends.text == ";" || ends.text == "" || p.newline(t.end, ends.start)):
			p.constant(i, key, t)
		}
	}
}

// matches reports whether a position is in a pattern, where a name would match anything.
func (p *program) matches(at int) bool {
	line := p.code[strings.LastIndexByte(p.code[:at], '\n')+1 : at]
	return strings.HasPrefix(strings.TrimSpace(line), "case ")
}

// declares reports whether a token is in the declaration of a type.
func (p *program) declares(i int) bool {
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

func (p *program) newline(from, to int) bool {
	return to >= from && strings.Contains(p.code[from:to], "\n")
}

// constant lifts the value of a constant and removes its declaration.
func (p *program) constant(i int, key, value token) {
	from := key.start
	if p.python {
		if key.start > 0 && p.code[key.start-1] != '\n' {
			return
		}
	} else if p.at(i-3).text != "const" {
		return
	} else {
		from = p.at(i - 3).start
	}
	to := value.end
	if p.at(i+1).text == ";" {
		to = p.at(i + 1).end
	}
	if key.kind != word || slices.Contains(p.skip, key.text) || p.python && p.assigned(key.text) > 1 || key.text == "result" {
		return
	}
	if p.add(key.text, value, "") != "" {
		p.edits = append(p.edits, edit{from, to, ""})
	}
}

// assigned counts the assignments to a name.
func (p *program) assigned(name string) (n int) {
	for i, t := range p.tokens {
		if t.text == name && strings.HasSuffix(p.at(i+1).text, "=") && p.at(i+1).text != "==" {
			n++
		}
	}
	return n
}

func (p *program) lift(key, value token, e edit) {
	name := strings.Trim(key.text, `"'`)
	if key.kind != word && key.kind != text || !identifier.MatchString(name) || keywords[name] {
		return
	}
	if p.python {
		name = snake(name)
	}
	if e.text = p.add(name, value, "value"); e.text != "" {
		p.edits = append(p.edits, e)
	}
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

func snake(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "${1}_${2}")) }

// add makes a parameter of a literal, or returns the one that it already is. other is prefixed to a name that means
// something else in the program. add returns the parameter's name, or "" if the literal stays.
func (p *program) add(name string, value token, other string) string {
	base := name
	for n := 2; ; n++ {
		i := slices.IndexFunc(p.params, func(q Param) bool { return q.Name == name })
		switch {
		case i >= 0 && p.params[i].Literal == value.text && other != "":
			return name
		case i < 0 && (other == "" || !p.means(name)):
			if len(p.params) >= maxParams || slices.Contains(p.skip, name) {
				return ""
			}
			q := Param{Name: name, Literal: value.text, Type: "string", Needed: sealed.MatchString(value.text)}
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

// means reports whether a name is used for something other than a member.
func (p *program) means(name string) bool {
	for i, t := range p.tokens {
		if t.kind != word || t.text != name {
			continue
		}
		if next, before := p.at(i+1).text, p.at(i-1).text; before != "." && !(next == ":" && (before == "," || before == "{")) && !(p.python && next == "=" && t.depth > 0) {
			return true
		}
	}
	return false
}

// edited returns the part of the program between two positions with its edits.
func (p *program) edited(from, to int) string {
	slices.SortFunc(p.edits, func(a, b edit) int { return a.start - b.start })
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

// signature returns the parameters, those without a default first.
func (p *program) signature() string {
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
