package redact

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"retort/internal/core"
)

// tokensOf passes texts to a session as a server's result. It returns the tokens that a program then sees in their
// place.
func tokensOf(t *testing.T, s *Session, server string, texts ...string) []string {
	t.Helper()
	document, err := json.Marshal(texts)
	if err != nil {
		t.Fatal(err)
	}
	var tokens []string
	if err := json.Unmarshal([]byte(incoming(t, s, server, string(document))), &tokens); err != nil {
		t.Fatal(err)
	}
	return tokens
}

func TestRanks(t *testing.T) {
	s := open(t, Options{})
	mail := tokensOf(t, s, "crm", "bob@corp.example", "ann@corp.example", "BOB@corp.example")
	phone := tokensOf(t, s, "crm", "+49 30 901820")
	own, err := s.RedactProgram(`"zoe@corp.example"`)
	if err != nil {
		t.Fatal(err)
	}
	own = own[1 : len(own)-1]
	ranks := func(tokens ...string) string {
		r, refused := s.RankValues(tokens)
		if refused != nil {
			return string(refused.Kind)
		}
		return fmt.Sprint(r)
	}
	for _, c := range []struct {
		tokens []string
		want   string
	}{
		{mail, "[1 0 1]"},
		{[]string{mail[0], "undefined", mail[1], ""}, "[1 2 0 2]"},
		{[]string{"b", "A", "a"}, "[1 0 0]"}, // nothing personal among them
		{[]string{mail[0], "ann"}, "invalid_arguments"},
		{[]string{mail[0], "ann@corp.exampl"}, "invalid_arguments"},
		{[]string{mail[0], " " + mail[1]}, "invalid_arguments"},
		{[]string{mail[0], phone[0]}, "invalid_arguments"},
		{[]string{mail[0], own}, "policy"},
		{[]string{mail[0], "[EMAIL_99]"}, "invalid_arguments"},
	} {
		if got := ranks(c.tokens...); got != c.want {
			t.Errorf("%q: %s, want %s", c.tokens, got, c.want)
		}
	}
}

func TestEquals(t *testing.T) {
	s := open(t, Options{})
	mail := tokensOf(t, s, "crm", "bob@corp.example", "BOB@corp.example", "ann@corp.example")
	for _, c := range []struct{ a, b, want string }{
		{mail[0], mail[1], "true"}, {mail[0], mail[2], "false"}, {mail[0], mail[0], "true"}, {"a b", "AB", "true"},
		{mail[0], "bob@corp.example", "invalid_arguments"}, {"bob", mail[0], "invalid_arguments"},
	} {
		got := ""
		if equal, refused := s.EqualValues(c.a, c.b); refused != nil {
			got = string(refused.Kind)
		} else {
			got = fmt.Sprint(equal)
		}
		if got != c.want {
			t.Errorf("%s, %s: %s, want %s", c.a, c.b, got, c.want)
		}
	}
}

// TestValuesAreNotReadByComparing checks that a program cannot find a hidden value by binary search, comparing its
// token with tokens for values that the program chose.
func TestValuesAreNotReadByComparing(t *testing.T) {
	s := open(t, Options{})
	const secret = "m.kowalska@corp.example"
	target := tokensOf(t, s, "crm", secret)[0]
	const letters = "abcdefghijklmnopqrstuvwxyz"
	known := ""
	var refused *core.Error
	for len(known) < len(secret) && refused == nil {
		var probes []string
		for _, l := range letters {
			probes = append(probes, known+string(l)+"@corp.example")
		}
		tokens := append(tokensOf(t, s, "echo", probes...), target)
		var ranks []int
		if ranks, refused = s.RankValues(tokens); refused == nil {
			below := slices.IndexFunc(ranks[:len(letters)], func(r int) bool { return r > ranks[len(letters)] })
			known += string(letters[max(0, below-1)])
		}
	}
	if refused == nil || !errors.Is(refused, ErrProbing) || len(known) > 5 {
		t.Errorf("%d letters were found; %v", len(known), refused)
	}
	if _, refused := s.RankValues([]string{target, tokensOf(t, s, "echo", "zzz@corp.example")[0]}); refused == nil || !errors.Is(refused, ErrProbing) {
		t.Errorf("another comparison: %v", refused)
	}
}

// TestSessionsShareABudget checks that all sessions of a principal share one comparison budget, although each session
// has its own token for a value.
func TestSessionsShareABudget(t *testing.T) {
	first := open(t, Options{})
	compare := func(s *Session, round int) *core.Error {
		var texts []string
		for i := range 64 {
			texts = append(texts, fmt.Sprintf("u%d.%d@corp.example", round, i))
		}
		_, refused := s.RankValues(tokensOf(t, s, "crm", append(texts, "ann@corp.example")...))
		return refused
	}
	for round := range 10 {
		s, err := first.screen.OpenSession(SessionName("", fmt.Sprint("session ", round)))
		if err != nil {
			t.Fatal(err)
		}
		if refused := compare(s, round); (refused != nil) != (round >= 3) {
			t.Errorf("session %d: %v", round, refused)
		}
	}
	other, err := first.screen.OpenSession(SessionName("bob", "session 0"))
	if err != nil {
		t.Fatal(err)
	}
	if refused := compare(other, 0); refused != nil {
		t.Errorf("another principal: %v", refused)
	}
}

// TestSortingAgain checks that sorting the same list again, or only some of its values, is never refused, because
// that reveals nothing new.
func TestSortingAgain(t *testing.T) {
	s := open(t, Options{})
	var texts []string
	for i := range 1000 {
		texts = append(texts, fmt.Sprintf("user%d@corp.example", i))
	}
	tokens := tokensOf(t, s, "crm", texts...)
	for i := range 100 {
		if _, refused := s.RankValues(tokens[i:]); refused != nil {
			t.Fatal(refused)
		}
	}
}
