package demo

import (
	"fmt"
	"slices"
	"strings"
)

// expr is a condition that is not yet bound to a table.
type expr func(t *table) (eval, error)

// eval returns the value for a row. The value of a condition is true, false, or nil for SQL's NULL.
type eval func(row []any) any

func (p *parser) whereClause() (expr, error) {
	if !p.keyword("WHERE") {
		return nil, nil
	}
	return p.orExpr()
}

func (p *parser) orExpr() (expr, error) { return p.chain("OR", true, p.andExpr) }

func (p *parser) andExpr() (expr, error) { return p.chain("AND", false, p.notExpr) }

// chain parses operands separated by a word. One operand whose value is decides determines the whole.
func (p *parser) chain(word string, decides bool, operand func() (expr, error)) (expr, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	all := []expr{first}
	for p.keyword(word) {
		next, err := operand()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	if len(all) == 1 {
		return first, nil
	}
	return func(t *table) (eval, error) {
		evals, err := bindAll(t, all)
		return func(row []any) any { return decide(evals, row, decides) }, err
	}, nil
}

func decide(evals []eval, row []any, decides bool) any {
	var unknown bool
	for _, e := range evals {
		switch e(row) {
		case decides:
			return decides
		case nil:
			unknown = true
		}
	}
	if unknown {
		return nil
	}
	return !decides
}

func bindAll(t *table, all []expr) ([]eval, error) {
	evals := make([]eval, len(all))
	for i, x := range all {
		var err error
		if evals[i], err = x(t); err != nil {
			return nil, err
		}
	}
	return evals, nil
}

func (p *parser) notExpr() (expr, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, fmt.Errorf("the condition is nested deeper than %d levels", maxNesting)
	}
	defer func() { p.depth-- }()
	if p.keyword("NOT") {
		inner, err := p.notExpr()
		return negate(inner), err
	}
	if t := p.tokens[0]; t.kind == symbolToken && t.text == "(" {
		return inParens(p, p.orExpr)
	}
	return p.predicate()
}

func negate(inner expr) expr {
	return func(t *table) (eval, error) {
		e, err := inner(t)
		return func(row []any) any {
			if v, ok := e(row).(bool); ok {
				return !v
			}
			return nil
		}, err
	}
}

// operand parses a column or a literal.
func (p *parser) operand() (expr, error) {
	t := p.tokens[0]
	if word := strings.ToUpper(t.text); t.kind == nameToken || t.kind == wordToken && !slices.Contains([]string{"NULL", "TRUE", "FALSE"}, word) {
		name, err := p.columnName()
		return func(t *table) (eval, error) {
			i, err := t.sqlColumn(name)
			return func(row []any) any { return row[i] }, err
		}, err
	}
	v, err := p.literal()
	return func(*table) (eval, error) { return func([]any) any { return v }, nil }, err
}

// sqlColumn returns the index of a column. The error lists the existing columns.
func (t *table) sqlColumn(name string) (int, error) {
	if i := t.col(name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("column %q does not exist; %s has %s", name, t.name, strings.Join(t.colNames(), ", "))
}

var comparisons = map[string]func(order int) bool{
	"=": func(n int) bool { return n == 0 }, "<>": func(n int) bool { return n != 0 }, "!=": func(n int) bool { return n != 0 },
	"<": func(n int) bool { return n < 0 }, "<=": func(n int) bool { return n <= 0 },
	">": func(n int) bool { return n > 0 }, ">=": func(n int) bool { return n >= 0 },
}

// predicate parses a comparison of two operands, or IS, IN, BETWEEN or LIKE.
func (p *parser) predicate() (expr, error) {
	left, err := p.operand()
	if err != nil {
		return nil, err
	}
	if t := p.tokens[0]; t.kind == symbolToken && comparisons[t.text] != nil {
		p.skip()
		right, err := p.operand()
		return combine(func(v []any) any { return compared(v[0], v[1], comparisons[t.text]) }, left, right), err
	}
	if p.keyword("IS") {
		not := p.keyword("NOT")
		return combine(func(v []any) any { return (v[0] == nil) != not }, left), p.want(p.keyword("NULL"), "NULL")
	}
	not := p.keyword("NOT")
	test, err := p.rangeOrPattern(left)
	if err == nil && not {
		test = negate(test)
	}
	return test, err
}

func (p *parser) rangeOrPattern(left expr) (expr, error) {
	switch {
	case p.keyword("IN"):
		values, err := inParens(p, func() ([]any, error) { return list(p, p.literal) })
		return combine(func(v []any) any { return isIn(v[0], values) }, left), err
	case p.keyword("BETWEEN"):
		low, err := p.operand()
		if err != nil {
			return nil, err
		}
		if err := p.want(p.keyword("AND"), "AND"); err != nil {
			return nil, err
		}
		high, err := p.operand()
		atLeast := combine(func(v []any) any { return compared(v[0], v[1], comparisons[">="]) }, left, low)
		atMost := combine(func(v []any) any { return compared(v[0], v[1], comparisons["<="]) }, left, high)
		return combine(func(v []any) any { return decide([]eval{constant(v[0]), constant(v[1])}, nil, false) }, atLeast, atMost), err
	case p.keyword("LIKE"):
		return p.like(left, func(s string) string { return s })
	case p.keyword("ILIKE"):
		return p.like(left, strings.ToLower)
	}
	return nil, p.unexpected("a comparison: = <> < <= > >= IS IN BETWEEN LIKE ILIKE")
}

func constant(v any) eval { return func([]any) any { return v } }

func (p *parser) like(left expr, fold func(string) string) (expr, error) {
	v, err := p.literal()
	if err != nil {
		return nil, err
	}
	pattern, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("LIKE needs a text as its pattern")
	}
	want := []rune(fold(pattern))
	return combine(func(v []any) any {
		s, ok := v[0].(string)
		if !ok {
			return nil
		}
		return likeMatch([]rune(fold(s)), want)
	}, left), nil
}

// combine returns an expression that applies f to the values of other expressions.
func combine(f func(values []any) any, operands ...expr) expr {
	return func(t *table) (eval, error) {
		evals, err := bindAll(t, operands)
		return func(row []any) any {
			values := make([]any, len(evals))
			for i, e := range evals {
				values[i] = e(row)
			}
			return f(values)
		}, err
	}
}

// compared returns nil if one side is NULL, and false for values of different types.
func compared(a, b any, test func(int) bool) any {
	if a == nil || b == nil {
		return nil
	}
	n, ok := compare(a, b)
	return ok && test(n)
}

func isIn(v any, values []any) any {
	if v == nil {
		return nil
	}
	return slices.ContainsFunc(values, func(x any) bool { n, ok := compare(v, x); return ok && n == 0 })
}

// likeMatch matches % with any text and _ with any character. Its time is at most proportional to the product of the
// lengths.
func likeMatch(s, pattern []rune) bool {
	i, j, star, mark := 0, 0, -1, 0
	for i < len(s) {
		switch {
		case j < len(pattern) && pattern[j] == '%':
			star, mark = j, i
			j++
		case j < len(pattern) && (pattern[j] == '_' || pattern[j] == s[i]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = mark, star+1
		default:
			return false
		}
	}
	for j < len(pattern) && pattern[j] == '%' {
		j++
	}
	return j == len(pattern)
}
