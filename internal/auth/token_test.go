package auth

import (
	"strings"
	"testing"
)

func TestTypos(t *testing.T) {
	token := newToken()
	if _, err := parseToken(token); err != nil {
		t.Fatal(err)
	}
	wrong := []string{"", tokenPrefix, token[1:], token[:len(token)-1], token + "a", strings.ToUpper(token), " " + token, strings.Replace(token, tokenPrefix, "rtk-", 1)}
	for i := len(tokenPrefix); i < len(token); i++ {
		other := byte('a')
		if token[i] == other {
			other = 'b'
		}
		wrong = append(wrong, token[:i]+string(other)+token[i+1:])
	}
	for _, w := range wrong {
		if _, err := parseToken(w); err == nil {
			t.Errorf("%q counts", w)
		}
	}
}

// FuzzParseToken checks that parseToken accepts only texts in the exact form of a token.
func FuzzParseToken(f *testing.F) {
	token := newToken()
	for _, seed := range []string{"", tokenPrefix, token, token[:20], strings.Repeat("rtk_", 100), tokenPrefix + strings.Repeat("a", encodedSize), "eyJhbGciOiJub25lIn0.e30."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		sum, err := parseToken(text)
		if err != nil {
			return
		}
		if len(text) != len(tokenPrefix)+encodedSize || sum != digestOf(text) || strings.TrimLeft(text[len(tokenPrefix):], "abcdefghijklmnopqrstuvwxyz234567") != "" {
			t.Errorf("%q is a token", text)
		}
	})
}
