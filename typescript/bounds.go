package tsc

import (
	"fmt"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/core"
	"github.com/microsoft/typescript-go/internal/scanner"
)

// admit rejects programs on which the compiler could overflow its stack. The compiler recurses over the syntax tree,
// and a Go program cannot recover from a stack overflow. admit itself reads tokens without recursion and computes an
// upper bound of the tree's depth.
func (l Limits) admit(text string, kind Kind) error {
	if len(text) > l.Source {
		return &Refusal{ErrTooLarge, 0, fmt.Sprintf("it has %d bytes; at most %d are allowed", len(text), l.Source)}
	}
	g := newGauge(text, kind, l)
	for g.next() {
	}
	if g.err == nil && (g.unmatched || len(g.levels) > 1) && signs(text) > maxUnmatched {
		return &Refusal{ErrUnclear, 0, "its brackets do not match"}
	}
	return g.err
}

// maxUnmatched bounds the brackets and operators in a program whose brackets do not match. After such a syntax error
// the parser may read the tokens differently from the gauge, whose bound of the tree's depth is then wrong. A program
// with no more brackets and operators than this cannot overflow the parser's stack in any case.
const maxUnmatched = 150_000

// maxPatterns bounds the brackets and operators inside regular expressions, because after a syntax error the parser
// may read them as code.
const maxPatterns = 5000

// maxExtends bounds how often extends occurs, because the compiler's time grows with the square of the length of an
// inheritance chain.
const maxExtends = 300

// level holds the state of a gauge, which bounds the depth of a syntax tree, for one open pair of brackets.
type level struct {
	open   ast.Kind
	header bool // the parentheses of if, while, for, with
	list   bool // commas separate elements; elsewhere they are operators
	chain  int  // operators that may be nested in each other since the last boundary
	before int  // chain at the last boundary, in case else continues it
}

// gauge reads the tokens of a program and maintains an upper bound of the depth of its syntax tree.
type gauge struct {
	scanner *scanner.Scanner
	kind    Kind
	limits  Limits
	err     error

	levels   []level
	chains   int // sum of the levels' chains
	tokens   int
	extends  int
	patterns int
	last     ast.Kind
	previous ast.Kind // the one before last
	member   bool     // last is a name after a dot
	operand  bool     // last ends an operand, so that an operator follows
	newline  bool     // a line has ended since last

	unmatched bool // there was a closing bracket of another kind than the opening one
}

func newGauge(text string, kind Kind, limits Limits) *gauge {
	s := scanner.NewScanner()
	s.SetText(text)
	s.SetSkipTrivia(false)
	if kind == JavaScript {
		s.SetLanguageVariant(core.LanguageVariantJSX)
	}
	return &gauge{scanner: s, kind: kind, limits: limits, levels: []level{{}}}
}

func (g *gauge) top() *level { return &g.levels[len(g.levels)-1] }

// next reads one token. It returns false at the end and at an error.
func (g *gauge) next() bool {
	token := g.scanner.Scan()
	switch token {
	case ast.KindEndOfFile:
		return false
	case ast.KindNewLineTrivia:
		g.newline = true
		return true
	case ast.KindSingleLineCommentTrivia, ast.KindWhitespaceTrivia, ast.KindConflictMarkerTrivia:
		return true
	case ast.KindMultiLineCommentTrivia:
		g.comment(g.scanner.TokenText())
		return g.err == nil
	case ast.KindSlashToken, ast.KindSlashEqualsToken:
		token = g.slash(token)
	case ast.KindCloseBraceToken:
		if g.top().open == ast.KindTemplateHead {
			token = g.scanner.ReScanTemplateToken(false)
		}
	}
	g.tokens++
	g.count(token)
	g.check()
	g.member = g.behindDot()
	g.previous, g.last, g.newline = g.last, token, false
	return g.err == nil
}

func (g *gauge) behindDot() bool {
	return g.last == ast.KindDotToken || g.last == ast.KindQuestionDotToken
}

func (g *gauge) check() {
	switch {
	case g.err != nil:
	case g.tokens > g.limits.Tokens:
		g.refuse(ErrTooLarge, "it has more than %d words and symbols", g.limits.Tokens)
	case len(g.levels) > g.limits.Depth:
		g.refuse(ErrTooDeep, "brackets are nested more than %d deep", g.limits.Depth)
	case g.chains > g.limits.Chain:
		g.refuse(ErrTooDeep, "an expression or statement has more than %d operators in a row", g.limits.Chain)
	case g.patterns > maxPatterns:
		g.refuse(ErrTooLarge, "its regular expressions have more than %d characters", maxPatterns)
	case g.extends > maxExtends:
		g.refuse(ErrTooDeep, "extends occurs more than %d times", maxExtends)
	}
}

func (g *gauge) refuse(err error, reason string, args ...any) {
	line, _ := newLineTable(g.scanner.Text()).position(g.scanner.TokenStart())
	g.err = &Refusal{err, line, fmt.Sprintf(reason, args...)}
}

// count processes one token and updates the bound of the tree's depth.
func (g *gauge) count(token ast.Kind) {
	switch token {
	case ast.KindOpenParenToken, ast.KindOpenBracketToken, ast.KindOpenBraceToken, ast.KindTemplateHead:
		g.push(token)
	case ast.KindCloseParenToken, ast.KindCloseBracketToken, ast.KindCloseBraceToken, ast.KindTemplateTail:
		g.pop(token)
	case ast.KindTemplateMiddle:
		g.boundary()
		g.operand = false
	case ast.KindSemicolonToken:
		g.boundary()
		g.operand = false
	case ast.KindCommaToken:
		g.comma()
	case ast.KindExclamationToken, ast.KindPlusPlusToken, ast.KindMinusMinusToken:
		g.add() // postfix if it follows an operand: then operand stays true
		g.operand = g.operand && !g.newline
	case ast.KindNoSubstitutionTemplateLiteral:
		g.add()
		g.operand = true
	case ast.KindLessThanSlashToken:
		g.jsx()
	default:
		g.word(token)
	}
}

