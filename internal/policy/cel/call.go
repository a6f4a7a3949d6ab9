package cel

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Conditions can call these functions, methods and macros. The methods include macros such as all. A method is called
// on its first argument, as in name.startsWith('a').
var (
	functions = []string{"has", "size", "matches", "int", "double", "string"}
	methods   = []string{"startsWith", "endsWith", "contains", "matches", "size", "all", "exists", "exists_one", "filter", "map"}
)

func unknownFunction(name exprToken, known []string) error {
	return &Error{At: name.at, Message: fmt.Sprintf("there is no function %s", name.text), Hint: didYouMean(name.text, known)}
}

func wrongCount(name exprToken, what string) error {
	return &Error{At: name.at, Message: name.text + " takes " + what}
}

// parseFunction parses the arguments of a function call such as size(x), which has no receiver.
func (p *exprParser) parseFunction(name exprToken) (exprPart, error) {
	if !slices.Contains(functions, name.text) {
		return exprPart{}, unknownFunction(name, functions)
	}
	args, err := p.parseList(")")
	if err != nil {
		return exprPart{}, err
	}
	if name.text == "matches" {
		if len(args) != 2 {
			return exprPart{}, wrongCount(name, "a text and a pattern")
		}
		return p.parsePattern(args[0], name, args[1])
	}
	if len(args) != 1 {
		return exprPart{}, wrongCount(name, "one argument")
	}
	if name.text != "has" {
		return exprPart{eval: unaryCall(name.text, args[0].eval), at: name.at, noBool: true}, nil
	}
	if args[0].operand == nil {
		return exprPart{}, &Error{At: name.at, Message: "has needs a selection", Hint: "as in has(args.amount)"}
	}
	return exprPart{eval: hasField(args[0].operand, args[0].field), at: name.at}, nil
}

// parseMethod parses the arguments of a method or macro that is called on e.
func (p *exprParser) parseMethod(e exprPart, name exprToken) (exprPart, error) {
	switch name.text {
	case "all", "exists", "exists_one", "filter", "map":
		return p.parseMacro(e, name)
	}
	if !slices.Contains(methods, name.text) {
		return exprPart{}, unknownFunction(name, methods)
	}
	args, err := p.parseList(")")
	switch {
	case err != nil:
		return exprPart{}, err
	case name.text == "size" && len(args) == 0:
		return exprPart{eval: unaryCall("size", e.eval), at: e.at, noBool: true}, nil
	case name.text == "size":
		return exprPart{}, wrongCount(name, "no argument")
	case len(args) != 1:
		return exprPart{}, wrongCount(name, "one argument")
	case name.text == "matches":
		return p.parsePattern(e, name, args[0])
	}
	return exprPart{eval: textTest(name.text, e.eval, args[0].eval), at: e.at}, nil
}

// parsePattern parses a call of matches. The pattern must be a literal, because the cost of a computed pattern could
// not be bounded.
func (p *exprParser) parsePattern(e exprPart, name exprToken, pattern exprPart) (exprPart, error) {
	if pattern.text == nil {
		return exprPart{}, &Error{At: name.at, Message: "the pattern of matches must be a literal string"}
	}
	re, err := regexp.Compile(*pattern.text)
	if err != nil {
		return exprPart{}, &Error{At: pattern.at, Message: strings.TrimPrefix(err.Error(), "error parsing regexp: ")}
	}
	return exprPart{at: e.at, eval: func(m *evalMachine) (any, error) {
		s, err := evalText(m, "matches", e.eval)
		if err != nil {
			return nil, err
		}
		if err := m.spendSteps(1 + len(s)/64*(1+len(*pattern.text)/64)); err != nil {
			return nil, err
		}
		return re.MatchString(s), nil
	}}, nil
}

// parseMacro parses a macro such as all(x, x > 0): the name of its variable, and the expressions that use it.
func (p *exprParser) parseMacro(e exprPart, name exprToken) (exprPart, error) {
	variable := p.peekToken()
	if variable.kind != nameToken || slices.Contains(keywords, variable.text) || slices.Contains(reserved, variable.text) {
		return exprPart{}, unexpectedToken(variable, "expected a name for the items")
	}
	p.next++
	if err := p.expectSign(","); err != nil {
		return exprPart{}, err
	}
	p.scope = append(p.scope, variable.text)
	bodies, err := p.parseList(")")
	p.scope = p.scope[:len(p.scope)-1]
	if err != nil {
		return exprPart{}, err
	}
	if len(bodies) != 1 && (name.text != "map" || len(bodies) != 2) {
		return exprPart{}, wrongCount(name, "a name and an expression")
	}
	over := macroIteration{items: e.eval, variable: variable.text, body: bodies[0].eval}
	switch name.text {
	case "all", "exists":
		return exprPart{eval: over.quantifierNode(name.text == "all"), at: e.at}, nil
	case "exists_one":
		return exprPart{eval: over.existsOne, at: e.at}, nil
	case "filter":
		return exprPart{eval: over.mapNode(over.body, nil), at: e.at, noBool: true}, nil
	}
	if len(bodies) == 2 {
		return exprPart{eval: over.mapNode(over.body, bodies[1].eval), at: e.at, noBool: true}, nil
	}
	return exprPart{eval: over.mapNode(nil, over.body), at: e.at, noBool: true}, nil
}
