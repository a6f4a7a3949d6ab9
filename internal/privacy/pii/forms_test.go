package pii

import (
	"slices"
	"testing"
)

// TestKnownForms checks that different spellings of one value have a form in common, and that different values do not.
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

// TestKnownPieces checks that a search for a long value finds exactly the pieces that KnownPieces returns.
func TestKnownPieces(t *testing.T) {
	for value, want := range map[string]int{
		"Kwame Mensah": 1, " 'Mensah' ": 1, "🌸": 0, "北京市朝阳区建国门外大街乙十二号双子座大厦东塔": 2,
		"Flat 3, 12 Quux Road, Upper Frobnitz, near the old mill, of the county of Zork": 2,
	} {
		g := &KnownValues{}
		g.AddExact(Address, value)
		pieces := KnownPieces(value)
		var found []string
		for _, f := range New(Options{}).FindKnown(nil, g, []byte(value)) {
			found = append(found, value[f.Start:f.End])
		}
		if want > 0 && found == nil || len(pieces) != want || want > 0 && !slices.Equal(found, pieces) {
			t.Errorf("%s: pieces %q, found %q", value, pieces, found)
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
