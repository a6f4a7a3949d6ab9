package vault

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFirstFormat checks that a session stored in format version 1 keeps its tokens, and that opening it converts the
// files to the current format.
func TestFirstFormat(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("testdata", "first"))); err != nil {
		t.Fatal(err)
	}
	before := files(t, dir)
	for _, path := range before {
		if err := os.Chmod(path, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		s := session(t, Open(dir, fixed(1), 100*365*24*time.Hour), "default")
		for token, want := range map[string]TokenEntry{
			"[EMAIL_1]":   {"email", 1, "user0@x.org", false, []string{"crm"}},
			"[EMAIL_9]":   {"email", 9, "user8@x.org", false, []string{"crm", "drive"}},
			"[EMAIL_300]": {"email", 300, "user299@x.org", false, []string{"crm"}},
			"[PHONE_6]":   {"phone", 6, "47000250", true, []string{"mail", "crm"}},
			"[NAME_1]":    {"name", 1, "Zoë \"Z\" Ængel", false, nil},
		} {
			if e, ok := s.ResolveToken(token); !ok || fmt.Sprint(e) != fmt.Sprint(want) {
				t.Errorf("%s: %+v %v", token, e, ok)
			}
			if got, err := s.MintToken(TokenEntry{Type: want.Type, Value: want.Value}); got != token || err != nil {
				t.Errorf("%s is %s now, %v", token, got, err)
			}
		}
		if e, ok := s.ResolveToken("[EMAIL_8]"); ok {
			t.Errorf("it was erased: %+v", e)
		}
		if n := len(all(t, s, "email", "phone", "name")); n != 299+6+1 {
			t.Errorf("%d entries", n)
		}
		if token := mint(t, s, "email", "user7@x.org"); token == "[EMAIL_8]" {
			t.Errorf("%s is used again", token)
		}
	}
	after := files(t, dir)
	if slices.Equal(before, after) || len(after) != 3 {
		t.Errorf("%v, then %v", before, after)
	}
}
