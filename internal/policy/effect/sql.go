package effect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// dialect describes how a query language quotes strings and names and marks comments. Servers do not name their
// dialect, so each query is read in all of them, and the strictest reading counts.
type dialect struct {
	backslash   bool     // a backslash escapes in strings
	doubled     bool     // "x" is a string with the rules of strings, not a name
	nested      bool     // comments nest
	dollar      bool     // $tag$ quotes
	brackets    bool     // [x] is a name
	backtick    bool     // `x` is a name
	triple      bool     // """x""" is a string
	oracle      bool     // q'[x]' is a string
	executable  bool     // /*! x */ is code
	lineComment []string // what begins a comment to the end of the line; "-- " needs white space behind it
}

var dialects = []dialect{
	{nested: true, dollar: true, lineComment: []string{"--"}},                                              // PostgreSQL, Redshift
	{lineComment: []string{"--"}, brackets: true, backtick: true},                                          // SQLite
	{lineComment: []string{"--"}, nested: true, brackets: true},                                            // T-SQL
	{lineComment: []string{"--"}, oracle: true},                                                            // Oracle
	{backslash: true, doubled: true, backtick: true, executable: true, lineComment: []string{"-- ", "#"}},  // MySQL, MariaDB
	{doubled: true, backtick: true, executable: true, lineComment: []string{"-- ", "#"}},                   // MySQL without escapes
	{backtick: true, executable: true, lineComment: []string{"-- ", "#"}},                                  // MySQL with ANSI_QUOTES
	{backslash: true, doubled: true, backtick: true, triple: true, lineComment: []string{"--", "#"}},       // BigQuery
	{backslash: true, dollar: true, lineComment: []string{"--", "//"}},                                     // Snowflake
	{backslash: true, backtick: true, dollar: true, nested: true, lineComment: []string{"--", "#!", "# "}}, // ClickHouse
	{backslash: true, doubled: true, backtick: true, lineComment: []string{"//"}},                          // Cypher
	{backslash: true, doubled: true, backtick: true, nested: true, lineComment: []string{"--"}},            // Spark, Hive, Databricks
	{backslash: true, doubled: true, triple: true, lineComment: []string{"#"}},                             // SPARQL, GraphQL
}

// token represents a part of a query outside of comments.
type token struct {
	kind tokenKind
	text string // a word in lower case, or a sign; of strings and quoted names nothing
	raw  string // a word as it is written
}

type tokenKind uint8

const (
	tokenWord tokenKind = iota
	tokenSign
	tokenString
	tokenName   // a quoted name
	tokenBroken // a string, a name or a comment without an end
)

// scanner reads a text in one dialect.
type scanner struct {
	dialect
	text  string
	at    int
	depth int             // of executable comments
	open  map[string]bool // what is known not to end any more: a text of many quotes is read once
}

// tokenize splits a text into tokens as a dialect reads it.
func tokenize(d dialect, text string) []token {
	s := scanner{dialect: d, text: text, open: map[string]bool{}}
	var tokens []token
	for s.skipBlank() {
		tokens = append(tokens, s.next())
	}
	return tokens
}

// skipBlank skips white space and comments. It returns false at the end of the text.
func (s *scanner) skipBlank() bool {
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r < ' ':
			s.at += size
		case s.has("/*") && s.executable && (s.has("/*!") || s.has("/*M!") || s.has("/*m!")):
			s.depth++
			s.at += strings.IndexByte(s.text[s.at:], '!') + 1
			s.skipDigits()
		case s.depth > 0 && s.has("*/"):
			s.depth--
			s.at += 2
		case s.has("/*") && s.skipComment():
		case s.lineCommentHere():
			end := strings.IndexAny(s.text[s.at:], "\r\n")
			if end < 0 {
				end = len(s.text) - s.at
			}
			s.at += end
		default:
			return true
		}
	}
	return false
}