func (g *gauge) add() {
	g.top().chain++
	g.chains++
}

// boundary ends a statement or a list element. Operators after the boundary cannot be nested in those before it.
func (g *gauge) boundary() {
	t := g.top()
	g.chains -= t.chain
	t.before, t.chain = t.chain, 0
}

func (g *gauge) push(token ast.Kind) {
	l := level{open: token, list: true}
	switch token {
	case ast.KindOpenParenToken:
		l.header = !g.member && (isHeader(g.last) || g.last == ast.KindAwaitKeyword && g.previous == ast.KindForKeyword)
		l.list = g.operand
	case ast.KindOpenBraceToken:
		l.list = !startsBlock(g.last)
	}
	g.levels = append(g.levels, l)
	g.operand = false
}

func (g *gauge) pop(token ast.Kind) {
	l := *g.top()
	g.unmatched = g.unmatched || l.open != opening(token)
	if len(g.levels) == 1 {
		g.operand = true
		return
	}
	g.chains -= l.chain
	g.levels = g.levels[:len(g.levels)-1]
	g.add()
	g.operand = !l.header
}

func (g *gauge) comma() {
	if g.top().list {
		g.boundary()
	} else {
		g.add()
	}
	g.operand = false
}

// word processes a token that is a name, literal, keyword or operator.
func (g *gauge) word(token ast.Kind) {
	switch {
	case token == ast.KindRegularExpressionLiteral:
		g.patterns += signs(g.scanner.TokenText())
		g.operand = true
	case token == ast.KindCaseKeyword && !g.behindDot():
		g.boundary()
		g.operand = false
	case g.behindDot() && (token == ast.KindIdentifier || isKeyword(token)):
		g.operand = true
	case isOperand(token):
		g.start()
		g.operand = true
	case token == ast.KindElseKeyword:
		g.restore()
		g.add()
		g.operand = false
	case isKeyword(token):
		if token == ast.KindExtendsKeyword {
			g.extends++
		}
		if !isInfix(token) {
			g.start()
		}
		g.add()
		g.operand = isName(token)
	case token == ast.KindLessThanToken && !g.operand:
		g.jsx()
		g.add()
	default:
		g.add()
		g.operand = false
	}
}

// start is called at the beginning of an operand. If the token before it has completed another operand, the two
// belong to different statements or list elements, so start calls boundary.
func (g *gauge) start() {
	if g.operand {
		g.boundary()
	}
}

// restore undoes the last boundary when an "else" follows, because the statement that seemed to have ended then
// continues.
func (g *gauge) restore() {
	t := g.top()
	if t.chain < t.before {
		g.chains += t.before - t.chain
		t.chain = t.before
	}
}

// jsx rejects a JavaScript program with a token that could begin JSX, because JSX text has other token rules. In
// TypeScript the same token begins a type assertion and is allowed.
func (g *gauge) jsx() {
	if g.kind == JavaScript && g.err == nil {
		g.refuse(ErrUnclear, "it contains JSX, which is not supported here")
	}
}

// slash decides whether a slash is a division or begins a regular expression, as the parser would. If the token
// before the slash does not suffice to decide, it rejects the program. A wrong decision could make the gauge take
// code for a string.
func (g *gauge) slash(token ast.Kind) ast.Kind {
	unclear := g.last == ast.KindCloseBraceToken || g.last == ast.KindGreaterThanToken || isContextual(g.last) && !g.member
	switch {
	case unclear && !hasSlash(g.scanner.Text()[g.scanner.TokenEnd():]):
		return token
	case unclear:
		g.refuse(ErrUnclear, "it is unclear whether this slash begins a regular expression; put parentheses around the expression")
		return token
	case g.operand:
		return token
	}
	return g.scanner.ReScanSlashToken()
}

// hasSlash reports whether text contains a slash before the end of its first line.
func hasSlash(text string) bool {
	for i := 0; i < len(text) && text[i] != '\n' && text[i] != '\r'; i++ {
		if text[i] == '/' {
			return true
		}
	}
	return false
}

// comment rejects a program if a documentation comment has too many brackets and operators inside braces. The
// compiler parses the text in these braces as types.
func (g *gauge) comment(text string) {
	depth, count := 0, 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			depth++
		case '}':
			depth = max(depth-1, 0)
		}
		if depth > 0 && isSign(text[i]) {
			count++
		}
	}
	if count > 4*g.limits.Chain {
		g.refuse(ErrTooDeep, "a comment has more than %d characters in braces", 4*g.limits.Chain)
	}
}

// signs counts the bytes of text that would increase the depth of the tree if they were tokens, such as brackets.
func signs(text string) int {
	n := 0
	for i := 0; i < len(text); i++ {
		if isSign(text[i]) {
			n++
		}
	}
	return n
}

func isSign(b byte) bool {
	switch b {
	case '(', '[', '{', '<', '!', '?', '.', '*', '|', '&', '=', ':', '+', '-', '~', ',', '/', '%', '^', '`', '@':
		return true
	}
	return false
}
