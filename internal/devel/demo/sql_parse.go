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
		where    expr // nil: every row
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
		where  expr
	}
	deleteStmt struct {
		table string
		where expr
	}
)

// selectItem represents a column or an aggregate of a column ("" for COUNT(*)).
type selectItem struct {
	aggregate string // COUNT, SUM, AVG, MIN, MAX; empty for a column
	column    string
	distinct  bool
	alias     string
}

// text returns the item in its normal spelling, which is the name of its result column unless it has an alias.
func (i selectItem) text() string {
	column := or(i.column, "*")
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

// maxNesting bounds parentheses and NOT in conditions.
const maxNesting = 60

type parser struct {
	tokens []token
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
	p := &parser{tokens: tokens, params: params}
	switch {
	case p.keyword("SELECT"):
		statement, err = p.selectStatement()
	case p.keyword("INSERT"):
		statement, err = p.insertStatement()
	case p.keyword("UPDATE"):
		statement, err = p.updateStatement()
	case p.keyword("DELETE"):
		statement, err = p.deleteStatement()
	default:
		return nil, fmt.Errorf("syntax error at %s: the database knows SELECT, INSERT, UPDATE and DELETE", p.tokens[0])
	}
	if err != nil {
		return nil, err
	}
	p.symbol(";")
	if t := p.tokens[0]; t.kind != endToken {
		return nil, p.unexpected("the end of the statement; joins, subqueries, HAVING and several statements are not supported")
	}
	if p.used != len(params) {
		return nil, fmt.Errorf("the statement has %d placeholders, but there are %d params", p.used, len(params))
	}
	return statement, nil
}

func (p *parser) unexpected(wanted string) error {
	return fmt.Errorf("syntax error at position %d, at %s: expected %s", p.tokens[0].pos, p.tokens[0], wanted)
}

// skip consumes a token. At the end it does nothing.
func (p *parser) skip() {
	if p.tokens[0].kind != endToken {
		p.tokens = p.tokens[1:]
	}
}

func (p *parser) isKeyword(word string) bool {
	return p.tokens[0].kind == wordToken && strings.EqualFold(p.tokens[0].text, word)
}

// keyword consumes the given words if all of them come next, and reports whether it did.
func (p *parser) keyword(words ...string) bool {
	saved := p.tokens
	for _, w := range words {
		if !p.isKeyword(w) {
			p.tokens = saved
			return false
		}
		p.skip()
	}
	return true
}

func (p *parser) symbol(text string) bool {
	if t := p.tokens[0]; t.kind == symbolToken && t.text == text {
		p.skip()
		return true
	}
	return false
}

func (p *parser) want(ok bool, what string) error {
	if !ok {
		return p.unexpected(what)
	}
	return nil
}

var reserved = strings.Fields("SELECT DISTINCT FROM WHERE GROUP BY ORDER LIMIT OFFSET AND OR NOT IN LIKE ILIKE BETWEEN IS NULL AS ASC DESC VALUES SET INTO HAVING JOIN ON UNION")

func (p *parser) name(what string) (string, error) {
	t := p.tokens[0]
	if t.kind == nameToken || t.kind == wordToken && !slices.Contains(reserved, strings.ToUpper(t.text)) {
		p.skip()
		return t.text, nil
	}
	return "", p.unexpected(what)
}

// list parses one or more elements separated by commas.
func list[T any](p *parser, one func() (T, error)) ([]T, error) {
	var all []T
	for {
		v, err := one()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
		if !p.symbol(",") {
			return all, nil
		}
	}
}

// inParens parses something in parentheses.
func inParens[T any](p *parser, inside func() (T, error)) (v T, err error) {
	if err = p.want(p.symbol("("), `"("`); err != nil {
		return v, err
	}
	if v, err = inside(); err != nil {
		return v, err
	}
	return v, p.want(p.symbol(")"), `")"`)
}

func (p *parser) columnName() (string, error) { return p.name("the name of a column") }

func (p *parser) selectStatement() (*selectStmt, error) {
	s := &selectStmt{limit: -1, distinct: p.keyword("DISTINCT")}
	var err error
	if !p.symbol("*") {
		if s.items, err = list(p, p.aliasedItem); err != nil {
			return nil, err
		}
	}
	if s.table, err = p.fromTable(); err != nil {
		return nil, err
	}
	if s.where, err = p.whereClause(); err != nil {
		return nil, err
	}
	if p.keyword("GROUP", "BY") {
		if s.group, err = list(p, p.columnName); err != nil {
			return nil, err
		}
	}
	if p.keyword("ORDER", "BY") {
		if s.order, err = list(p, p.orderKey); err != nil {
			return nil, err
		}
	}
	return s, p.limits(s)
}

func (p *parser) fromTable() (string, error) {
	if err := p.want(p.keyword("FROM"), "FROM"); err != nil {
		return "", err
	}
	return p.name("the name of a table")
}

// limits parses LIMIT and OFFSET in any order.
func (p *parser) limits(s *selectStmt) (err error) {
	for range 2 {
		switch {
		case p.keyword("LIMIT"):
			s.limit, err = p.count()
		case p.keyword("OFFSET"):
			s.offset, err = p.count()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) count() (int, error) {
	v, err := p.literal()
	if n, ok := v.(int64); err == nil && ok && n >= 0 && n <= 1<<31 {
		return int(n), nil
	}
	if err == nil {
		err = fmt.Errorf("LIMIT and OFFSET need a whole number that is not negative")
	}
	return 0, err
}

func (p *parser) aliasedItem() (selectItem, error) {
	item, err := p.item()
	if err == nil && p.keyword("AS") {
		item.alias, err = p.name("an alias")
	}
	return item, err
}

var aggregates = []string{"COUNT", "SUM", "AVG", "MIN", "MAX"}

func (p *parser) item() (selectItem, error) {
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
		if function == "COUNT" && p.symbol("*") {
			return "", nil
		}
		item.distinct = p.keyword("DISTINCT")
		return p.columnName()
	})
	return item, err
}

func (p *parser) orderKey() (k orderKey, err error) {
	if t := p.tokens[0]; t.kind == valueToken {
		if k.ordinal, err = p.count(); err == nil && k.ordinal == 0 {
			err = fmt.Errorf("ORDER BY counts columns from 1")
		}
	} else {
		k.item, err = p.item()
	}
	k.descending = p.keyword("DESC")
	if !k.descending {
		p.keyword("ASC")
	}
	return k, err
}

// literal parses a string, a number, TRUE, FALSE, NULL or a placeholder.
func (p *parser) literal() (any, error) {
	negative := p.symbol("-")
	t := p.tokens[0]
	switch {
	case t.kind == valueToken:
		p.skip()
		return signed(t.value, negative)
	case negative:
	case t.kind == paramToken:
		p.skip()
		p.used++
		if p.used > len(p.params) {
			return nil, fmt.Errorf("the statement has more placeholders than the %d params", len(p.params))
		}
		return p.params[p.used-1], nil
	case p.keyword("NULL"):
		return nil, nil
	case p.keyword("TRUE"):
		return true, nil
	case p.keyword("FALSE"):
		return false, nil
	}
	return nil, p.unexpected("a value")
}

func signed(v any, negative bool) (any, error) {
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

func (p *parser) insertStatement() (*insertStmt, error) {
	s := &insertStmt{}
	err := p.want(p.keyword("INTO"), "INTO")
	if err == nil {
		s.table, err = p.name("the name of a table")
	}
	if err == nil {
		s.columns, err = inParens(p, func() ([]string, error) { return list(p, p.columnName) })
	}
	if err == nil {
		err = p.want(p.keyword("VALUES"), "VALUES")
	}
	if err == nil {
		s.rows, err = list(p, func() ([]any, error) {
			return inParens(p, func() ([]any, error) { return list(p, p.literal) })
		})
	}
	return s, err
}

func (p *parser) updateStatement() (*updateStmt, error) {
	s := &updateStmt{}
	var err error
	if s.table, err = p.name("the name of a table"); err != nil {
		return nil, err
	}
	if err := p.want(p.keyword("SET"), "SET"); err != nil {
		return nil, err
	}
	s.names, err = list(p, func() (string, error) {
		name, err := p.columnName()
		if err == nil {
			err = p.want(p.symbol("="), `"="`)
		}
		if err != nil {
			return "", err
		}
		v, err := p.literal()
		s.values = append(s.values, v)
		return name, err
	})
	if err == nil {
		s.where, err = p.whereClause()
	}
	return s, err
}

func (p *parser) deleteStatement() (*deleteStmt, error) {
	s := &deleteStmt{}
	var err error
	if s.table, err = p.fromTable(); err == nil {
		s.where, err = p.whereClause()
	}
	return s, err
}
