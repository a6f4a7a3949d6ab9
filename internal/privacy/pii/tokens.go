package pii

import "strings"

// tokenEnd returns the end of the text at i if it has the form of a token, such as [EMAIL_1]. Otherwise it returns 0.
func (s *Scanner) tokenEnd(text []byte, i int) int {
	j := i + 1
	for j < len(text) && j-i < 24 && (class[text[j]]&isUpper != 0 || text[j] == '_') {
		j++
	}
	digits := spanEnd(text[:min(len(text), j+20)], j, isDigit)
	if j-i < 4 || text[j-1] != '_' || digits == j || byteAt(text, digits) != ']' || !s.isType(text[i+1:j-1]) {
		return 0
	}
	return digits + 1
}

// isType reports whether a word is the name of a type of personal data, in any letter case.
func (s *Scanner) isType(word []byte) bool {
	for _, t := range s.types {
		if len(t) == len(word) && strings.EqualFold(string(t), string(word)) {
			return true
		}
	}
	return false
}

// FindTokens appends the ranges and types of all text in the form of a token.
func (s *Scanner) FindTokens(dst []TypedSpan, text []byte) []TypedSpan {
	for i := 0; i < len(text); i++ {
		if text[i] != '[' {
			continue
		}
		if end := s.tokenEnd(text, i); end > 0 {
			word := text[i+1 : end-1]
			word = word[:strings.LastIndexByte(string(word), '_')]
			dst = append(dst, TypedSpan{i, end, Type(strings.ToLower(string(word)))})
			i = end - 1
		}
	}
	return dst
}
