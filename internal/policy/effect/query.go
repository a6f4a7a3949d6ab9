package effect

import (
	"strings"

	"retort/internal/core"
)

// maxQuery bounds the length of queries that are judged, in bytes. A longer query counts as irreversible.
const maxQuery = 256 << 10

// judgeQuery returns the effect of a query in a common SQL dialect, Cypher or SPARQL. ok is false if the text is not
// a query. An unknown statement, procedure or function counts as irreversible.
func judgeQuery(text string) (j textJudgement, ok bool) {
	if len(text) > maxQuery {
		return textJudgement{kind: core.EffectIrreversible, grade: core.GradeDeletion, verb: "a query that is too long to be judged"}, true
	}
	if !startsQuery(text) {
		return textJudgement{}, false
	}
	for _, d := range dialects {
		q := queryText{tokens: tokenizeQuery(d, text), textJudgement: textJudgement{kind: core.EffectRead, verb: "select"}}
		q.judgeTokens()
		j.raiseJudgement(q.textJudgement)
	}
	return j.gradeQuery(text), true
}

// startsQuery reports whether a text begins with a statement of any of the known query languages, or contains nothing
// but comments.
func startsQuery(text string) bool {
	empty := true
	for _, d := range dialects {
		for _, t := range tokenizeQuery(d, text[:min(len(text), 4<<10)]) {
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

// queryText holds a query that is being judged, split into tokens as one dialect reads it.
type queryText struct {
	tokens []queryToken
	textJudgement
	start   statementStart // whether a statement begins at the next token
	first   string         // the first word of the statement
	selects bool           // the statement has a select
	graph   bool           // it is Cypher
	sparq   bool           // it is SPARQL
}

// statementStart says whether a statement begins at a token, may begin there, or does not.
type statementStart uint8

const (
	inside statementStart = iota
	maybe                 // behind "then", where an expression can stand too
	begins
)

func (q *queryText) judgeTokens() {
	q.start = begins
	for i, t := range q.tokens {
		switch t.kind {
		case tokenSign:
			q.judgeSign(i, t.text)
		case tokenWord:
			q.judgeWord(i, t.text)
		default:
			q.judgeQuoted(i, t.kind)
		}
	}
}

// judgeQuoted judges a string or a quoted name at i. A quoted name can be the name of a function, as in
// "drop_all"(1).
func (q *queryText) judgeQuoted(i int, kind queryTokenKind) {
	switch {
	case q.start == begins:
		q.raiseUnknown()
	case kind == tokenName && q.signAt(i+1) == "(" && !q.isCallName(i):
		q.raiseEffect(core.EffectIrreversible, "a function with a quoted name", false)
	}
	q.start = inside
}

// judgeSign judges the punctuation token at i.
func (q *queryText) judgeSign(i int, sign string) {
	switch {
	case sign == ";":
		q.start = begins
	case (sign == "{" || sign == ")" && q.first == "explain") && q.start != begins:
		q.start = maybe
	case sign == "(" && q.start != inside && i+1 < len(q.tokens) && q.signAt(i+1) != ";":
	case q.start == begins:
		q.raiseUnknown()
		q.start = inside
	default:
		q.start = inside
	}
	if sign == ":" && q.signAt(i+1) == "=" {
		q.raiseEffect(core.EffectWrite, ":=", false)
	}
}

// judgeWord judges the word at i.
func (q *queryText) judgeWord(i int, w string) {
	start := q.start
	if q.start = inside; opens[w] {
		q.start = maybe
	}
	if q.signAt(i-1) == "." || q.signAt(i-1) == ":" && q.graph {
		if q.signAt(i+1) == "(" {
			q.judgeFunction(i, w)
		}
		return
	}
	if start == begins {
		q.first, q.selects = w, false
		q.graph = q.graph || w == "match" || w == "optional" || w == "unwind" || w == "foreach" || w == "merge" && q.textAt(i+1) != "into"
		q.sparq = q.sparq || w == "prefix" || w == "base"
	}
	q.selects = q.selects || w == "select"
	switch {
	case q.isExplained(i, w):
		q.start = maybe
	case start != inside && w == "pragma":
		q.judgePragma(i)
	case start == begins || start == maybe && statements[w] != unknown:
		q.judgeStatement(w)
		if w == "update" {
			q.judgeAnywhere(i, w)
		}
	case q.graph && (w == "set" || w == "create" || w == "merge" || w == "foreach" || w == "load"):
		q.raiseEffect(core.EffectWrite, w, false)
	case q.graph && (w == "remove" || w == "detach"), q.sparq && (w == "clear" || w == "load" || w == "move" || w == "copy" || w == "add"):
		q.raiseEffect(core.EffectIrreversible, w, false)
	case !q.isExcepted(i, w):
		q.judgeAnywhere(i, w)
	}
	if q.signAt(i+1) == "(" {
		q.judgeFunction(i, w)
	}
}

// judgeStatement judges the first word of a statement.
func (q *queryText) judgeStatement(w string) {
	switch statements[w] {
	case unknown:
		q.raiseUnknown()
	case writes:
		q.raiseEffect(core.EffectWrite, w, false)
	case destroys:
		q.raiseEffect(core.EffectIrreversible, w, false)
	}
}

// judgeAnywhere judges a word that changes data wherever it stands in a query. It may stand in a CTE, for example, or
// after another statement without a semicolon.
func (q *queryText) judgeAnywhere(i int, w string) {
	if q.kind == core.EffectIrreversible {
		return // nothing is further
	}
	switch reserved[w] {
	case writes:
		q.raiseEffect(core.EffectWrite, w, false)
	case destroys:
		q.raiseEffect(core.EffectIrreversible, w, false)
	}
	switch {
	case w == "update" && !q.hasWordAhead(i, "where") && !q.isMergeUpdate(i):
		q.raiseEffect(core.EffectIrreversible, "update without where", false)
	case w == "update" && q.matchesAll(i):
		q.raiseEffect(core.EffectIrreversible, "update where everything matches", false)
	case w == "restore" && (q.textAt(i+1) == "database" || q.textAt(i+1) == "log"):
		q.raiseEffect(core.EffectIrreversible, w, false)
	}
}

// isExplained reports whether the word at i belongs to EXPLAIN ANALYZE, which runs the statement that follows.
func (q *queryText) isExplained(i int, w string) bool {
	if w != "analyze" && w != "analyse" || q.first != "explain" {
		return false
	}
	return q.textAt(i-1) == "explain" || q.signAt(i-1) == "(" && q.textAt(i-2) == "explain" || q.signAt(i-1) == "," && q.signAt(i+1) != "("
}

// isMergeUpdate reports whether the word UPDATE at i changes only the row that is inserted or merged. Examples are ON
// DUPLICATE KEY UPDATE, DO UPDATE and WHEN MATCHED THEN UPDATE.
func (q *queryText) isMergeUpdate(i int) bool {
	before := q.textAt(i - 1)
	return q.first == "insert" && (before == "key" || before == "do") || q.first == "merge" && before == "then"
}

// matchesAll reports whether the word at i is followed by a condition that is always true, such as WHERE TRUE, WHERE
// 1 = 1 or OR 'a' = 'a'. It examines at most maxStatement tokens.
func (q *queryText) matchesAll(i int) bool {
	for end := i + maxStatement; i < min(end, len(q.tokens)) && q.signAt(i) != ";"; i++ {
		constant := q.literalAt(i) != ""
		switch before := q.textAt(i - 1); {
		case q.signAt(i) == "=" && q.literalAt(i-1) != "" && q.literalAt(i-1) == q.literalAt(i+1):
			return true
		case constant && q.literalAt(i) != "string" && (before == "where" || before == "or" || before == "not") && q.signAt(i+1) != "=":
			return true
		}
	}
	return false
}

// literalAt returns the literal at i: a number, true or false as written, or "string" for any string. It returns ""
// if there is no literal.
func (q *queryText) literalAt(i int) string {
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

// isExcepted reports whether a reserved word at i changes nothing there. Examples are ON DELETE CASCADE, SHOW CREATE
// TABLE, and the functions replace, insert and truncate.
func (q *queryText) isExcepted(i int, w string) bool {
	before, after := q.textAt(i-1), q.signAt(i+1)
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

// judgePragma judges SQLite's PRAGMA at i. It counts as writing unless the pragma is known to read only.
func (q *queryText) judgePragma(i int) {
	name := q.textAt(i + 1)
	if q.signAt(i+2) == "." {
		name = q.textAt(i + 3)
	}
	if !readingPragmas[name] || q.hasSign("=") {
		q.raiseEffect(core.EffectWrite, "pragma", false)
	}
}

// judgeFunction judges a function call at i. An unknown function counts as irreversible.
func (q *queryText) judgeFunction(i int, w string) {
	if q.textAt(i-1) == "pragma" {
		return
	}
	if q.kind == core.EffectIrreversible { // only the grade can rise
		q.grade = max(q.grade, gradeText(w))
		return
	}
	if w == "create" || w == "merge" && (q.first == w || q.graph) || w == "conflict" && q.textAt(i-1) == "on" && q.first == "insert" {
		return // CREATE (n), MERGE (n), ON CONFLICT (id)
	}
	if beforeParen[w] || pureFunctions[w] && q.signAt(i-1) != "." || q.isCallName(i) {
		return
	}
	for _, prefix := range purePrefixes {
		if strings.HasPrefix(w, prefix) && judgeName(w).kind == core.EffectRead {
			return
		}
	}
	if q.signAt(i-1) == "." && (q.textAt(i-2) == "pg_catalog" || q.textAt(i-2) == "information_schema") && pureFunctions[w] {
		return
	}
	q.raiseEffect(core.EffectIrreversible, "the function "+w, false)
}

// isCallName reports whether the name at i, which a parenthesis follows, introduces a list of columns and not a
// function call. Examples are t(a, b) AS (…), AS t(a, b), OVER w (…) and INSERT INTO s.t (a, b).
func (q *queryText) isCallName(i int) bool {
	start := i
	for q.signAt(start-1) == "." {
		start -= 2
	}
	switch before := q.textAt(start - 1); before {
	case "as", "table", "into", "window", "references":
		return true
	case "exists", "on", "using", "key", "index":
		if q.first == "create" && !q.selects {
			return true
		}
	}
	depth := 0
	for k := i + 1; k < len(q.tokens); k++ {
		switch q.signAt(k) {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return q.textAt(k+1) == "as" && (q.signAt(k+2) == "(" || q.textAt(k+2) == "materialized" || q.textAt(k+2) == "not")
			}
		}
	}
	return false
}

func (q *queryText) textAt(i int) string {
	if i < 0 || i >= len(q.tokens) || q.tokens[i].kind != tokenWord {
		return ""
	}
	return q.tokens[i].text
}

func (q *queryText) signAt(i int) string {
	if i < 0 || i >= len(q.tokens) || q.tokens[i].kind != tokenSign {
		return ""
	}
	return q.tokens[i].text
}

// maxStatement bounds how many tokens after a word are examined. Without a bound, the time would grow with the square
// of the query's length.
const maxStatement = 1 << 10

// hasWordAhead reports whether a word is among the next maxStatement tokens of the statement.
func (q *queryText) hasWordAhead(i int, word string) bool {
	for end := i + maxStatement; i < min(end, len(q.tokens)) && q.signAt(i) != ";"; i++ {
		if q.textAt(i) == word {
			return true
		}
	}
	return false
}

func (q *queryText) hasSign(sign string) bool {
	for i := range q.tokens {
		if q.signAt(i) == sign {
			return true
		}
	}
	return false
}

// mentionsQuery returns the effect of SQL statements that a text mentions, although the text as a whole may be no
// query. It recognises statements that change data by their form, such as DELETE FROM x or UPDATE x SET. It is used
// for arguments of tools whose definition does not mention queries.
func mentionsQuery(text string) textJudgement {
	if len(text) > maxQuery {
		text = text[:maxQuery]
	}
	var j textJudgement
	for _, d := range dialects {
		q := queryText{tokens: tokenizeQuery(d, text)}
		for i, t := range q.tokens {
			if t.kind == tokenWord && q.signAt(i-1) != "." && q.isWellFormed(i, t.text) && reserved[t.text] != unknown {
				q.judgeAnywhere(i, t.text)
			}
		}
		if q.verb != "" {
			j.raiseJudgement(q.textJudgement)
		}
	}
	return j.gradeQuery(text)
}

// raiseUnknown raises the judgement because of a statement that is not known.
func (q *queryText) raiseUnknown() {
	q.raiseEffect(core.EffectIrreversible, "a statement that is not known", false)
	q.strange = true
}

// gradeQuery returns the judgement of a query with the grade of an irreversible query: GradeDeletion, because it loses
// data or may do so, or GradeMoney if it calls a function whose name says so, or if it has a statement that is not
// known and a word that says so.
func (j textJudgement) gradeQuery(text string) textJudgement {
	if j.kind != core.EffectIrreversible {
		return j
	}
	j.grade = max(j.grade, core.GradeDeletion)
	if j.strange {
		j.grade = max(j.grade, gradeStatement(text))
	}
	return j
}

// isWellFormed reports whether the word w at i and the words after it have the form of a statement, as DELETE and
// FROM do.
func (q *queryText) isWellFormed(i int, w string) bool {
	next := q.textAt(i + 1)
	switch w {
	case "delete":
		return next == "from"
	case "insert", "replace", "merge":
		return next == "into" || next == "overwrite" || next == "ignore"
	case "update":
		return q.hasWordAhead(i, "set") && next != ""
	case "drop", "alter", "create", "truncate":
		return objects[next]
	case "grant", "revoke":
		return q.hasWordAhead(i, "to") || q.hasWordAhead(i, "from")
	case "detach":
		return next == "delete"
	}
	return false
}
