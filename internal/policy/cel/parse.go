package cel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// exprParser builds evaluation nodes from the tokens of an expression.
type exprParser struct {
	tokens    []exprToken
	next      int
	nest      int
	variables []string
	scope     []string // variables of the macros around
	names     []string // fields and keys that were asked for
}

// exprPart holds a parsed part of an expression, with the properties that the parser needs later.
type exprPart struct {
	eval    evalNode
	at      int
	name    string // of a variable
	text    *string
	operand evalNode // of a selection
	field   string   // of a selection
	noBool  bool     // it is never true or false
}

func (p *exprParser) peekToken() exprToken { return p.tokens[p.next] }

// acceptToken consumes the next token if it is one of the given operators.
func (p *exprParser) acceptToken(signs ...string) (exprToken, bool) {
	t := p.peekToken()
	if t.kind != signToken || !slices.Contains(signs, t.text) {
		return t, false
	}
	p.next++
	return t, true
}

func (p *exprParser) expectSign(sign string) error {
	if t, ok := p.acceptToken(sign); !ok {
		return unexpectedToken(t, "expected "+sign)
	}
	return nil
}

func unexpectedToken(t exprToken, what string) *Error {
	found := strconv.Quote(t.text)
	if t.kind == endToken {
		found = "the end"
	}
	return &Error{At: t.at, Message: what + ", found " + found}
}

// parseCondition parses a boolean expression and requires that nothing follows it.
func (p *exprParser) parseCondition() (exprPart, error) {
	e, err := p.parseExpression()
	if err != nil {
		return exprPart{}, err
	}
	if t := p.peekToken(); t.kind != endToken {
		return exprPart{}, unexpectedToken(t, "expected an operator")
	}
	if e.noBool {
		return exprPart{}, &Error{At: e.at, Message: "this is not true or false", Hint: "compare it, as in args.amount < 1000"}
	}
	return e, nil
}

func (p *exprParser) parseExpression() (exprPart, error) {
	if p.nest++; p.nest > maxNest {
		return exprPart{}, &Error{At: p.peekToken().at, Message: "the condition is nested too deeply"}
	}
	defer func() { p.nest-- }()
	test, err := p.parseOr()
	if err != nil {
		return exprPart{}, err
	}
	if _, ok := p.acceptToken("?"); !ok {
		return test, nil
	}
	yes, err := p.parseOr()
	if err != nil {
		return exprPart{}, err
	}
	if err := p.expectSign(":"); err != nil {
		return exprPart{}, err
	}
	no, err := p.parseExpression()
	return exprPart{eval: conditionalNode(test.eval, yes.eval, no.eval), at: test.at, noBool: yes.noBool && no.noBool}, err
}

// parseBinary parses operands of the next higher precedence that are separated by the given operators.
func (p *exprParser) parseBinary(
	tighter func() (exprPart, error), noBool bool, join func(sign string, a, b evalNode) evalNode, signs ...string,
) (exprPart, error) {
	left, err := tighter()
	for err == nil {
		t, ok := p.acceptToken(signs...)
		if !ok {
			if t.kind != nameToken || t.text != "in" || !slices.Contains(signs, "in") {
				return left, nil
			}
			p.next++
			p.noteKey(left)
		}
		var right exprPart
		right, err = tighter()
		left = exprPart{eval: join(t.text, left.eval, right.eval), at: left.at, noBool: noBool}
	}
	return exprPart{}, err
}

// noteKey adds the key of an index expression such as args["name"] to the names that the condition reads. It does
// nothing if the key is not a literal, because the name is then unknown.
func (p *exprParser) noteKey(key exprPart) {
	if key.text != nil {
		p.names = append(p.names, *key.text)
	}
}

func (p *exprParser) parseOr() (exprPart, error) {
	return p.parseBinary(p.parseAnd, false, logicNode, "||")
}
func (p *exprParser) parseAnd() (exprPart, error) {
	return p.parseBinary(p.parseRelation, false, logicNode, "&&")
}
func (p *exprParser) parseRelation() (exprPart, error) {
	return p.parseBinary(p.parseSum, false, relationNode, "==", "!=", "<=", ">=", "<", ">", "in")
}
func (p *exprParser) parseSum() (exprPart, error) {
	return p.parseBinary(p.parseProduct, true, arithmeticNode, "+", "-")
}
func (p *exprParser) parseProduct() (exprPart, error) {
	return p.parseBinary(p.parseUnary, true, arithmeticNode, "*", "/", "%")
}

// parseUnary parses a value with any number of ! or - in front of it.
func (p *exprParser) parseUnary() (exprPart, error) {
	first, ok := p.acceptToken("!", "-")
	if !ok {
		return p.parseMember()
	}
	count := 1
	for ; count < maxNest; count++ {
		if _, more := p.acceptToken(first.text); !more {
			break
		}
	}
	if first.text == "-" && p.peekToken().kind == numberToken { // the sign is the number's: the least integer has no positive
		p.tokens[p.next].text = "-" + p.peekToken().text
		count--
	}
	e, err := p.parseMember()
	for range count {
		e = exprPart{eval: negateNode(first.text, e.eval), noBool: first.text == "-"}
	}
	e.at = first.at
	return e, err
}

