package pii

import (
	"slices"
	"testing"
)

// TestKnownForms checks that spellings of one value have a form in common, and that different values have none.
func TestKnownForms(t *testing.T) {
	for _, c := range []struct {
		typ    Type
		x, y   string
		common bool
	}{
		{Name, "Kwame Mensah", "KwameMensah", true},
		{Name, "Kwame Mensah", "kwame-mensah", true},
		{Name, "Hanne Müller", "HANNE MU\u0308LLER", true},
		{Name, "Hanne Müller", "Ｈanne Mu\u0308l\u200bler", true},
		{Name, "Kwame Mensah", "Kwame Dubois", false},
		{Name, "🌸", "🌼", false},
		{DateOfBirth, "1960-05-10", "10 Mai 1960", true},
		{DateOfBirth, "1960-12-10", "10. Dezember 1960", true},
		{DateOfBirth, "1960-01-10", "10/01/60", true},
		{DateOfBirth, "1960-01-10", "19600110", true},
		{DateOfBirth, "1960-01-10", "1960-01-11", false},
		{Phone, "+1 202 555 0143", "2025550143", true},
		{Phone, "+49 89 1234567", "089 1234567", true},
		{Phone, "+49 89 1234567", "0049 (0)89 1234567", true},
		{Phone, "+49 89 1234567", "089 1234568", false},
		{CreditCard, "4111 1111 1111 1111", "4111-1111-1111-1111", true},
	} {
		x, y := KnownForms(c.typ, c.x), KnownForms(c.typ, c.y)
		if got := slices.ContainsFunc(x, func(f string) bool { return slices.Contains(y, f) }); got != c.common {
			t.Errorf("%s %q %q and %q %q: in common %v, want %v", c.typ, c.x, x, c.y, y, got, c.common)
		}
	}
}

func TestIsCommonWord(t *testing.T) {
	for word, want := range map[string]bool{"release": true, "RELEASE": true, "gmbh": true, "Ng": true, "mensah": false, "Müller": false} {
		if got := IsCommonWord(word); got != want {
			t.Errorf("%s: %v, want %v", word, got, want)
		}
	}
}
