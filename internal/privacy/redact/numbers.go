package redact

import (
	"strings"
	"unicode"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// rememberNumber adds a number of a sealed type, so that it is found again with other separators, or as a number of
// JSON. Each spelling has a token of its own, so that a server gets a value as it has sent it.
func (s *Session) rememberNumber(t pii.Type, value string) {
	if s.screen.modes[t] == Sealed && pii.IsNumberType(t) {
		s.known.AddExact(t, value)
	}
}

// rememberSealed adds a value that a server has received, so that it is found if the server repeats it in a text.
// Values of types with a form of their own are found anyway.
func (s *Session) rememberSealed(t pii.Type, value string) {
	switch t {
	case pii.Email, pii.IP, pii.MAC, pii.IBAN:
		return
	}
	if s.screen.modes[t] != Sealed {
		return
	}
	if isPlainWord(value) { // such as the password "status", which is also the name of a field
		s.known.AddExact(t, value)
		return
	}
	s.known.AddSealed(t, value)
}

// isPlainWord reports whether a value could be a word of a language, or the name of a field.
func isPlainWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' })
}

// isSameValue reports whether two values of one type are equal. Numbers are compared by their digits, and other values
// without case, blanks and some marks.
func isSameValue(x, y vault.TokenEntry) bool {
	if t := pii.Type(x.Type); t == pii.Type(y.Type) && pii.IsNumberType(t) {
		if digits := pii.NumberDigits(x.Value); digits != "" {
			return digits == pii.NumberDigits(y.Value)
		}
	}
	return plainText(x.Value) == plainText(y.Value)
}
