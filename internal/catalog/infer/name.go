package infer

import (
	"strings"
	"unicode"
)

// maxName bounds the length of a name, in bytes. A longer key of a JSON object does not count as a name that a
// programmer chose, and is not stored.
const maxName = 40

// IsName reports whether a key of an object may be stored, because it looks like a name that a programmer chose. Keys
// can also be ids, dates, addresses, paths, tokens or names of people; these are values and must not be stored.
func IsName(key string) bool {
	if key == "" || len(key) > maxName {
		return false
	}
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case isLetter(c), c == '_', c == '$', c == '@' && i == 0:
		case (unicode.IsDigit(rune(c)) || c == '-') && i > 0:
		default:
			return false
		}
	}
	return fewDigits(key) && !isHex(key) && !isCode(key) && !isJumble(key)
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isUpper(c byte) bool  { return 'A' <= c && c <= 'Z' }

// numberedWords lists words that end in a number, such as sha256.
var numberedWords = []string{"sha", "md", "int", "uint", "float", "utf", "base", "iso", "rfc", "aes", "rsa", "h", "x", "p"}

// fewDigits reports whether the digits in a key may belong to a name. It refuses numbers that probably identify
// something: three digits or more, except in names like sha256, or two digits after a separator, as in user_12.
func fewDigits(key string) bool {
	letters, digits, numbers := 0, 0, 0
	for i := 0; i < len(key); i++ {
		switch c := key[i]; {
		case isLetter(c):
			letters++
		case unicode.IsDigit(rune(c)):
			digits++
			if i == 0 || !unicode.IsDigit(rune(key[i-1])) {
				numbers++
			}
		}
	}
	if digits == 0 {
		return letters > 0
	}
	first := strings.IndexAny(key, "0123456789")
	stem := strings.ToLower(key[:first])
	for _, word := range numberedWords {
		if digits <= 3 && numbers == 1 && (stem == word || strings.HasSuffix(stem, "_"+word)) {
			return true
		}
	}
	apart := first > 0 && (key[first-1] == '_' || key[first-1] == '-')
	return digits == 1 && letters > 0 || digits == 2 && letters > 2 && numbers == 1 && !apart
}

// isHex reports whether a part of a name looks like a hexadecimal hash or a piece of one.
func isHex(key string) bool {
	const short = 7
	return len(key) >= short && strings.Trim(key, "0123456789abcdefABCDEF-") == ""
}

// isCode reports whether a part of a name looks like an access key: long, and only capitals and digits.
func isCode(key string) bool {
	const long, longer = 10, 20
	if strings.ContainsFunc(key, func(r rune) bool { return !isUpper(byte(r)) && !unicode.IsDigit(r) }) {
		return false
	}
	return len(key) >= longer || len(key) >= long && strings.ContainsAny(key, "0123456789")
}

// isJumble reports whether a key looks like random letters. It does if it has a part that is too long for a word,
// or many parts that are mostly single letters.
func isJumble(key string) bool {
	const longest, least, many = 24, 2, 4
	parts, letters, part := 0, 0, 0
	for i := 0; i < len(key); i++ {
		c := key[i]
		if !isLetter(c) {
			part = 0
			continue
		}
		if part == 0 || isUpper(c) != isUpper(key[i-1]) && isUpper(c) {
			parts, part = parts+1, 0
		}
		letters++
		if part++; part > longest {
			return true
		}
	}
	return parts > many && letters < parts*least
}
