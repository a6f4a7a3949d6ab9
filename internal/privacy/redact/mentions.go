package redact

import (
	"slices"
	"strings"
	"unicode"
)

// MentionMatcher returns a function that reports whether a text mentions a person whose data is to be erased. It
// searches for the given texts, ignoring case, blanks and punctuation, and also inside JSON and code. Texts of fewer
// than six letters and digits must occur as whole words, because they occur inside many other words.
func MentionMatcher(subjects ...string) func(text string) bool {
	var wanted [][]rune
	for _, s := range subjects {
		if letters, _ := wordLetters(s); len(letters) > 0 {
			wanted = append(wanted, letters)
		}
	}
	return func(text string) bool {
		return hasMention(text, wanted) || strings.ContainsRune(text, '\\') && hasMention(removeEscapes(text), wanted)
	}
}

const standsAlone = 6

func hasMention(text string, wanted [][]rune) bool {
	letters, edges := wordLetters(text)
	for _, w := range wanted {
		for i := 0; i+len(w) <= len(letters); i++ {
			if letters[i] == w[0] && slices.Equal(letters[i:i+len(w)], w) && (len(w) >= standsAlone || edges[i] && edges[i+len(w)]) {
				return true
			}
		}
	}
	return false
}

// wordLetters returns the letters, digits and combining marks of a text in lower case. edges[i] reports whether a
// word begins before letters[i]. A last, additional element of edges stands for the end of the text. In scripts
// without spaces, every position counts as a word boundary.
func wordLetters(text string) (letters []rune, edges []bool) {
	edge := true
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			edge = true
			continue
		}
		dense := unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai)
		letters, edges = append(letters, unicode.ToLower(r)), append(edges, edge || dense)
		edge = dense
	}
	return letters, append(edges, true)
}

// removeEscapes decodes \uXXXX escapes of JSON or code, and replaces all other escapes with a space.
func removeEscapes(text string) string {
	var out strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			out.WriteByte(text[i])
			continue
		}
		i++
		if r, ok := codePoint(text[i:]); ok {
			out.WriteRune(r)
			i += 4
			continue
		}
		out.WriteByte(' ')
	}
	return out.String()
}

// codePoint decodes the part of a Unicode escape after its backslash: the letter u and four hexadecimal digits.
func codePoint(s string) (r rune, ok bool) {
	if len(s) < 5 || s[0] != 'u' {
		return 0, false
	}
	for _, c := range s[1:5] {
		digit := strings.IndexRune("0123456789abcdef", unicode.ToLower(c))
		if digit < 0 {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}
