package redact

import (
	"fmt"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"

	"retort/internal/privacy/offsets"
	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// numberIndex finds the token of a phone number by its digits, so that the same number in two spellings has one token.
type numberIndex struct {
	mu     sync.Mutex
	seed   maphash.Seed
	tokens offsets.ByHash // the number of the token by the hash of the digits
}

// rememberNumber adds a number that a server has sent, so that it is found again with other separators, or as a
// number of JSON. token is the number of its token.
func (s *Session) rememberNumber(t pii.Type, value string, token int) {
	if s.screen.modes[t] != Sealed || !pii.IsNumberType(t) {
		return
	}
	s.known.AddExact(t, value)
	digits := pii.NumberDigits(value)
	if t != pii.Phone || digits == "" {
		return
	}
	s.numbers.mu.Lock()
	defer s.numbers.mu.Unlock()
	if s.numbers.seed == (maphash.Seed{}) {
		s.numbers.seed = maphash.MakeSeed()
	}
	h := maphash.String(s.numbers.seed, digits)
	if s.numbers.tokens.FindOffset(h, func(uint32) bool { return true }) == 0 {
		s.numbers.tokens.InsertOffset(h, uint32(token))
	}
}

// knownSpelling returns the spelling under which a phone number has its token, or the value itself if it has none.
func (s *Session) knownSpelling(value string) string {
	digits := pii.NumberDigits(value)
	if digits == "" {
		return value
	}
	s.numbers.mu.Lock()
	defer s.numbers.mu.Unlock()
	if s.numbers.seed == (maphash.Seed{}) {
		return value
	}
	found := value
	s.numbers.tokens.FindOffset(maphash.String(s.numbers.seed, digits), func(token uint32) bool {
		e, ok := s.tokens.ResolveToken(fmt.Sprintf("[PHONE_%d]", token))
		if !ok || pii.NumberDigits(e.Value) != digits {
			return false
		}
		found = e.Value
		return true
	})
	return found
}

// mintValue returns the token of a value, and remembers numbers.
func (m *documentVault) mintValue(v pii.FoundValue) (string, error) {
	e := vault.TokenEntry{Type: string(v.Type), Value: v.Text, Digits: v.Number || m.bare, From: m.from}
	if !pii.IsNumberType(v.Type) || m.modeOf(v.Type) != Sealed {
		return m.tokens.MintToken(e)
	}
	if v.Type == pii.Phone {
		e.Value = m.knownSpelling(v.Text)
	}
	token, err := m.tokens.MintToken(e)
	if err != nil || m.known.HasExact(v.Text) {
		return token, err
	}
	if number, bad := strconv.Atoi(strings.Trim(token[strings.LastIndexByte(token, '_')+1:], "]")); bad == nil {
		m.rememberNumber(v.Type, v.Text, number)
	}
	return token, nil
}
