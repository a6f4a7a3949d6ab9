package core

import (
	"slices"
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
