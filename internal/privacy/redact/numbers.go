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
		s.noteFull()
	}
}

// noteFull records that a value may not be found again because there is no room for it.
func (s *Session) noteFull() {
	if s.known.IsFull() {
		s.full.Store(true)
	}
}

// rememberSealed adds a value that a server has received, so that it is found if the server repeats it in a text. Values
// of types with a form of their own are found anyway.
func (s *Session) rememberSealed(t pii.Type, value string) {
	switch t {
	case pii.Email, pii.IP, pii.MAC, pii.IBAN:
		return
	}
	if s.screen.modes[t] != Sealed {
		return
	}
	if isPlainWord(value) || isShortNumber(value) { // such as the password "status" or "2024"
		s.known.AddExact(t, value)
	} else {
		s.known.AddSealed(t, value)
	}
	s.noteFull()
}

// isPlainWord reports whether a value could be a word of a language, or the name of a field.
func isPlainWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' })
}

// isShortNumber reports whether a value has no letters and so few digits that it could be a count, a year or a price.
func isShortNumber(value string) bool {
	digits := 0
	for _, r := range value {
		if unicode.IsLetter(r) {
			return false
		}
		if unicode.IsDigit(r) {
			digits++
		}
	}
	return digits < longNumber
}

// longNumber is the number of digits from which a sealed number is found in any text.
const longNumber = 7

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
