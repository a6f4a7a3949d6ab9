package redact

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

	"retort/internal/core"
	"retort/internal/privacy/pii"
)

// What follows computes on values for programs that have their tokens only, and answers
// nothing that is personal.

// typedValue returns the type and value behind a token. A text that is not a token is returned unchanged, with no
// type.
func (s *Session) typedValue(text string) (pii.Type, string, *core.Error) {
	e, isToken, err := s.resolveEntry(text)
	if err != nil {
		return "", "", err
	}
	if !isToken {
		return "", text, nil
	}
	return pii.Type(e.Type), e.Value, nil
}

// EmailDomain returns the domain of an e-mail address, in lower case.
func (s *Session) EmailDomain(token string) (string, *core.Error) {
	_, value, err := s.typedValue(token)
	if err != nil {
		return "", err
	}
	_, domain, ok := strings.Cut(value, "@")
	if !ok {
		return "", core.Errorf(core.KindInvalidArguments, "pii.domain", "the value is not an e-mail address")
	}
	return strings.ToLower(domain), nil
}

func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || strings.ContainsRune("-()/", r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

// MaskToken returns the value behind a token in a shortened form that hides most of it. For example, it keeps only
// the first letter and the domain, or only the last digits.
func (s *Session) MaskToken(token string) (string, *core.Error) {
	t, value, err := s.typedValue(token)
	if err != nil {
		return "", err
	}
	return valueOutline(t, value), nil
}

func valueOutline(t pii.Type, value string) string {
	if _, domain, ok := strings.Cut(value, "@"); ok && t == pii.Email {
		return "***@" + domain
	}
	show := 0
	switch t {
	case pii.CreditCard, pii.IBAN:
		show = 4
	case pii.Phone:
		show = 2
	}
	runes := []rune(value)
	for i, r := range runes {
		if i < len(runes)-show && (unicode.IsLetter(r) || unicode.IsDigit(r)) {
			runes[i] = '*'
		}
	}
	return string(runes)
}

// CountryOf returns the ISO 3166 country code of a phone number or IBAN, or "" if it is unknown.
func (s *Session) CountryOf(token string) (string, *core.Error) {
	t, value, err := s.typedValue(token)
	return s.screen.scanner.CountryOf(t, value), err
}

// AgeOf returns the number of whole years from a date of birth to now.
func (s *Session) AgeOf(token string, now time.Time) (int, *core.Error) {
	_, value, err := s.typedValue(token)
	if err != nil {
		return 0, err
	}
	for _, layout := range []string{
		"2006-01-02", time.RFC3339, "2006/01/02", "02.01.2006", "01/02/2006", "2 January 2006", "January 2, 2006",
	} {
		if born, bad := time.Parse(layout, value); bad == nil && !born.After(now) {
			years := now.Year() - born.Year()
			if cmp.Compare(now.Month(), born.Month()) < 0 || now.Month() == born.Month() && now.Day() < born.Day() {
				years--
			}
			return years, nil
		}
	}
	return 0, core.Errorf(core.KindInvalidArguments, "pii.age", "the value is not a date in a known format")
}

// RedactAndCountTypes replaces the personal data in a text before it is sent to the model, and returns how many
// values of each type it found.
func (s *Session) RedactAndCountTypes(text string) (string, map[string]int, error) {
	counted := &countingVault{modes: s.screen.modes, found: map[string]int{}}
	s.screen.scanner.ReplaceValues([]byte(text), s.known, counted)
	out, err := s.RedactOutgoing([]byte(text))
	return string(out), counted.found, err
}

// TokenOutlines returns one line for each distinct token in the texts: the token and a shortened form of its value.
// The lines are shown to the person who decides whether the values may be sent.
func (s *Session) TokenOutlines(texts ...[]byte) (lines []string) {
	for _, text := range texts {
		for _, f := range s.screen.scanner.FindTokens(nil, text) {
			token := string(text[f.Start:f.End])
			mask, err := s.MaskToken(token)
			if line := token + " " + mask; err == nil && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// HasTokens reports whether a text contains a token of this session.
func (s *Session) HasTokens(text []byte) bool {
	for _, f := range s.screen.scanner.FindTokens(nil, text) {
		if _, ok := s.tokens.ResolveToken(string(text[f.Start:f.End])); ok {
			return true
		}
	}
	return false
}

// ShowText replaces the session's tokens in a text by their values, for a person. The result must never reach a model.
func (s *Session) ShowText(text string) string {
	out, _ := s.replaceTokens(text, func(value string) string { return value }, math.MaxInt)
	return out
}

// ShowJSON works like ShowText for a JSON document: it escapes the values as JSON strings require.
func (s *Session) ShowJSON(document []byte) []byte {
	out, _ := s.replaceTokens(string(document), inJSON, math.MaxInt)
	return []byte(out)
}

// replaceTokens replaces the tokens in a text by their values. The function spell encodes each value for the text.
// The second result is false if the resulting text would exceed the given number of bytes.
func (s *Session) replaceTokens(text string, spell func(string) string, most int) (string, bool) {
	var out strings.Builder
	from := 0
	for _, f := range s.screen.scanner.FindTokens(nil, []byte(text)) {
		e, ok := s.tokens.ResolveToken(text[f.Start:f.End])
		if !ok {
			continue
		}
		value := spell(e.Value)
		if out.Len()+f.Start-from+len(value) > most {
			return "", false
		}
		out.WriteString(text[from:f.Start])
		out.WriteString(value)
		from = f.End
	}
	if out.Len()+len(text)-from > most {
		return "", false
	}
	return out.String() + text[from:], true
}

// SubjectMatcher returns a function that reports whether a value belongs to a person whose data is to be erased. A
// value belongs to the person if it equals one of the given texts, ignoring case, blanks and punctuation.
func SubjectMatcher(texts ...string) func(value string) bool {
	plain := map[string]bool{}
	for _, text := range texts {
		plain[plainText(text)] = true
	}
	return func(value string) bool { return plain[plainText(value)] }
}
