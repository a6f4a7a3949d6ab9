package demo

import (
	"fmt"
	"slices"
	"strings"
)

// The statements that the database understands. Names are as written and looked
// up when a statement runs.
type (
	selectStmt struct {
		distinct bool
		items    []selectItem // empty for *
		table    string
		where    sqlCondition // nil: every row
		group    []string
		order    []orderKey
		limit    int // -1: all
		offset   int
	}
	insertStmt struct {
		table   string
		columns []string
		rows    [][]any
	}
	updateStmt struct {
		table  string
		names  []string
		values []any
		where  sqlCondition
	}
	deleteStmt struct {
		table string
		where sqlCondition
	}
)

// selectItem represents a column or an aggregate of a column ("" for COUNT(*)).
type selectItem struct {
	aggregate string // COUNT, SUM, AVG, MIN, MAX; empty for a column
	column    string
	distinct  bool
	alias     string
}

// columnName returns the item in its normal spelling, which is the name of its result column unless it has an alias.
func (i selectItem) columnName() string {
	column := orDefault(i.column, "*")
	if i.distinct {
		column = "DISTINCT " + column
	}
	if i.aggregate != "" {
		return i.aggregate + "(" + column + ")"
	}
	return column
}

type orderKey struct {
	item       selectItem
	ordinal    int // 1-based column of the result; 0 if named by item
	descending bool
}

// maxNesting bounds how deeply parentheses and NOT operators may be nested in a condition.
const maxNesting = 60

type sqlParser struct {
	tokens []sqlToken
	params []any
	used   int // params taken
	depth  int
}

// parseSQL reads one statement: a *selectStmt, *insertStmt, *updateStmt or
// *deleteStmt. Each ? takes the next of params.
func parseSQL(sql string, params []any) (statement any, err error) {
	tokens, err := lexSQL(sql)
	if err != nil {
		return nil, err
	}
	p := &sqlParser{tokens: tokens, params: params}
	switch {
	case p.takeKeyword("SELECT"):
		statement, err = p.selectStatement()
	case p.takeKeyword("INSERT"):
		statement, err = p.insertStatement()
	case p.takeKeyword("UPDATE"):
		statement, err = p.updateStatement()
	case p.takeKeyword("DELETE"):
		statement, err = p.deleteStatement()
	default:
		return nil, fmt.Errorf("syntax error at %s: the database knows SELECT, INSERT, UPDATE and DELETE", p.tokens[0])
	}
	if err != nil {
		return nil, err
	}
	p.takeSymbol(";")
	if t := p.tokens[0]; t.kind != endToken {
		return nil, p.unexpectedToken("the end of the statement; joins, subqueries, HAVING and several statements are not supported")
	}
	if p.used != len(params) {
		return nil, fmt.Errorf("the statement has %d placeholders, but there are %d params", p.used, len(params))
	}
	return statement, nil
}

func (p *sqlParser) unexpectedToken(wanted string) error {
	return fmt.Errorf("syntax error at position %d, at %s: expected %s", p.tokens[0].pos, p.tokens[0], wanted)
}

// skipToken consumes a token. At the end it does nothing.
func (p *sqlParser) skipToken() {
	if p.tokens[0].kind != endToken {
		p.tokens = p.tokens[1:]
	}
}

func (p *sqlParser) isKeyword(word string) bool {
	return p.tokens[0].kind == wordToken && strings.EqualFold(p.tokens[0].text, word)
}

// takeKeyword consumes the given words if all of them come next, and reports whether it did.
func (p *sqlParser) takeKeyword(words ...string) bool {
	saved := p.tokens
	for _, w := range words {
		if !p.isKeyword(w) {
			p.tokens = saved
			return false
		}
		p.skipToken()
	}
	return true
}

func (p *sqlParser) takeSymbol(text string) bool {
	if t := p.tokens[0]; t.kind == symbolToken && t.text == text {
		p.skipToken()
		return true
	}
	return false
}

func (p *sqlParser) requireToken(ok bool, what string) error {
	if !ok {
		return p.unexpectedToken(what)
	}
	return nil
}

var reserved = strings.Fields(
	"SELECT DISTINCT FROM WHERE GROUP BY ORDER LIMIT OFFSET AND OR NOT IN LIKE ILIKE BETWEEN IS NULL AS ASC DESC VALUES SET INTO HAVING JOIN ON UNION",
)

func (p *sqlParser) parseName(what string) (string, error) {
	t := p.tokens[0]
	if t.kind == nameToken || t.kind == wordToken && !slices.Contains(reserved, strings.ToUpper(t.text)) {
		p.skipToken()
		return t.text, nil
	}
	return "", p.unexpectedToken(what)
}

// parseList parses one or more elements separated by commas.
func parseList[T any](p *sqlParser, one func() (T, error)) ([]T, error) {
	var all []T
	for {
		v, err := one()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if !p.takeSymbol(",") {
			return all, nil
		}
	}
}

// inParens parses something in parentheses.
func inParens[T any](p *sqlParser, inside func() (T, error)) (v T, err error) {
	if err = p.requireToken(p.takeSymbol("("), `"("`); err != nil {
		return v, err
	}
	if v, err = inside(); err != nil {
		return v, err
	}
	return v, p.requireToken(p.takeSymbol(")"), `")"`)
}

func (p *sqlParser) columnName() (string, error) { return p.parseName("the name of a column") }

