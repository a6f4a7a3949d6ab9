package effect

import (
	"strings"

	"retort/internal/core"
)

// maxQuery bounds a query that is judged, in bytes. A longer one counts as one that cannot be
// judged.
const maxQuery = 256 << 10

// judgeQuery judges a text of a query language: SQL in the common dialects, Cypher, SPARQL.
// ok is false if the text is none. What cannot be told counts as destructive: an unknown
// statement, procedure or function.
func judgeQuery(text string) (j judgement, ok bool) {
	if len(text) > maxQuery {
		return judgement{kind: core.EffectDestructive, verb: "a query that is too long to be judged"}, true
	}
	if !startsQuery(text) {
		return judgement{}, false
	}
	for _, d := range dialects {
		q := query{tokens: tokenize(d, text), judgement: judgement{kind: core.EffectRead, verb: "select"}}
		q.judge()
		j.raise(q.kind, q.verb, false)
	}
	return j, true
}

// startsQuery reports whether a text begins with a known statement in any dialect, or has
// nothing but comments.
func startsQuery(text string) bool {
	empty := true
	for _, d := range dialects {
		for _, t := range tokenize(d, text[:min(len(text), 4<<10)]) {
			empty = empty && t.text == ";"
			if t.kind == tokenWord && statements[t.text] != unknown {
				return true
			}
			if t.kind != tokenSign {
				break
			}
		}
	}
	return empty
}

// query represents a text of one dialect that is judged.
type query struct {
	tokens []token
	judgement
	start   start  // whether a statement begins at the next token
	first   string // the first word of the statement
	selects bool   // the statement has a select
	graph   bool   // it is Cypher
	sparq   bool   // it is SPARQL
}

// start describes whether a statement begins at a token.
type start uint8

const (
	inside start = iota
	maybe        // behind "then", where an expression can stand too
	begins
)

func (q *query) judge() {
	q.start = begins
	for i, t := range q.tokens {
		switch t.kind {
		case tokenSign:
			q.punctuation(i, t.text)
		case tokenWord:
			q.word(i, t.text)
		default:
			q.quoted(i, t.kind)
		}
	}
}

// quoted judges a string or a quoted name at i. A name can be that of a function: "drop_all"(1).
func (q *query) quoted(i int, kind tokenKind) {
	switch {
	case q.start == begins:
		q.raise(core.EffectDestructive, "a statement that is not known", false)
	case kind == tokenName && q.sign(i+1) == "(" && !q.names(i):
		q.raise(core.EffectDestructive, "a function with a quoted name", false)
	}
	q.start = inside
}

// punctuation judges a sign at i.
func (q *query) punctuation(i int, sign string) {
	switch {
	case sign == ";":
		q.start = begins
	case (sign == "{" || sign == ")" && q.first == "explain") && q.start != begins:
		q.start = maybe
	case sign == "(" && q.start != inside && i+1 < len(q.tokens) && q.sign(i+1) != ";":
	case q.start == begins:
		q.raise(core.EffectDestructive, "a statement that is not known", false)
		q.start = inside
	default:
		q.start = inside
	}
	if sign == ":" && q.sign(i+1) == "=" {
		q.raise(core.EffectWrite, ":=", false)
	}
}

// word judges the word at i.
func (q *query) word(i int, w string) {
	start := q.start
	if q.start = inside; opens[w] {
		q.start = maybe
	}
	if q.sign(i-1) == "." || q.sign(i-1) == ":" && q.graph {
		if q.sign(i+1) == "(" {
			q.function(i, w)
		}
		return
	}
	if start == begins {
		q.first, q.selects = w, false
		q.graph = q.graph || w == "match" || w == "optional" || w == "unwind" || w == "foreach" || w == "merge" && q.text(i+1) != "into"
		q.sparq = q.sparq || w == "prefix" || w == "base"
	}
	q.selects = q.selects || w == "select"
	switch {
	case q.explains(i, w):
		q.start = maybe
	case start != inside && w == "pragma":
		q.pragma(i)
	case start == begins || start == maybe && statements[w] != unknown:
		q.statement(w)
		if w == "update" {
			q.anywhere(i, w)
		}
	case q.graph && (w == "set" || w == "create" || w == "merge" || w == "foreach" || w == "load"):
		q.raise(core.EffectWrite, w, false)
	case q.graph && (w == "remove" || w == "detach"), q.sparq && (w == "clear" || w == "load" || w == "move" || w == "copy" || w == "add"):
		q.raise(core.EffectDestructive, w, false)
	case !q.excepted(i, w):
		q.anywhere(i, w)
	}
	if q.sign(i+1) == "(" {
		q.function(i, w)
	}
}

