package approval

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// TestKept checks that stored rules are read again only with the same policy version and a valid seal.
func TestKept(t *testing.T) {
	path, key := filepath.Join(t.TempDir(), "always.json"), filepath.Join(t.TempDir(), "key")
	rule := AlwaysRule{Server: "s", Tool: "t", Pin: "p", Policy: "1", Shape: "{}"}
	if err := OpenKept(path, key, "1").AllowRule(rule); err != nil {
		t.Fatal(err)
	}
	if !OpenKept(path, key, "1").IsAllowed(rule) || OpenKept(path, key, "2").IsAllowed(rule) {
		t.Error("it is not kept as it was allowed")
	}
	later := OpenKept(path, key, "1")
	other := AlwaysRule{Server: "s", Tool: "u", Pin: "p", Policy: "2", Shape: "{}"}
	if err := later.AllowRule(other); err != nil || later.IsAllowed(rule) || !later.IsAllowed(other) {
		t.Error("what was allowed by an earlier policy counts beside what was allowed by a later one")
	}
	if err := OpenKept(path, key, "1").AllowRule(rule); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	forged := rule
	forged.Tool = "x"
	if err := os.WriteFile(path, bytes.Replace(whole, []byte(`"t"`), []byte(`"x"`), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	if k := OpenKept(path, key, "1"); k.IsAllowed(forged) || k.IsAllowed(rule) {
		t.Error("a forged file counts")
	}
	elsewhere := filepath.Join(t.TempDir(), "always.json")
	if err := os.WriteFile(elsewhere, whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if OpenKept(elsewhere, key, "1").IsAllowed(rule) {
		t.Error("a file of another place counts")
	}
}