func (p *sqlParser) selectStatement() (*selectStmt, error) {
	s := &selectStmt{limit: -1, distinct: p.takeKeyword("DISTINCT")}
	var err error
	if !p.takeSymbol("*") {
		if s.items, err = parseList(p, p.aliasedItem); err != nil {
			return nil, err
		}
	}
	if s.table, err = p.fromTable(); err != nil {
		return nil, err
	}
	if s.where, err = p.whereClause(); err != nil {
		return nil, err
	}
	if p.takeKeyword("GROUP", "BY") {
		if s.group, err = parseList(p, p.columnName); err != nil {
			return nil, err
		}
	}
	if p.takeKeyword("ORDER", "BY") {
		if s.order, err = parseList(p, p.orderKey); err != nil {
			return nil, err
		}
	}
	return s, p.parseLimits(s)
}

func (p *sqlParser) fromTable() (string, error) {
	if err := p.requireToken(p.takeKeyword("FROM"), "FROM"); err != nil {
		return "", err
	}
	return p.parseName("the name of a table")
}

// parseLimits parses LIMIT and OFFSET in any order.
func (p *sqlParser) parseLimits(s *selectStmt) (err error) {
	for range 2 {
		switch {
		case p.takeKeyword("LIMIT"):
			s.limit, err = p.parseCount()
		case p.takeKeyword("OFFSET"):
			s.offset, err = p.parseCount()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *sqlParser) parseCount() (int, error) {
	v, err := p.parseLiteral()
	if n, ok := v.(int64); err == nil && ok && n >= 0 && n <= 1<<31 {
		return int(n), nil
	}
	if err == nil {
		err = fmt.Errorf("LIMIT and OFFSET need a whole number that is not negative")
	}
	return 0, err
}

func (p *sqlParser) aliasedItem() (selectItem, error) {
	item, err := p.parseItem()
	if err == nil && p.takeKeyword("AS") {
		item.alias, err = p.parseName("an alias")
	}
	return item, err
}

var aggregates = []string{"COUNT", "SUM", "AVG", "MIN", "MAX"}

func (p *sqlParser) parseItem() (selectItem, error) {
	name, err := p.columnName()
	if err != nil {
		return selectItem{}, err
	}
	function := strings.ToUpper(name)
	if t := p.tokens[0]; t.kind != symbolToken || t.text != "(" {
		return selectItem{column: name}, nil
	}
	if !slices.Contains(aggregates, function) {
		return selectItem{}, fmt.Errorf("function %s does not exist; there are %s", strings.ToLower(name), strings.Join(aggregates, ", "))
	}
	item := selectItem{aggregate: function}
	item.column, err = inParens(p, func() (string, error) {
		if function == "COUNT" && p.takeSymbol("*") {
			return "", nil
		}
		item.distinct = p.takeKeyword("DISTINCT")
		return p.columnName()
	})
	return item, err
}

func (p *sqlParser) orderKey() (k orderKey, err error) {
	if t := p.tokens[0]; t.kind == valueToken {
		if k.ordinal, err = p.parseCount(); err == nil && k.ordinal == 0 {
			err = fmt.Errorf("ORDER BY counts columns from 1")
		}
	} else {
		k.item, err = p.parseItem()
	}
	k.descending = p.takeKeyword("DESC")
	if !k.descending {
		p.takeKeyword("ASC")
	}
	return k, err
}

// parseLiteral parses a string, a number, TRUE, FALSE, NULL or a placeholder.
func (p *sqlParser) parseLiteral() (any, error) {
	negative := p.takeSymbol("-")
	t := p.tokens[0]
	switch {
	case t.kind == valueToken:
		p.skipToken()
		return applySign(t.value, negative)
	case negative:
	case t.kind == paramToken:
		p.skipToken()
		p.used++
		if p.used > len(p.params) {
			return nil, fmt.Errorf("the statement has more placeholders than the %d params", len(p.params))
		}
		return p.params[p.used-1], nil
	case p.takeKeyword("NULL"):
		return nil, nil
	case p.takeKeyword("TRUE"):
		return true, nil
	case p.takeKeyword("FALSE"):
		return false, nil
	}
	return nil, p.unexpectedToken("a value")
}

func applySign(v any, negative bool) (any, error) {
	switch x := v.(type) {
	case int64:
		if negative {
			return -x, nil
		}
	case float64:
		if negative {
			return -x, nil
		}
	case string:
		if negative {
			return nil, fmt.Errorf("syntax error: a minus before a text")
		}
	}
	return v, nil
}

func (p *sqlParser) insertStatement() (*insertStmt, error) {
	s := &insertStmt{}
	err := p.requireToken(p.takeKeyword("INTO"), "INTO")
	if err == nil {
		s.table, err = p.parseName("the name of a table")
	}
	if err == nil {
		s.columns, err = inParens(p, func() ([]string, error) { return parseList(p, p.columnName) })
	}
	if err == nil {
		err = p.requireToken(p.takeKeyword("VALUES"), "VALUES")
	}
	if err == nil {
		s.rows, err = parseList(p, func() ([]any, error) {
			return inParens(p, func() ([]any, error) { return parseList(p, p.parseLiteral) })
		})
	}
	return s, err
}

func (p *sqlParser) updateStatement() (*updateStmt, error) {
	s := &updateStmt{}
	var err error
	if s.table, err = p.parseName("the name of a table"); err != nil {
		return nil, err
	}
	if err := p.requireToken(p.takeKeyword("SET"), "SET"); err != nil {
		return nil, err
	}
	s.names, err = parseList(p, func() (string, error) {
		name, err := p.columnName()
		if err == nil {
			err = p.requireToken(p.takeSymbol("="), `"="`)
		}
		if err != nil {
			return "", err
		}
		v, err := p.parseLiteral()
		s.values = append(s.values, v)
		return name, err
	})
	if err == nil {
		s.where, err = p.whereClause()
	}
	return s, err
}

func (p *sqlParser) deleteStatement() (*deleteStmt, error) {
	s := &deleteStmt{}
	var err error
	if s.table, err = p.fromTable(); err == nil {
		s.where, err = p.whereClause()
	}
	return s, err
}