// statement judges the first word of a statement.
func (q *query) statement(w string) {
	switch statements[w] {
	case unknown:
		q.raise(core.EffectDestructive, "a statement that is not known", false)
	case writes:
		q.raise(core.EffectWrite, w, false)
	case destroys:
		q.raise(core.EffectDestructive, w, false)
	}
}

// anywhere judges words that change data wherever they stand, as in a CTE or after another
// statement without a semicolon.
func (q *query) anywhere(i int, w string) {
	if q.kind == core.EffectDestructive {
		return // nothing is further
	}
	switch reserved[w] {
	case writes:
		q.raise(core.EffectWrite, w, false)
	case destroys:
		q.raise(core.EffectDestructive, w, false)
	}
	switch {
	case w == "update" && !q.has(i, "where") && !q.merges(i):
		q.raise(core.EffectDestructive, "update without where", false)
	case w == "update" && q.matchesAll(i):
		q.raise(core.EffectDestructive, "update where everything matches", false)
	case w == "restore" && (q.text(i+1) == "database" || q.text(i+1) == "log"):
		q.raise(core.EffectDestructive, w, false)
	}
}

// explains reports whether the word at i belongs to EXPLAIN ANALYZE, which runs what follows.
func (q *query) explains(i int, w string) bool {
	if w != "analyze" && w != "analyse" || q.first != "explain" {
		return false
	}
	return q.text(i-1) == "explain" || q.sign(i-1) == "(" && q.text(i-2) == "explain" || q.sign(i-1) == "," && q.sign(i+1) != "("
}

// merges reports whether the update at i changes the row that is inserted or merged: ON
// DUPLICATE KEY UPDATE, DO UPDATE, WHEN MATCHED THEN UPDATE.
func (q *query) merges(i int) bool {
	before := q.text(i - 1)
	return q.first == "insert" && (before == "key" || before == "do") || q.first == "merge" && before == "then"
}

// matchesAll reports whether what follows the word at i has a condition that is always true:
// WHERE TRUE, WHERE 1, WHERE 1 = 1, OR 'a' = 'a'. It looks at maxStatement tokens.
func (q *query) matchesAll(i int) bool {
	for end := i + maxStatement; i < min(end, len(q.tokens)) && q.sign(i) != ";"; i++ {
		constant := q.literal(i) != ""
		switch before := q.text(i - 1); {
		case q.sign(i) == "=" && q.literal(i-1) != "" && q.literal(i-1) == q.literal(i+1):
			return true
		case constant && q.literal(i) != "string" && (before == "where" || before == "or" || before == "not") && q.sign(i+1) != "=":
			return true
		}
	}
	return false
}

// literal returns a number, true or false as it is written, "string" for a string, and "" for
// anything else.
func (q *query) literal(i int) string {
	if i < 0 || i >= len(q.tokens) {
		return ""
	}
	switch t := q.tokens[i]; {
	case t.kind == tokenString:
		return "string"
	case t.kind == tokenWord && (t.text == "true" || t.text == "false" || t.text[0] >= '0' && t.text[0] <= '9'):
		return t.text
	}
	return ""
}

// excepted reports whether a reserved word at i changes nothing: ON DELETE CASCADE, SHOW CREATE
// TABLE, the functions replace, insert and truncate.
func (q *query) excepted(i int, w string) bool {
	before, after := q.text(i-1), q.sign(i+1)
	switch w {
	case "delete":
		return before == "on"
	case "create":
		return before == "show"
	case "replace", "insert", "truncate":
		return after == "(" && before != "then"
	case "into":
		return before == "insert" || before == "replace" || before == "merge"
	}
	return false
}