func (s *scanner) has(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

func (s *scanner) skipDigits() {
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
}

// lineCommentHere reports whether a comment to the end of the line begins here.
func (s *scanner) lineCommentHere() bool {
	for _, prefix := range s.lineComment {
		bare := strings.TrimSuffix(prefix, " ")
		if !s.has(bare) {
			continue
		}
		rest := s.text[s.at+len(bare):]
		if bare == prefix || rest == "" || rest[0] <= ' ' {
			return true
		}
	}
	return false
}

// skipComment skips the comment that begins here. It returns false if it has no end.
func (s *scanner) skipComment() bool {
	depth := 0
	for i := s.at; i+1 < len(s.text) && !s.open["*/"]; i++ {
		switch s.text[i : i+2] {
		case "/*":
			if depth == 0 || s.nested {
				depth++
				i++
			}
		case "*/":
			depth--
			i++
			if depth == 0 {
				s.at = i + 1
				return true
			}
		}
	}
	s.open["*/"] = true
	return false
}

// next reads a token. The text is not at its end, and not at white space or a comment.
func (s *scanner) next() token {
	c := s.text[s.at]
	switch {
	case s.triple && (s.has(`"""`) || s.has("'''")):
		return s.until(s.text[s.at:s.at+3], s.text[s.at:s.at+3], s.backslash, false, tokenString)
	case s.oracle && (c == 'q' || c == 'Q') && len(s.text) > s.at+2 && s.text[s.at+1] == '\'':
		return s.until(s.text[s.at:s.at+3], closing(s.text[s.at+2])+"'", false, false, tokenString)
	case c == '\'':
		return s.until("'", "'", s.backslash, true, tokenString)
	case (c == 'e' || c == 'E') && s.dollar && len(s.text) > s.at+1 && s.text[s.at+1] == '\'':
		return s.until(s.text[s.at:s.at+2], "'", true, true, tokenString)
	case c == '"' && s.doubled:
		return s.until(`"`, `"`, s.backslash, true, tokenString)
	case c == '"':
		return s.until(`"`, `"`, false, true, tokenName)
	case c == '`' && s.backtick:
		return s.until("`", "`", false, true, tokenName)
	case c == '[' && s.brackets:
		return s.until("[", "]", false, true, tokenName)
	case c == '$' && s.dollar && s.dollarTag() != "":
		return s.until(s.dollarTag(), s.dollarTag(), false, false, tokenString)
	}
	return s.wordOrSign()
}

func closing(open byte) string {
	if i := strings.IndexByte("([{<", open); i >= 0 {
		return ")]}>"[i : i+1]
	}
	return string(rune(open))
}

// dollarTag returns the $tag$ that begins here, "" if none does.
func (s *scanner) dollarTag() string {
	end := strings.IndexByte(s.text[s.at+1:], '$')
	if end < 0 {
		return ""
	}
	tag := s.text[s.at+1 : s.at+1+end]
	for i, r := range tag {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return ""
		}
	}
	return s.text[s.at : s.at+end+2]
}

// until reads what is quoted. If it has no end, only its beginning is read, so that what
// follows is judged as code.
func (s *scanner) until(begin, end string, backslash, doubles bool, kind tokenKind) token {
	for i := s.at + len(begin); i < len(s.text) && !s.open[end]; i++ {
		switch {
		case backslash && s.text[i] == '\\':
			i++
		case strings.HasPrefix(s.text[i:], end):
			i += len(end)
			if doubles && strings.HasPrefix(s.text[i:], end) {
				continue
			}
			s.at = i
			return token{kind: kind}
		}
	}
	s.open[end] = true
	s.at += len(begin)
	return token{kind: tokenBroken}
}

func (s *scanner) wordOrSign() token {
	start := s.at
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		if r != '_' && r != '@' && (r != '$' || s.at == start) && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.Mn, r) {
			break
		}
		s.at += size
	}
	if s.at == start {
		_, size := utf8.DecodeRuneInString(s.text[s.at:])
		s.at += size
		return token{kind: tokenSign, text: s.text[start:s.at]}
	}
	return token{tokenWord, strings.ToLower(s.text[start:s.at]), s.text[start:s.at]}
}
