package vault

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

func fixed(b byte) func() ([]byte, error) {
	return func() ([]byte, error) { return bytes.Repeat([]byte{b}, keySize), nil }
}

func session(t *testing.T, s *TokenVault, name string) *TokenSession {
	t.Helper()
	session, err := s.OpenSession(name)
	if err != nil {
		t.Fatal(err)
	}
	return session
}

func mint(t *testing.T, s *TokenSession, typ, value string) string {
	t.Helper()
	token, err := s.MintToken(TokenEntry{Type: typ, Value: value, From: []string{"crm"}})
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func synced(t *testing.T, s *TokenSession) {
	t.Helper()
	if err := s.SyncFile(); err != nil {
		t.Fatal(err)
	}
}

func all(t *testing.T, s *TokenSession, types ...string) (found []TokenEntry) {
	t.Helper()
	for _, typ := range types {
		err := s.EachOfType(typ, func(e TokenEntry) bool {
			found = append(found, e)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

func TestTokens(t *testing.T) {
	for name, dir := range map[string]string{"memory": "", "disk": t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			store := Open(dir, fixed(1), 0)
			defer store.Close()
			s := session(t, store, "default")
			for _, c := range []struct{ typ, value, want string }{
				{"email", "a@x.org", "[EMAIL_1]"}, {"email", "b@x.org", "[EMAIL_2]"}, {"email", "a@x.org", "[EMAIL_1]"},
				{"name", "a@x.org", "[NAME_1]"}, {"credit_card", "4111", "[CREDIT_CARD_1]"},
			} {
				if got := mint(t, s, c.typ, c.value); got != c.want {
					t.Errorf("%s %s: %s", c.typ, c.value, got)
				}
			}
			if e, ok := s.ResolveToken("[EMAIL_2]"); !ok || e.Value != "b@x.org" || !slices.Equal(e.From, []string{"crm"}) {
				t.Errorf("%+v %v", e, ok)
			}
			for _, forged := range []string{"[EMAIL_3]", "[EMAIL_0]", "[EMAIL_01]", "[EMAIL_+1]", "[email_1]", "EMAIL_1", "[EMAIL_1", "[EMAIL_-1]", "[EMAIL_99999999999999999999]", "[]", "[_1]", "[PHONE_1]", " [EMAIL_1]", "[EMAIL_1]]"} {
				if e, ok := s.ResolveToken(forged); ok {
					t.Errorf("%s resolves to %+v", forged, e)
				}
			}
			if e, ok := session(t, store, "other").ResolveToken("[EMAIL_1]"); ok {
				t.Errorf("another session's token resolves to %+v", e)
			}
		})
	}
}

// TestRestart checks that saved tokens resolve after a restart. The number of a token that was lost because it was
// not saved must not be used again. The files must not contain values in plain text.
func TestRestart(t *testing.T) {
	dir := t.TempDir()
	store := Open(dir, fixed(1), 0)
	s := session(t, store, "default")
	for i := range 100 {
		mint(t, s, "email", fmt.Sprint(i, "@x.org"))
	}
	synced(t, s)
	lost := mint(t, s, "email", "never@told.org") // the engine dies before Sync
	again := session(t, Open(dir, fixed(1), 0), "default")
	if e, ok := again.ResolveToken("[EMAIL_7]"); !ok || e.Value != "6@x.org" || !slices.Equal(e.From, []string{"crm"}) {
		t.Errorf("%+v %v", e, ok)
	}
	if got := mint(t, again, "email", "6@x.org"); got != "[EMAIL_7]" {
		t.Errorf("%s", got)
	}
	if e, ok := again.ResolveToken(lost); ok {
		t.Errorf("%+v", e)
	}
	if got := mint(t, again, "email", "new@x.org"); got == lost {
		t.Errorf("%s is used again", got)
	}
	for _, path := range files(t, dir) {
		if text, _ := os.ReadFile(path); bytes.Contains(text, []byte("x.org")) || bytes.Contains(text, []byte("crm")) {
			t.Errorf("%s can be read", path)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v", path, info.Mode())
		}
	}
}

func files(t *testing.T, dir string) (all []string) {
	t.Helper()
	for _, pattern := range []string{"*.vault", "keys/*.key", "keys/*.lock"} {
		found, _ := filepath.Glob(filepath.Join(dir, pattern))
		all = append(all, found...)
	}
	return all
}

// TestTwoProcesses checks that processes which share a session never give one number to two values, and that all
// their tokens resolve afterwards.
func TestTwoProcesses(t *testing.T) {
	dir := t.TempDir()
	var all sync.WaitGroup
	var mu sync.Mutex
	tokens := map[string]string{}
	for p := range 4 {
		all.Go(func() {
			s, err := Open(dir, fixed(1), 0).OpenSession("default")
			if err != nil {
				t.Error(err)
				return
			}
			for i := range 60 {
				value := fmt.Sprintf("%d-%d@x.org", p, i)
				token, err := s.MintToken(TokenEntry{Type: "email", Value: value})
				if err != nil {
					t.Error(err)
					return
				}
				if i%7 == 0 {
					if err := s.SyncFile(); err != nil {
						t.Error(err)
					}
				}
				mu.Lock()
				if other := tokens[token]; other != "" {
					t.Errorf("%s stands for %s and %s", token, other, value)
				}
				tokens[token] = value
				mu.Unlock()
			}
			if err := s.SyncFile(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	s := session(t, Open(dir, fixed(1), 0), "default")
	for token, value := range tokens {
		if e, ok := s.ResolveToken(token); !ok || e.Value != value {
			t.Errorf("%s: %+v, want %s", token, e, value)
		}
	}
}

// TestOthersAreSeen checks that a process notices changes which another process has made: it finds tokens that the
// other one has minted, and drops values that the other one has erased.
func TestOthersAreSeen(t *testing.T) {
	dir := t.TempDir()
	a, b := session(t, Open(dir, fixed(1), 0), "s"), session(t, Open(dir, fixed(1), 0), "s")
	one := mint(t, a, "email", "one@x.org")
	synced(t, a)
	if e, ok := b.ResolveToken(one); !ok || e.Value != "one@x.org" {
		t.Errorf("%+v %v", e, ok)
	}
	pending := mint(t, a, "email", "two@x.org")
	if n, err := b.ForgetValues(func(value string) bool { return value == "one@x.org" }); n != 1 || err != nil {
		t.Errorf("%d %v", n, err)
	}
	if e, ok := a.ResolveToken(one); !ok {
		t.Errorf("nobody has looked: %+v", e)
	}
	if err := a.RefreshTokens(); err != nil {
		t.Error(err)
	}
	if e, ok := a.ResolveToken(one); ok {
		t.Errorf("it was erased: %+v", e)
	}
	synced(t, a)
	if e, ok := b.ResolveToken(pending); !ok || e.Value != "two@x.org" {
		t.Errorf("%+v %v", e, ok)
	}
}

func TestForget(t *testing.T) {
	dir := t.TempDir()
	store := Open(dir, fixed(1), 0)
	s := session(t, store, "default")
	ann, bob := mint(t, s, "email", "ann@x.org"), mint(t, s, "email", "bob@x.org")
	synced(t, s)
	before := files(t, dir)
	var old [][]byte
	for _, path := range before {
		text, _ := os.ReadFile(path)
		old = append(old, text)
	}
	if n, err := s.ForgetValues(func(value string) bool { return value == "ann@x.org" }); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	again := session(t, Open(dir, fixed(1), 0), "default")
	if _, ok := again.ResolveToken(ann); ok {
		t.Error("it is still there")
	}
	if e, ok := again.ResolveToken(bob); !ok || e.Value != "bob@x.org" {
		t.Errorf("%+v", e)
	}
	if got := mint(t, again, "email", "ann@x.org"); got == ann || got == bob {
		t.Errorf("the number is used again: %s", got)
	}
	// Whoever kept the data, and not the key, has nothing.
	for i, path := range before {
		if strings.HasSuffix(path, ".vault") {
			_ = os.WriteFile(path, old[i], 0o600)
		}
	}
	if _, ok := session(t, Open(dir, fixed(1), 0), "default").ResolveToken(ann); ok {
		t.Error("the old data counts")
	}
	if err := again.EraseTokens(); err != nil {
		t.Fatal(err)
	}
	if left := all(t, session(t, Open(dir, fixed(1), 0), "default"), "email"); len(left) != 0 {
		t.Errorf("%+v", left)
	}
}

// TestDamage checks that after the files were truncated or changed, a token resolves to its value or not at all, but
// never to another value.
func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s := session(t, Open(dir, fixed(1), 0), "default")
	want := map[string]string{}
	for i := range 5 {
		value := fmt.Sprint("user", i, "@x.org")
		want[mint(t, s, "email", value)] = value
		synced(t, s)
	}
	whole := map[string][]byte{}
	for _, path := range files(t, dir) {
		whole[path], _ = os.ReadFile(path)
	}
	check := func(what string) {
		again, err := Open(dir, fixed(1), 0).OpenSession("default")
		if err != nil {
			return // nothing is resolved, and nothing minted
		}
		for token, value := range want {
			if e, ok := again.ResolveToken(token); ok && e.Value != value {
				t.Errorf("%s: %s stands for %s", what, token, e.Value)
			}
		}
	}
	restore := func() {
		for path, text := range whole {
			_ = os.WriteFile(path, text, 0o600)
		}
	}
	for path, text := range whole {
		for cut := range text {
			_ = os.WriteFile(path, text[:cut], 0o600)
			check(fmt.Sprint(path, " cut at ", cut))
			restore()
		}
		for range 200 {
			if len(text) == 0 {
				break
			}
			changed := bytes.Clone(text)
			changed[rand.IntN(len(changed))] ^= 1 << rand.IntN(8)
			_ = os.WriteFile(path, changed, 0o600)
			check(path + " changed")
			restore()
		}
	}
	if _, err := Open(dir, fixed(2), 0).OpenSession("default"); err == nil {
		t.Error("another key opens it")
	}
	if _, err := Open(dir, func() ([]byte, error) { return nil, errors.New("no key") }, 0).OpenSession("default"); err == nil {
		t.Error("no key opens it")
	}
}

func TestExpiry(t *testing.T) {
	dir := t.TempDir()
	s := session(t, Open(dir, fixed(1), 0), "old")
	token := mint(t, s, "email", "a@x.org")
	synced(t, s)
	for _, path := range files(t, dir) {
		long := time.Now().Add(-40 * 24 * time.Hour)
		_ = os.Chtimes(path, long, long)
	}
	if _, ok := session(t, Open(dir, fixed(1), 60*24*time.Hour), "old").ResolveToken(token); !ok {
		t.Error("it was to be kept")
	}
	for _, path := range files(t, dir) {
		long := time.Now().Add(-40 * 24 * time.Hour)
		_ = os.Chtimes(path, long, long)
	}
	if _, ok := session(t, Open(dir, fixed(1), 0), "old").ResolveToken(token); ok {
		t.Error("it has expired")
	}
}

func BenchmarkMint(b *testing.B) {
	s, _ := Open(b.TempDir(), fixed(1), 0).OpenSession("default")
	values := make([]string, 100_000)
	for i := range values {
		values[i] = fmt.Sprint("user", i, "@example.org")
	}
	i := 0
	for b.Loop() {
		_, _ = s.MintToken(TokenEntry{Type: "email", Value: values[i%len(values)]})
		i++
	}
	_ = s.SyncFile()
}

// TestOrigins checks that an entry lists all servers that have sent its value, also after a restart.
func TestOrigins(t *testing.T) {
	dir := t.TempDir()
	s := session(t, Open(dir, fixed(1), 0), "default")
	for _, server := range []string{"drive", "crm", "drive"} {
		if token, err := s.MintToken(TokenEntry{Type: "email", Value: "a@x.org", From: []string{server}}); err != nil || token != "[EMAIL_1]" {
			t.Fatal(token, err)
		}
	}
	synced(t, s)
	for name, s := range map[string]*TokenSession{"here": s, "again": session(t, Open(dir, fixed(1), 0), "default")} {
		if e, ok := s.ResolveToken("[EMAIL_1]"); !ok || !slices.Equal(e.From, []string{"crm", "drive"}) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// TestManySessions checks that sessions which are closed to make room for others lose no tokens, even if a caller
// still uses them.
func TestManySessions(t *testing.T) {
	store := Open(t.TempDir(), fixed(1), 0)
	defer store.Close()
	first := session(t, store, "0")
	tokens := map[string]string{}
	for i := range 3 * maxOpen {
		name := fmt.Sprint(i % (2 * maxOpen))
		value := fmt.Sprint(i, "@x.org")
		tokens[name+" "+mint(t, session(t, store, name), "email", value)] = value
		if i%50 == 0 {
			value = fmt.Sprint("late", i, "@x.org")
			tokens["0 "+mint(t, first, "email", value)] = value
		}
		if len(store.sessions) > maxOpen {
			t.Fatalf("%d sessions are open", len(store.sessions))
		}
	}
	synced(t, first)
	for at, value := range tokens {
		name, token, _ := strings.Cut(at, " ")
		if e, ok := session(t, store, name).ResolveToken(token); !ok || e.Value != value {
			t.Errorf("%s: %+v, want %s", at, e, value)
		}
	}
}

// TestForgetEverywhere checks that a person's values are erased from every session, including those that are not
// open.
func TestForgetEverywhere(t *testing.T) {
	dir := t.TempDir()
	store := Open(dir, fixed(1), 0)
	for _, name := range []string{"one", "two", "three"} {
		s := session(t, store, name)
		if name != "two" {
			mint(t, s, "email", "ann@x.org")
			mint(t, s, "name", "ann@x.org")
		}
		mint(t, s, "email", "bob@x.org")
		synced(t, s)
	}
	again := Open(dir, fixed(1), 0)
	if values, sessions, err := again.ForgetValues(func(v string) bool { return v == "ann@x.org" }); values != 4 || sessions != 2 || err != nil {
		t.Error(values, sessions, err)
	}
	for _, name := range []string{"one", "two", "three"} {
		if left := all(t, session(t, Open(dir, fixed(1), 0), name), "email", "name"); len(left) != 1 || left[0].Value != "bob@x.org" {
			t.Errorf("%s: %+v", name, left)
		}
	}
	if values, sessions, err := Open("", nil, 0).ForgetValues(func(string) bool { return true }); values != 0 || sessions != 0 || err != nil {
		t.Error(values, sessions, err)
	}
}
