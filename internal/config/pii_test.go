package config

import (
	"slices"
	"testing"

	"retort/internal/privacy/pii"
)

// Settings name the types that are found, and no others.
func TestPIITypesAreThoseThatAreFound(t *testing.T) {
	var found []string
	for _, p := range pii.Types() {
		found = append(found, string(p))
	}
	named := slices.Sorted(slices.Values(piiTypes()))
	if slices.Sort(found); !slices.Equal(named, found) {
		t.Errorf("settings name %q, found are %q", named, found)
	}
}
