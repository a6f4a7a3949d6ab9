package cel

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parser makes nodes of tokens.
type parser struct {
	tokens    []token
	next      int
	nest      int
	variables []string
	scope     []string // variables of the macros around
	names     []string // fields and keys that were asked for
}

// part represents a piece of an expression with what the grammar has to know of it.
type part struct {
	eval    node
	at      int
	name    string // of a variable
	text    *string
	operand node   // of a selection
	field   string // of a selection
	noBool  bool   // it is never true or false
}

func (p *parser) peek() token { return p.tokens[p.next] }

// accept takes the next token if it is one of these signs.
func (p *parser) accept(signs ...string) (token, bool) {
	t := p.peek()
	if t.kind != signToken || !slices.Contains(signs, t.text) {
		return t, false
	}
	p.next++
	return t, true
}

func (p *parser) want(sign string) error {
	if t, ok := p.accept(sign); !ok {
		return unexpected(t, "expected "+sign)
	}
	return nil
}

func unexpected(t token, what string) *Error {
	found := strconv.Quote(t.text)
	if t.kind == endToken {
		found = "the end"
	}
	return &Error{At: t.at, Message: what + ", found " + found}
}

// whole returns an expression that is true or false, and nothing after it.
func (p *parser) whole() (part, error) {
	e, err := p.expression()
	if err != nil {
		return part{}, err
	}
	if t := p.peek(); t.kind != endToken {
		return part{}, unexpected(t, "expected an operator")
	}
	if e.noBool {
		return part{}, &Error{At: e.at, Message: "this is not true or false", Hint: "compare it, as in args.amount < 1000"}
	}
	return e, nil
}

func (p *parser) expression() (part, error) {
	if p.nest++; p.nest > maxNest {
		return part{}, &Error{At: p.peek().at, Message: "the condition is nested too deep"}
	}
	defer func() { p.nest-- }()
	test, err := p.either()
	if err != nil {
		return part{}, err
	}
	if _, ok := p.accept("?"); !ok {
		return test, nil
	}
	yes, err := p.either()
	if err != nil {
		return part{}, err
	}
	if err := p.want(":"); err != nil {
		return part{}, err
	}
	no, err := p.expression()
	return part{eval: choose(test.eval, yes.eval, no.eval), at: test.at, noBool: yes.noBool && no.noBool}, err
}

// binary reads operands of the next tighter level with these signs between.
func (p *parser) binary(tighter func() (part, error), noBool bool, join func(sign string, a, b node) node, signs ...string) (part, error) {
	left, err := tighter()
	for err == nil {
		t, ok := p.accept(signs...)
		if !ok {
			if t.kind != nameToken || t.text != "in" || !slices.Contains(signs, "in") {
				return left, nil
			}
			p.next++
			p.note(left)
		}
		var right part
		right, err = tighter()
		left = part{eval: join(t.text, left.eval, right.eval), at: left.at, noBool: noBool}
	}
	return part{}, err
}

// note keeps a written key, which the condition asks for.
func (p *parser) note(key part) {
	if key.text != nil {
		p.names = append(p.names, *key.text)
	}
}

func (p *parser) either() (part, error) { return p.binary(p.both, false, logic, "||") }
func (p *parser) both() (part, error)   { return p.binary(p.relation, false, logic, "&&") }
func (p *parser) relation() (part, error) {
	return p.binary(p.sum, false, relate, "==", "!=", "<=", ">=", "<", ">", "in")
}
func (p *parser) sum() (part, error)     { return p.binary(p.product, true, arithmetic, "+", "-") }
func (p *parser) product() (part, error) { return p.binary(p.unary, true, arithmetic, "*", "/", "%") }

// unary reads any number of ! or of -.
func (p *parser) unary() (part, error) {
	first, ok := p.accept("!", "-")
	if !ok {
		return p.member()
	}
	count := 1
	for ; count < maxNest; count++ {
		if _, more := p.accept(first.text); !more {
			break
		}
	}
	if first.text == "-" && p.peek().kind == numberToken { // the sign is the number's: the least integer has no positive
		p.tokens[p.next].text = "-" + p.peek().text
		count--
	}
	e, err := p.member()
	for range count {
		e = part{eval: negate(first.text, e.eval), noBool: first.text == "-"}
	}
	e.at = first.at
	return e, err
}

