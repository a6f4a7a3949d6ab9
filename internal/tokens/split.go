package tokens

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// charClass represents a set of character classes that occur in the splitting pattern of the encoding o200k_base.
type charClass uint8

const (
	upper   charClass = 1 << iota // \p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}
	lower                         // \p{Ll}\p{Lm}\p{Lo}\p{M}
	letter                        // \p{L}
	number                        // \p{N}
	newline                       // \r\n
	space                         // \s
)

var ascii = func() (table [utf8.RuneSelf]charClass) {
	for r := range table {
		table[r] = classOf(rune(r))
	}
	return table
}()

func classOf(r rune) charClass {
	switch {
	case r == '\r' || r == '\n':
		return newline | space
	case unicode.IsSpace(r):
		return space
	case unicode.IsLower(r) && unicode.Is(unicode.Ll, r):
		return lower | letter
	case unicode.In(r, unicode.Lu, unicode.Lt):
		return upper | letter
	case unicode.IsLetter(r):
		return upper | lower | letter
	case unicode.IsMark(r):
		return upper | lower
	case unicode.IsNumber(r):
		return number
	}
	return 0
}

// firstChar returns the class and the length in bytes of the first character of s, which must not be
// empty.
func firstChar(s string) (charClass, int) {
	if s[0] < utf8.RuneSelf {
		return ascii[s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classOf(r), n
}

// prefixLength returns the length of the longest prefix of s in which every character belongs to one of the given
// character classes.
func prefixLength(s string, of charClass) int {
	i := 0
	for i < len(s) {
		c, n := firstChar(s[i:])
		if c&of == 0 {
			break
		}
		i += n
	}
	return i
}

// firstMatch returns the length of the first match in s, which must not be empty, of the pattern with which
// o200k_base splits text into pieces. Tokens do not cross the borders of pieces, and the matches cover every text
// without gaps. The pattern, one alternative per line:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func firstMatch(s string) int {
	c, n := firstChar(s)
	if word := wordLength(s, c, n); word > 0 {
		return word + contractionLength(s[word:])
	}
	switch {
	case c&number != 0:
		return numberLength(s)
	case s[0] == ' ':
		if more := signLength(s[1:]); more > 0 {
			return 1 + more
		}
		return blankLength(s)
	case c&space != 0:
		return blankLength(s)
	}
	return signLength(s)
}

// wordLength returns the length of the word at the start of s, without a contraction such as 's at its end. It
// matches the first two alternatives of the pattern that firstMatch describes. c and n must be the results of
// firstChar(s).
func wordLength(s string, c charClass, n int) int {
	leads := c&(newline|letter|number) == 0
	for _, match := range [...]func(string) int{lowerEnding, upperBeginning} {
		if leads {
			if rest := match(s[n:]); rest > 0 {
				return n + rest
			}
		}
		if whole := match(s); whole > 0 {
			return whole
		}
	}
	return 0
}

// lowerEnding returns the length of the longest match of upper*lower+ at the start of s, so the match ends with a
// character of the class lower. The classes upper and lower are the two in the first alternative of the pattern that
// firstMatch describes.
func lowerEnding(s string) int {
	i, both := 0, 0 // both: the end of the last character that is of both classes
	for i < len(s) {
		c, n := firstChar(s[i:])
		if c&upper == 0 {
			break
		}
		i += n
		if c&lower != 0 {
			both = i
		}
	}
	if more := prefixLength(s[i:], lower); more > 0 {
		return i + more
	}
	return both
}

// upperBeginning returns the length of a match of upper+lower* at the start of s, with the classes upper and lower as
// in lowerEnding. The caller must have found no match with lowerEnding, so no character of the class lower can
// follow.
func upperBeginning(s string) int { return prefixLength(s, upper) }

// contractionLength returns the length of a contraction such as 's at the start of s. The long s (ſ) counts as an s.
func contractionLength(s string) int {
	if !strings.HasPrefix(s, "'") {
		return 0
	}
	for _, end := range [...]string{"s", "t", "re", "ve", "m", "ll", "d", "\u017f"} {
		if rest := s[1:]; len(rest) >= len(end) && strings.EqualFold(rest[:len(end)], end) {
			return 1 + len(end)
		}
	}
	return 0
}

func numberLength(s string) int {
	i := 0
	for range 3 {
		if i == len(s) {
			break
		}
		c, n := firstChar(s[i:])
		if c&number == 0 {
			break
		}
		i += n
	}
	return i
}

// signLength returns the length of the punctuation at the start of s, with the line breaks and slashes after it: a
// match of [^\s\p{L}\p{N}]+[\r\n/]*.
func signLength(s string) int {
	i := 0
	for i < len(s) {
		c, n := firstChar(s[i:])
		if c&(space|letter|number) != 0 {
			break
		}
		i += n
	}
	if i == 0 {
		return 0
	}
	for i < len(s) && strings.IndexByte("\r\n/", s[i]) >= 0 {
		i++
	}
	return i
}

// blankLength returns the length of the white space at the start of s that forms one piece. It matches the last three
// alternatives of the pattern that firstMatch describes.
func blankLength(s string) int {
	end, last, lines := 0, 0, 0 // last: where the last character begins
	for end < len(s) {
		c, n := firstChar(s[end:])
		if c&space == 0 {
			break
		}
		last, end = end, end+n
		if c&newline != 0 {
			lines = end
		}
	}
	switch {
	case lines > 0:
		return lines
	case end == len(s) || last == 0:
		return end
	}
	return last
}
