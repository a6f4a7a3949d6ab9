package cel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// The functions and macros that are known. A function may also be called on its
// first argument where it is one of methods.
var (
	functions = []string{"has", "size", "matches", "int", "double", "string"}
	methods   = []string{"startsWith", "endsWith", "contains", "matches", "size", "all", "exists", "exists_one", "filter", "map"}
)

func unknownFunction(name token, known []string) error {
	return &Error{At: name.at, Message: fmt.Sprintf("there is no function %s", name.text), Hint: did(name.text, known)}
}

func wrongCount(name token, what string) error {
	return &Error{At: name.at, Message: name.text + " takes " + what}
}

// function reads the arguments of a call that stands alone.
func (p *parser) function(name token) (part, error) {
	if !slices.Contains(functions, name.text) {
		return part{}, unknownFunction(name, functions)
	}
	args, err := p.list(")")
	if err != nil {
		return part{}, err
	}
	if name.text == "matches" {
		if len(args) != 2 {
			return part{}, wrongCount(name, "a text and a pattern")
		}
		return p.pattern(args[0], name, args[1])
	}
	if len(args) != 1 {
		return part{}, wrongCount(name, "one argument")
	}
	if name.text != "has" {
		return part{eval: call1(name.text, args[0].eval), at: name.at, noBool: true}, nil
	}
	if args[0].operand == nil {
		return part{}, &Error{At: name.at, Message: "has takes a selection", Hint: "as in has(args.amount)"}
	}
	return part{eval: hasField(args[0].operand, args[0].field), at: name.at}, nil
}

// method reads the arguments of a call on e.
func (p *parser) method(e part, name token) (part, error) {
	switch name.text {
	case "all", "exists", "exists_one", "filter", "map":
		return p.macro(e, name)
	}
	if !slices.Contains(methods, name.text) {
		return part{}, unknownFunction(name, methods)
	}
	args, err := p.list(")")
	switch {
	case err != nil:
		return part{}, err
	case name.text == "size" && len(args) == 0:
		return part{eval: call1("size", e.eval), at: e.at, noBool: true}, nil
	case name.text == "size":
		return part{}, wrongCount(name, "no argument")
	case len(args) != 1:
		return part{}, wrongCount(name, "one argument")
	case name.text == "matches":
		return p.pattern(e, name, args[0])
	}
	return part{eval: textTest(name.text, e.eval, args[0].eval), at: e.at}, nil
}

// pattern is matches. Only a pattern that is written out has a known cost.
func (p *parser) pattern(e part, name token, pattern part) (part, error) {
	if pattern.text == nil {
		return part{}, &Error{At: name.at, Message: "the pattern of matches must be written out"}
	}
	re, err := regexp.Compile(*pattern.text)
	if err != nil {
		return part{}, &Error{At: pattern.at, Message: strings.TrimPrefix(err.Error(), "error parsing regexp: ")}
	}
	return part{at: e.at, eval: func(m *machine) (any, error) {
		s, err := evalText(m, "matches", e.eval)
		if err != nil {
			return nil, err
		}
		if err := m.spend(1 + len(s)/64*(1+len(*pattern.text)/64)); err != nil {
			return nil, err
		}
		return re.MatchString(s), nil
	}}, nil
}

// macro reads a variable and expressions in which it is known.
func (p *parser) macro(e part, name token) (part, error) {
	variable := p.peek()
	if variable.kind != nameToken || slices.Contains(keywords, variable.text) || slices.Contains(reserved, variable.text) {
		return part{}, unexpected(variable, "expected a name for the items")
	}
	p.next++
	if err := p.want(","); err != nil {
		return part{}, err
	}
	p.scope = append(p.scope, variable.text)
	bodies, err := p.list(")")
	p.scope = p.scope[:len(p.scope)-1]
	if err != nil {
		return part{}, err
	}
	if len(bodies) != 1 && (name.text != "map" || len(bodies) != 2) {
		return part{}, wrongCount(name, "a name and an expression")
	}
	over := iteration{items: e.eval, variable: variable.text, body: bodies[0].eval}
	switch name.text {
	case "all", "exists":
		return part{eval: over.quantified(name.text == "all"), at: e.at}, nil
	case "exists_one":
		return part{eval: over.one, at: e.at}, nil
	case "filter":
		return part{eval: over.mapped(over.body, nil), at: e.at, noBool: true}, nil
	}
	if len(bodies) == 2 {
		return part{eval: over.mapped(over.body, bodies[1].eval), at: e.at, noBool: true}, nil
	}
	return part{eval: over.mapped(nil, over.body), at: e.at, noBool: true}, nil
}
