package pipeline

import (
	"testing"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/redact"
)

// TestAllowedCrossings checks that a person is asked once for each pair of servers and type of data, and again for
// other data or servers.
func TestAllowedCrossings(t *testing.T) {
	var a allowedCrossings
	name := redact.BorderCrossing{Type: pii.Name, From: []string{"crm"}}
	born := redact.BorderCrossing{Type: pii.DateOfBirth, From: []string{"crm"}}
	both := []redact.BorderCrossing{name, born}
	reason := a.reasonFor("web", both)
	if reason == "" || a.reasonFor("web", both) != reason {
		t.Fatalf("%q", reason)
	}
	a.allow("another reason")
	if a.reasonFor("web", both) != reason {
		t.Error("a yes to another question counts")
	}
	a.allow(reason)
	for _, c := range []struct {
		server   string
		crossing redact.BorderCrossing
		asks     bool
	}{
		{"web", name, false}, {"web", born, false},
		{"mail", name, true},
		{"web", redact.BorderCrossing{Type: pii.Name, From: []string{"crm", "hr"}}, true},
		{"web", redact.BorderCrossing{Type: pii.Name, From: []string{"hr"}}, true},
		{"web", redact.BorderCrossing{Type: pii.Email, From: []string{"crm"}}, true},
		{"web", redact.BorderCrossing{Type: pii.Name, Inside: true}, true},
	} {
		if got := a.reasonFor(c.server, []redact.BorderCrossing{c.crossing}); (got != "") != c.asks {
			t.Errorf("%s %v: %q", c.server, c.crossing, got)
		}
	}
}
