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

// typedValue returns the type and value of a token. For a text that is not a token it returns the text itself.
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

// MaskToken returns a shortened form of a value that hides most of it: the first letter and the domain, or the last
// digits.
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

// AgeOf returns the whole years since a date of birth.
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

// RedactAndCountTypes returns a text as the model may see it, and how many values of each type were hidden.
func (s *Session) RedactAndCountTypes(text string) (string, map[string]int, error) {
	counted := &countingVault{modes: s.screen.modes, found: map[string]int{}}
	s.screen.scanner.ReplaceValues([]byte(text), s.known, counted)
	out, err := s.RedactOutgoing([]byte(text))
	return string(out), counted.found, err
}

// TokenOutlines returns each distinct token in the texts together with the shortened form of its value, in order. It is
// for the person who decides whether the values may be sent.
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

// ShowJSON does the same as Show in a JSON document.
func (s *Session) ShowJSON(document []byte) []byte {
	out, _ := s.replaceTokens(string(document), inJSON, math.MaxInt)
	return []byte(out)
}

// replaceTokens replaces the tokens in a text by their values, which spell encodes. ok is false if the result would
// exceed most bytes.
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

// SubjectMatcher returns a function that reports whether a value belongs to a person whose data is erased. A value
// belongs to the person if it equals one of the given texts, ignoring case, blanks and punctuation.
func SubjectMatcher(texts ...string) func(value string) bool {
	plain := map[string]bool{}
	for _, text := range texts {
		plain[plainText(text)] = true
	}
	return func(value string) bool { return plain[plainText(value)] }
}
