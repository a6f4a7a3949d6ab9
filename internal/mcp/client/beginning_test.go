package client

import (
	"strings"
	"testing"
)

// TestSafePrefix checks safePrefix, which returns the beginning of a text. If the cut would fall into an email address
// or a number, safePrefix must leave out all of it.
func TestSafePrefix(t *testing.T) {
	for _, value := range []string{"ann.holstad@corp.example", "4111 1111 1111 1111", "+47 2200-0001"} {
		text := `{"message":"nobody like ` + value + ` here"}`
		start, end := strings.Index(text, value), strings.Index(text, value)+len(value)
		for n := start + 1; n < end; n++ {
			if got := safePrefix(text, n); got != `{"message":"nobody like…` {
				t.Errorf("cut at %d: %s", n, got)
			}
		}
	}
	if got := safePrefix(strings.Repeat("a", 500), 300); got != "…" {
		t.Errorf("%s", got)
	}
	if got := safePrefix("short text", 300); got != "short text" {
		t.Errorf("%s", got)
	}
}