// parseMember parses a value with the field selections and method calls that follow it.
func (p *exprParser) parseMember() (exprPart, error) {
	e, err := p.parsePrimary()
	for err == nil {
		if t, ok := p.acceptToken(".", "["); !ok {
			return e, nil
		} else if t.text == "[" {
			e, err = p.parseIndex(e)
			continue
		}
		name := p.peekToken()
		if name.kind != nameToken || slices.Contains(keywords, name.text) {
			return exprPart{}, unexpectedToken(name, "expected a field's name")
		}
		p.next++
		if _, called := p.acceptToken("("); called {
			e, err = p.parseMethod(e, name)
			continue
		}
		p.names = append(p.names, name.text)
		e = exprPart{eval: selectField(e.eval, name.text), at: e.at, operand: e.eval, field: name.text}
	}
	return exprPart{}, err
}

func (p *exprParser) parseIndex(e exprPart) (exprPart, error) {
	key, err := p.parseExpression()
	if err != nil {
		return exprPart{}, err
	}
	p.noteKey(key)
	return exprPart{eval: indexNode(e.eval, key.eval), at: e.at}, p.expectSign("]")
}

var (
	keywords = []string{"in", "true", "false", "null"}
	reserved = []string{
		"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package",
		"namespace", "return", "var", "void", "while",
	}
)

func (p *exprParser) parsePrimary() (exprPart, error) {
	t := p.peekToken()
	p.next = min(p.next+1, len(p.tokens)-1)
	switch {
	case t.kind == numberToken:
		return parseNumber(t)
	case t.kind == textToken:
		return exprPart{eval: constantNode(t.text), at: t.at, text: &t.text, noBool: true}, nil
	case t.kind == nameToken:
		return p.parseNamed(t)
	case t.kind == signToken && t.text == "(":
		e, err := p.parseExpression()
		if err != nil {
			return exprPart{}, err
		}
		return exprPart{eval: e.eval, at: t.at, noBool: e.noBool}, p.expectSign(")")
	case t.kind == signToken && t.text == "[":
		items, err := p.parseList("]")
		return exprPart{eval: makeList(items), at: t.at, noBool: true}, err
	}
	return exprPart{}, unexpectedToken(t, "expected a value")
}

func (p *exprParser) parseNamed(t exprToken) (exprPart, error) {
	switch {
	case t.text == "true" || t.text == "false":
		return exprPart{eval: constantNode(t.text == "true"), at: t.at}, nil
	case t.text == "null":
		return exprPart{eval: constantNode(nil), at: t.at, noBool: true}, nil
	case slices.Contains(reserved, t.text) || t.text == "in":
		return exprPart{}, &Error{At: t.at, Message: fmt.Sprintf("%s is a reserved word", t.text)}
	}
	if _, called := p.acceptToken("("); called {
		return p.parseFunction(t)
	}
	if !slices.Contains(p.scope, t.text) && !slices.Contains(p.variables, t.text) {
		return exprPart{}, &Error{At: t.at, Message: fmt.Sprintf("there is no %s", t.text), Hint: didYouMean(t.text, p.variables)}
	}
	return exprPart{eval: variableNode(t.text), at: t.at, name: t.text}, nil
}

func parseNumber(t exprToken) (exprPart, error) {
	digits := strings.TrimPrefix(t.text, "-")
	sign, base := t.text[:len(t.text)-len(digits)], 10
	if hex := strings.TrimPrefix(digits, "0x"); len(hex) < len(digits) {
		digits, base = hex, 16
	}
	if base == 10 && strings.ContainsAny(digits, ".eE") {
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return exprPart{}, &Error{At: t.at, Message: "the number is too large"}
		}
		return exprPart{eval: constantNode(v), at: t.at, noBool: true}, nil
	}
	v, err := strconv.ParseInt(sign+digits, base, 64)
	if err != nil {
		return exprPart{}, &Error{At: t.at, Message: "this is not a 64-bit integer"}
	}
	return exprPart{eval: constantNode(v), at: t.at, noBool: true}, nil
}

// parseList parses expressions separated by commas, up to a closing bracket.
func (p *exprParser) parseList(closing string) ([]exprPart, error) {
	var items []exprPart
	for {
		if _, done := p.acceptToken(closing); done {
			return items, nil
		}
		if len(items) > 0 {
			if err := p.expectSign(","); err != nil {
				return nil, err
			}
			if _, done := p.acceptToken(closing); done && closing == "]" {
				return items, nil
			}
		}
		e, err := p.parseExpression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
}
