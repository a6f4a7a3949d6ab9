package run

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
		if got := Nearest(c.name, names, 2); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
