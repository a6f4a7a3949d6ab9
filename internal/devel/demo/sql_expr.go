package demo

import (
	"fmt"
	"slices"
	"strings"
)

// sqlCondition is a condition that is not yet bound to a table.
type sqlCondition func(t *dataTable) (rowEval, error)

// rowEval returns the value for a row. The value of a condition is true, false, or nil for SQL's NULL.
type rowEval func(row []any) any

func (p *sqlParser) whereClause() (sqlCondition, error) {
	if !p.takeKeyword("WHERE") {
		return nil, nil
	}
	return p.orExpr()
}

func (p *sqlParser) orExpr() (sqlCondition, error) { return p.parseChain("OR", true, p.andExpr) }

func (p *sqlParser) andExpr() (sqlCondition, error) { return p.parseChain("AND", false, p.notExpr) }

// parseChain parses operands separated by a word. One operand whose value is decides determines the whole.
func (p *sqlParser) parseChain(word string, decides bool, operand func() (sqlCondition, error)) (sqlCondition, error) {
	first, err := operand()
	if err != nil {
		return nil, err
	}
	all := []sqlCondition{first}
	for p.takeKeyword(word) {
		next, err := operand()
		if err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	if len(all) == 1 {
		return first, nil
	}
	return func(t *dataTable) (rowEval, error) {
		evals, err := bindAll(t, all)
		return func(row []any) any { return combineLogic(evals, row, decides) }, err
	}, nil
}

func combineLogic(evals []rowEval, row []any, decides bool) any {
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

func bindAll(t *dataTable, all []sqlCondition) ([]rowEval, error) {
	evals := make([]rowEval, len(all))
	for i, x := range all {
		var err error
		if evals[i], err = x(t); err != nil {
			return nil, err
		}
	}
	return evals, nil
}

func (p *sqlParser) notExpr() (sqlCondition, error) {
	if p.depth++; p.depth > maxNesting {
		return nil, fmt.Errorf("the condition is nested deeper than %d levels", maxNesting)
	}
	defer func() { p.depth-- }()
	if p.takeKeyword("NOT") {
		inner, err := p.notExpr()
		return negateExpr(inner), err
	}
	if t := p.tokens[0]; t.kind == symbolToken && t.text == "(" {
		return inParens(p, p.orExpr)
	}
	return p.parsePredicate()
}

func negateExpr(inner sqlCondition) sqlCondition {
	return func(t *dataTable) (rowEval, error) {
		e, err := inner(t)
		return func(row []any) any {
			if v, ok := e(row).(bool); ok {
				return !v
			}
			return nil
		}, err
	}
}

// parseOperand parses a column or a literal.
func (p *sqlParser) parseOperand() (sqlCondition, error) {
	t := p.tokens[0]
	if word := strings.ToUpper(t.text); t.kind == nameToken ||
		t.kind == wordToken && !slices.Contains([]string{"NULL", "TRUE", "FALSE"}, word) {
		name, err := p.columnName()
		return func(t *dataTable) (rowEval, error) {
			i, err := t.sqlColumn(name)
			return func(row []any) any { return row[i] }, err
		}, err
	}
	v, err := p.parseLiteral()
	return func(*dataTable) (rowEval, error) { return func([]any) any { return v }, nil }, err
}

// sqlColumn returns the index of a column. The error lists the existing columns.
func (t *dataTable) sqlColumn(name string) (int, error) {
	if i := t.columnIndex(name); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("column %q does not exist; %s has %s", name, t.name, strings.Join(t.colNames(), ", "))
}

var comparisons = map[string]func(order int) bool{
	"=": func(n int) bool { return n == 0 }, "<>": func(n int) bool { return n != 0 }, "!=": func(n int) bool { return n != 0 },
	"<": func(n int) bool { return n < 0 }, "<=": func(n int) bool { return n <= 0 },
	">": func(n int) bool { return n > 0 }, ">=": func(n int) bool { return n >= 0 },
}

// parsePredicate parses a comparison of two operands, or IS, IN, BETWEEN or LIKE.
func (p *sqlParser) parsePredicate() (sqlCondition, error) {
	left, err := p.parseOperand()
	if err != nil {
		return nil, err
	}
	if t := p.tokens[0]; t.kind == symbolToken && comparisons[t.text] != nil {
		p.skipToken()
		right, err := p.parseOperand()
		return combineExprs(func(v []any) any { return compareValues(v[0], v[1], comparisons[t.text]) }, left, right), err
	}
	if p.takeKeyword("IS") {
		not := p.takeKeyword("NOT")
		return combineExprs(func(v []any) any { return (v[0] == nil) != not }, left), p.requireToken(p.takeKeyword("NULL"), "NULL")
	}
	not := p.takeKeyword("NOT")
	test, err := p.rangeOrPattern(left)
	if err == nil && not {
		test = negateExpr(test)
	}
	return test, err
}

func (p *sqlParser) rangeOrPattern(left sqlCondition) (sqlCondition, error) {
	switch {
	case p.takeKeyword("IN"):
		values, err := inParens(p, func() ([]any, error) { return parseList(p, p.parseLiteral) })
		return combineExprs(func(v []any) any { return isIn(v[0], values) }, left), err
	case p.takeKeyword("BETWEEN"):
		low, err := p.parseOperand()
		if err != nil {
			return nil, err
		}
		if err := p.requireToken(p.takeKeyword("AND"), "AND"); err != nil {
			return nil, err
		}
		high, err := p.parseOperand()
		atLeast := combineExprs(func(v []any) any { return compareValues(v[0], v[1], comparisons[">="]) }, left, low)
		atMost := combineExprs(func(v []any) any { return compareValues(v[0], v[1], comparisons["<="]) }, left, high)
		return combineExprs(
			func(v []any) any { return combineLogic([]rowEval{constantEval(v[0]), constantEval(v[1])}, nil, false) },
			atLeast, atMost,
		), err
	case p.takeKeyword("LIKE"):
		return p.parseLike(left, func(s string) string { return s })
	case p.takeKeyword("ILIKE"):
		return p.parseLike(left, strings.ToLower)
	}
	return nil, p.unexpectedToken("a comparison: = <> < <= > >= IS IN BETWEEN LIKE ILIKE")
}

func constantEval(v any) rowEval { return func([]any) any { return v } }

func (p *sqlParser) parseLike(left sqlCondition, fold func(string) string) (sqlCondition, error) {
	v, err := p.parseLiteral()
	if err != nil {
		return nil, err
	}
	pattern, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("LIKE needs a text as its pattern")
	}
	want := []rune(fold(pattern))
	return combineExprs(func(v []any) any {
		s, ok := v[0].(string)
		if !ok {
			return nil
		}
		return likeMatch([]rune(fold(s)), want)
	}, left), nil
}

// combineExprs returns an expression that applies f to the values of other expressions.
func combineExprs(f func(values []any) any, operands ...sqlCondition) sqlCondition {
	return func(t *dataTable) (rowEval, error) {
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

// compareValues returns nil if one side is NULL, and false for values of different types.
func compareValues(a, b any, test func(int) bool) any {
	if a == nil || b == nil {
		return nil
	}
	n, ok := orderValues(a, b)
	return ok && test(n)
}

func isIn(v any, values []any) any {
	if v == nil {
		return nil
	}
	return slices.ContainsFunc(values, func(x any) bool { n, ok := orderValues(v, x); return ok && n == 0 })
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