// pragma judges SQLite's PRAGMA at i: only those that are known to read do.
func (q *query) pragma(i int) {
	name := q.text(i + 1)
	if q.sign(i+2) == "." {
		name = q.text(i + 3)
	}
	if !readingPragmas[name] || q.hasSign("=") {
		q.raise(core.EffectWrite, "pragma", false)
	}
}

// function judges a call at i. One that is not known may do anything.
func (q *query) function(i int, w string) {
	if q.text(i-1) == "pragma" || q.kind == core.EffectDestructive {
		return
	}
	if w == "create" || w == "merge" && (q.first == w || q.graph) || w == "conflict" && q.text(i-1) == "on" && q.first == "insert" {
		return // CREATE (n), MERGE (n), ON CONFLICT (id)
	}
	if beforeParen[w] || pureFunctions[w] && q.sign(i-1) != "." || q.names(i) {
		return
	}
	for _, prefix := range purePrefixes {
		if strings.HasPrefix(w, prefix) && judgeName(w).kind == core.EffectRead {
			return
		}
	}
	if q.sign(i-1) == "." && (q.text(i-2) == "pg_catalog" || q.text(i-2) == "information_schema") && pureFunctions[w] {
		return
	}
	q.raise(core.EffectDestructive, "the function "+w, false)
}

// names reports whether the word or quoted name at i, with a parenthesis behind it, names columns
// and is no call: t(a, b) AS (…), AS t(a, b), OVER w (…), INSERT INTO s.t (a, b).
func (q *query) names(i int) bool {
	start := i
	for q.sign(start-1) == "." {
		start -= 2
	}
	switch before := q.text(start - 1); before {
	case "as", "table", "into", "window", "references":
		return true
	case "exists", "on", "using", "key", "index":
		if q.first == "create" && !q.selects {
			return true
		}
	}
	depth := 0
	for k := i + 1; k < len(q.tokens); k++ {
		switch q.sign(k) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return q.text(k+1) == "as" && (q.sign(k+2) == "(" || q.text(k+2) == "materialized" || q.text(k+2) == "not")
			}
		}
	}
	return false
}

func (q *query) text(i int) string {
	if i < 0 || i >= len(q.tokens) || q.tokens[i].kind != tokenWord {
		return ""
	}
	return q.tokens[i].text
}

func (q *query) sign(i int) string {
	if i < 0 || i >= len(q.tokens) || q.tokens[i].kind != tokenSign {
		return ""
	}
	return q.tokens[i].text
}

// maxStatement sets how many tokens of a statement are looked at for each of its words, so that a query of many words
// takes no time that grows with their square.
const maxStatement = 1 << 10

// has reports whether a word is among the next maxStatement tokens of the statement.
func (q *query) has(i int, word string) bool {
	for end := i + maxStatement; i < min(end, len(q.tokens)) && q.sign(i) != ";"; i++ {
		if q.text(i) == word {
			return true
		}
	}
	return false
}

func (q *query) hasSign(sign string) bool {
	for i := range q.tokens {
		if q.sign(i) == sign {
			return true
		}
	}
	return false
}

// mentionsQuery finds statements that change data in a text that need not be a query, by their
// form: DELETE FROM x, UPDATE x SET. It is for arguments of tools that say nothing of queries.
func mentionsQuery(text string) judgement {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	var j judgement
	for _, d := range dialects {
		q := query{tokens: tokenize(d, text)}
		for i, t := range q.tokens {
			if t.kind == tokenWord && q.sign(i-1) != "." && q.formed(i, t.text) && reserved[t.text] != unknown {
				q.anywhere(i, t.text)
			}
		}
		if q.verb != "" {
			j.raise(q.kind, q.verb, false)
		}
	}
	return j
}

// formed reports whether the statement at i has the form of one.
func (q *query) formed(i int, w string) bool {
	next := q.text(i + 1)
	switch w {
	case "delete":
		return next == "from"
	case "insert", "replace", "merge":
		return next == "into" || next == "overwrite" || next == "ignore"
	case "update":
		return q.has(i, "set") && next != ""
	case "drop", "alter", "create", "truncate":
		return objects[next]
	case "grant", "revoke":
		return q.has(i, "to") || q.has(i, "from")
	case "detach":
		return next == "delete"
	}
	return false
}
