package effect

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// queryDialect describes how a query language quotes strings and names, and how it marks comments. Tools do not say
// which dialect they use. Therefore each query is read in all dialects, and the strictest judgement counts.
type queryDialect struct {
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

var dialects = []queryDialect{
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

// queryToken holds one token of a query: a word, a sign, a string or a quoted name.
type queryToken struct {
	kind queryTokenKind
	text string // a word in lower case, or a sign; of strings and quoted names nothing
	raw  string // a word as it is written
}

type queryTokenKind uint8

const (
	tokenWord queryTokenKind = iota
	tokenSign
	tokenString
	tokenName   // a quoted name
	tokenBroken // a string, a name or a comment without an end
)

// tokenScanner splits a query into tokens according to one dialect.
type tokenScanner struct {
	queryDialect
	text  string
	at    int
	depth int             // of executable comments
	open  map[string]bool // what is known not to end any more: a text of many quotes is read once
}

// tokenizeQuery returns the tokens of a text as the dialect reads it, without comments and white space.
func tokenizeQuery(d queryDialect, text string) []queryToken {
	s := tokenScanner{queryDialect: d, text: text, open: map[string]bool{}}
	var tokens []queryToken
	for s.skipBlank() {
		tokens = append(tokens, s.nextToken())
	}
	return tokens
}

// skipBlank skips white space and comments. It returns false at the end of the text.
func (s *tokenScanner) skipBlank() bool {
	for s.at < len(s.text) {
		r, size := utf8.DecodeRuneInString(s.text[s.at:])
		switch {
		case unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) || r < ' ':
			s.at += size
		case s.hasPrefix("/*") && s.executable && (s.hasPrefix("/*!") || s.hasPrefix("/*M!") || s.hasPrefix("/*m!")):
			s.depth++
			s.at += strings.IndexByte(s.text[s.at:], '!') + 1
			s.skipDigits()
		case s.depth > 0 && s.hasPrefix("*/"):
			s.depth--
			s.at += 2
		case s.hasPrefix("/*") && s.skipComment():
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

func (s *tokenScanner) hasPrefix(prefix string) bool { return strings.HasPrefix(s.text[s.at:], prefix) }

func (s *tokenScanner) skipDigits() {
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
}

// lineCommentHere reports whether a line comment begins at the current position.
func (s *tokenScanner) lineCommentHere() bool {
	for _, prefix := range s.lineComment {
		bare := strings.TrimSuffix(prefix, " ")
		if !s.hasPrefix(bare) {
			continue
		}
		rest := s.text[s.at+len(bare):]
		if bare == prefix || rest == "" || rest[0] <= ' ' {
			return true
		}
	}
	return false
}

// skipComment skips the block comment that begins at the current position. It returns false if the comment does not
// end.
func (s *tokenScanner) skipComment() bool {
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

// nextToken reads a token. The current position must not be at the end of the text, at white space or at a comment.
func (s *tokenScanner) nextToken() queryToken {
	c := s.text[s.at]
	switch {
	case s.triple && (s.hasPrefix(`"""`) || s.hasPrefix("'''")):
		return s.readUntil(s.text[s.at:s.at+3], s.text[s.at:s.at+3], s.backslash, false, tokenString)
	case s.oracle && (c == 'q' || c == 'Q') && len(s.text) > s.at+2 && s.text[s.at+1] == '\'':
		return s.readUntil(s.text[s.at:s.at+3], closingQuote(s.text[s.at+2])+"'", false, false, tokenString)
	case c == '\'':
		return s.readUntil("'", "'", s.backslash, true, tokenString)
	case (c == 'e' || c == 'E') && s.dollar && len(s.text) > s.at+1 && s.text[s.at+1] == '\'':
		return s.readUntil(s.text[s.at:s.at+2], "'", true, true, tokenString)
	case c == '"' && s.doubled:
		return s.readUntil(`"`, `"`, s.backslash, true, tokenString)
	case c == '"':
		return s.readUntil(`"`, `"`, false, true, tokenName)
	case c == '`' && s.backtick:
		return s.readUntil("`", "`", false, true, tokenName)
	case c == '[' && s.brackets:
		return s.readUntil("[", "]", false, true, tokenName)
	case c == '$' && s.dollar && s.dollarTag() != "":
		return s.readUntil(s.dollarTag(), s.dollarTag(), false, false, tokenString)
	}
	return s.wordOrSign()
}

func closingQuote(open byte) string {
	if i := strings.IndexByte("([{<", open); i >= 0 {
		return ")]}>"[i : i+1]
	}
	return string(rune(open))
}

// dollarTag returns the opening $tag$ of a dollar-quoted string at the current position, or "" if none is found.
func (s *tokenScanner) dollarTag() string {
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

// readUntil reads a quoted text. If the closing quote is missing, it reads only the opening one, and the rest is
// judged as code.
func (s *tokenScanner) readUntil(begin, end string, backslash, doubles bool, kind queryTokenKind) queryToken {
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
			return queryToken{kind: kind}
		}
	}
	s.open[end] = true
	s.at += len(begin)
	return queryToken{kind: tokenBroken}
}

func (s *tokenScanner) wordOrSign() queryToken {
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
		return queryToken{kind: tokenSign, text: s.text[start:s.at]}
	}
	return queryToken{tokenWord, strings.ToLower(s.text[start:s.at]), s.text[start:s.at]}
}
