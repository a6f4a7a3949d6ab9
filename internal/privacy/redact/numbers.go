package redact

import (
	"strings"
	"unicode"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// rememberNumber adds a number of a sealed type to the known values, so that it is found again with other separators or
// as a JSON number. Each spelling has its own token, so that a server gets a value back in the spelling in which it
// sent it.
func (s *Session) rememberNumber(t pii.Type, value string) {
	if s.screen.modes[t] == Sealed && pii.IsNumberType(t) {
		s.known.AddExact(t, value)
	}
}

// rememberSealed adds a value of a sealed type that a server has received to the known values, so that it is found if
// the server repeats it in a text. E-mail addresses and other types with a fixed format are left out, because the
// scanner always finds them.
func (s *Session) rememberSealed(t pii.Type, value string) {
	switch t {
	case pii.Email, pii.IP, pii.MAC, pii.IBAN:
		return
	}
	if s.screen.modes[t] != Sealed {
		return
	}
	if isPlainWord(value) { // for example the password "status", which is also the name of a field
		s.known.AddExact(t, value)
		return
	}
	s.known.AddSealed(t, value)
}

// isPlainWord reports whether a value could be a word of a language or the name of a field. It has only letters,
// hyphens and underscores.
func isPlainWord(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return !unicode.IsLetter(r) && r != '_' && r != '-' })
}

// isSameValue reports whether two tokens stand for the same value in different spellings. Numbers of one type are
// compared by their digits. Other values are compared without letter case, blanks, hyphens, slashes and round brackets.
func isSameValue(x, y vault.TokenEntry) bool {
	if t := pii.Type(x.Type); t == pii.Type(y.Type) && pii.IsNumberType(t) {
		if digits := pii.NumberDigits(x.Value); digits != "" {
			return digits == pii.NumberDigits(y.Value)
		}
	}
	return plainText(x.Value) == plainText(y.Value)
}