// member reads a value with what is selected from it and called on it.
func (p *parser) member() (part, error) {
	e, err := p.primary()
	for err == nil {
		if t, ok := p.accept(".", "["); !ok {
			return e, nil
		} else if t.text == "[" {
			e, err = p.index(e)
			continue
		}
		name := p.peek()
		if name.kind != nameToken || slices.Contains(keywords, name.text) {
			return part{}, unexpected(name, "expected a field's name")
		}
		p.next++
		if _, called := p.accept("("); called {
			e, err = p.method(e, name)
			continue
		}
		p.names = append(p.names, name.text)
		e = part{eval: selectField(e.eval, name.text), at: e.at, operand: e.eval, field: name.text}
	}
	return part{}, err
}

func (p *parser) index(e part) (part, error) {
	key, err := p.expression()
	if err != nil {
		return part{}, err
	}
	p.note(key)
	return part{eval: indexed(e.eval, key.eval), at: e.at}, p.want("]")
}

var (
	keywords = []string{"in", "true", "false", "null"}
	reserved = []string{"as", "break", "const", "continue", "else", "for", "function", "if", "import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}
)

func (p *parser) primary() (part, error) {
	t := p.peek()
	p.next = min(p.next+1, len(p.tokens)-1)
	switch {
	case t.kind == numberToken:
		return number(t)
	case t.kind == textToken:
		return part{eval: constant(t.text), at: t.at, text: &t.text, noBool: true}, nil
	case t.kind == nameToken:
		return p.named(t)
	case t.kind == signToken && t.text == "(":
		e, err := p.expression()
		if err != nil {
			return part{}, err
		}
		return part{eval: e.eval, at: t.at, noBool: e.noBool}, p.want(")")
	case t.kind == signToken && t.text == "[":
		items, err := p.list("]")
		return part{eval: makeList(items), at: t.at, noBool: true}, err
	}
	return part{}, unexpected(t, "expected a value")
}

func (p *parser) named(t token) (part, error) {
	switch {
	case t.text == "true" || t.text == "false":
		return part{eval: constant(t.text == "true"), at: t.at}, nil
	case t.text == "null":
		return part{eval: constant(nil), at: t.at, noBool: true}, nil
	case slices.Contains(reserved, t.text) || t.text == "in":
		return part{}, &Error{At: t.at, Message: fmt.Sprintf("%s is a reserved word", t.text)}
	}
	if _, called := p.accept("("); called {
		return p.function(t)
	}
	if !slices.Contains(p.scope, t.text) && !slices.Contains(p.variables, t.text) {
		return part{}, &Error{At: t.at, Message: fmt.Sprintf("there is no %s", t.text), Hint: did(t.text, p.variables)}
	}
	return part{eval: variable(t.text), at: t.at, name: t.text}, nil
}

func number(t token) (part, error) {
	digits := strings.TrimPrefix(t.text, "-")
	sign, base := t.text[:len(t.text)-len(digits)], 10
	if hex := strings.TrimPrefix(digits, "0x"); len(hex) < len(digits) {
		digits, base = hex, 16
	}
	if base == 10 && strings.ContainsAny(digits, ".eE") {
		v, err := strconv.ParseFloat(t.text, 64)
		if err != nil {
			return part{}, &Error{At: t.at, Message: "the number is too large"}
		}
		return part{eval: constant(v), at: t.at, noBool: true}, nil
	}
	v, err := strconv.ParseInt(sign+digits, base, 64)
	if err != nil {
		return part{}, &Error{At: t.at, Message: "this is no integer of 64 bits"}
	}
	return part{eval: constant(v), at: t.at, noBool: true}, nil
}

// list reads expressions up to a closing sign.
func (p *parser) list(closing string) ([]part, error) {
	var items []part
	for {
		if _, done := p.accept(closing); done {
			return items, nil
		}
		if len(items) > 0 {
			if err := p.want(","); err != nil {
				return nil, err
			}
			if _, done := p.accept(closing); done && closing == "]" {
				return items, nil
			}
		}
		e, err := p.expression()
		if err != nil {
			return nil, err
		}
		items = append(items, e)
	}
}
