package tsc

import "github.com/microsoft/typescript-go/internal/ast"

// isHeader reports whether the parentheses after a keyword are a statement's header, as in if (a), and not an
// operand.
func isHeader(k ast.Kind) bool {
	switch k {
	case ast.KindIfKeyword, ast.KindWhileKeyword, ast.KindForKeyword, ast.KindWithKeyword, ast.KindSwitchKeyword, ast.KindCatchKeyword:
		return true
	}
	return false
}

// startsBlock reports whether a brace after a token begins a block of statements.
func startsBlock(k ast.Kind) bool {
	switch k {
	case ast.KindUnknown, ast.KindSemicolonToken, ast.KindOpenBraceToken, ast.KindCloseBraceToken, ast.KindCloseParenToken,
		ast.KindEqualsGreaterThanToken, ast.KindElseKeyword, ast.KindTryKeyword, ast.KindFinallyKeyword, ast.KindDoKeyword:
		return true
	}
	return false
}

// isOperand reports whether a token is a complete operand.
func isOperand(k ast.Kind) bool {
	switch k {
	case ast.KindIdentifier, ast.KindPrivateIdentifier, ast.KindNumericLiteral, ast.KindBigIntLiteral, ast.KindStringLiteral,
		ast.KindRegularExpressionLiteral, ast.KindNoSubstitutionTemplateLiteral,
		ast.KindThisKeyword, ast.KindSuperKeyword, ast.KindNullKeyword, ast.KindTrueKeyword, ast.KindFalseKeyword:
		return true
	}
	return false
}

func isKeyword(k ast.Kind) bool { return ast.KindFirstKeyword <= k && k <= ast.KindLastKeyword }

// isInfix reports whether a keyword can stand between two parts of one expression or statement, such as instanceof,
// as, of or catch. The part after such a keyword does not begin a new statement.
func isInfix(k ast.Kind) bool {
	switch k {
	case ast.KindInKeyword, ast.KindInstanceOfKeyword, ast.KindAsKeyword, ast.KindSatisfiesKeyword, ast.KindExtendsKeyword,
		ast.KindOfKeyword, ast.KindIsKeyword, ast.KindFromKeyword, ast.KindImplementsKeyword, ast.KindCatchKeyword, ast.KindFinallyKeyword:
		return true
	}
	return false
}

// isContextual reports whether a keyword is an operator in some places and a name in others.
func isContextual(k ast.Kind) bool {
	switch k {
	case ast.KindAwaitKeyword, ast.KindYieldKeyword, ast.KindOfKeyword, ast.KindAsKeyword, ast.KindSatisfiesKeyword, ast.KindIsKeyword,
		ast.KindKeyOfKeyword, ast.KindUniqueKeyword, ast.KindInferKeyword, ast.KindReadonlyKeyword, ast.KindAssertsKeyword, ast.KindAsyncKeyword:
		return true
	}
	return false
}

// isName reports whether a keyword can be a complete operand, as a name or type.
func isName(k ast.Kind) bool {
	return k > ast.KindLastReservedWord && k <= ast.KindLastKeyword && !isContextual(k)
}

// opening returns the kind of the opening bracket that matches a closing one.
func opening(k ast.Kind) ast.Kind {
	switch k {
	case ast.KindCloseParenToken:
		return ast.KindOpenParenToken
	case ast.KindCloseBracketToken:
		return ast.KindOpenBracketToken
	case ast.KindTemplateTail:
		return ast.KindTemplateHead
	}
	return ast.KindOpenBraceToken
}
