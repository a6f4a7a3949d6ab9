package core

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"spreadsheetId", "sheet", "limit", "offset"}
	for _, c := range []struct {
		name string
		want []string
	}{
		{"spreadsheet_id", []string{"spreadsheetId"}}, // nothing else where only the spelling differs
		{"sheets", []string{"sheet"}},
		{"ofset", []string{"offset"}},
		{"colour", []string{}},
	} {
		if got := NearestNames(c.name, names, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMisspelt(t *testing.T) {
	names := []string{"orders", "created_at", "title", "author", "id"}
	for name, want := range map[string]string{"order_id": "", "createdAt": "created_at", "titel": "title", "authr": "author", "Title": "title", "ids": "id", "it": "", "crated_at": "created_at", "amount": ""} {
		if got := CorrectSpelling(name, names); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"issue", "issue", 0},
		{"isue", "issue", 1},
		{"isseu", "issue", 1},
		{"issues", "issue", 1},
		{"calender", "calendar", 1},
		{"notifcatoins", "notifications", 2},
		{"abc", "xyz", 3},
		{"a", "abcdef", 3},
		{"", "ab", 2},
		{strings.Repeat("ab", 60), strings.Repeat("ab", 60) + "c", 1},
		{strings.Repeat("ab", 60), strings.Repeat("ba", 60), 2},
	} {
		if got := EditDistance([]rune(c.a), []rune(c.b), 2); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
		if got := EditDistance([]byte(c.b), []byte(c.a), 2); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.b, c.a, got, c.want)
		}
	}
}
