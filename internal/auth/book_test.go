package auth

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/base/seal"
)

func permit(Token) error { return nil }

// tokenSetup is a TokenStore with its folder, and a clock that the test sets.
type tokenSetup struct {
	*TokenStore
	t   *testing.T
	dir string
	at  time.Time
}

func newDesk(t *testing.T) *tokenSetup {
	dir := t.TempDir()
	d := &tokenSetup{t: t, dir: dir, at: time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)}
	d.TokenStore = d.openSecond()
	return d
}

// openSecond returns another TokenStore for the same file, as a second process would open it.
func (d *tokenSetup) openSecond() *TokenStore {
	b := OpenBook(filepath.Join(d.dir, "home", "access", "tokens.json"), filepath.Join(d.dir, "keys", "key"))
	b.now = func() time.Time { return d.at }
	d.t.Cleanup(func() { _ = b.Close() })
	return b
}

func (d *tokenSetup) make(name string, life time.Duration) (string, Token) {
	d.t.Helper()
	text, made, err := d.CreateToken(name, life, permit)
	if err != nil {
		d.t.Fatal(err)
	}
	return text, made
}

func TestTokens(t *testing.T) {
	d := newDesk(t)
	first, made := d.make("anna", time.Hour)
	second, _ := d.make("anna", 0)
	third, _ := d.make("bob", 0)
	running := d.openSecond()
	for text, name := range map[string]string{first: "anna", second: "anna", third: "bob"} {
		if p, err := running.authenticateToken(text); err != nil || p.Name != name {
			t.Errorf("%+v, %v", p, err)
		}
	}
	d.at = d.at.Add(time.Hour)
	if _, err := running.authenticateToken(first); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "expired on 2026-05-04") {
		t.Errorf("after its time: %v", err)
	}
	if gone, err := d.RevokeTokens(made.ID); err != nil || len(gone) != 1 || gone[0].Name != "anna" {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := d.RevokeTokens("anna"); err != nil || len(gone) != 1 {
		t.Errorf("%v, %v", gone, err)
	}
	for _, text := range []string{first, second} {
		if _, err := running.authenticateToken(text); !errors.Is(err, ErrToken) || !strings.Contains(err.Error(), "revoked") {
			t.Errorf("a revoked token: %v", err)
		}
	}
	if _, err := running.authenticateToken(third); err != nil {
		t.Error(err)
	}
	if _, err := d.RevokeTokens("anna"); err == nil {
		t.Error("revoked twice")
	}
	info, err := os.Stat(d.path)
	text, _ := os.ReadFile(d.path)
	if err != nil || info.Mode().Perm() != 0o600 || strings.Contains(string(text), third[4:]) {
		t.Errorf("%v, %v, %s", info.Mode(), err, text)
	}
}

// TestNotPermitted checks that no token is created if permit fails or if the name is invalid.
func TestNotPermitted(t *testing.T) {
	d := newDesk(t)
	if _, _, err := d.CreateToken("anna", 0, func(Token) error { return errors.New("full") }); err == nil {
		t.Error("created")
	}
	for _, name := range []string{"", " ", " anna", "an\u202ena", "a\nb", strings.Repeat("a", 129)} {
		if _, _, err := d.CreateToken(name, 0, permit); err == nil {
			t.Errorf("%q names a principal", name)
		}
	}
	if all, err := d.ListTokens(); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
}

// TestUsed checks that the day of the last use is written once a day, and that expired tokens are removed after a
// while.
func TestUsed(t *testing.T) {
	d := newDesk(t)
	text, _ := d.make("anna", 48*time.Hour)
	running := d.openSecond()
	for range 3 {
		if _, err := running.authenticateToken(text); err != nil {
			t.Fatal(err)
		}
	}
	_ = running.Close()
	if all, err := d.ListTokens(); err != nil || all[0].Used != "2026-05-04" || d.currentState().writes != 2 {
		t.Errorf("%+v, %v, written %d times", all, err, d.currentState().writes)
	}
	d.at = d.at.Add(24 * time.Hour)
	if _, err := running.authenticateToken(text); err != nil {
		t.Fatal(err)
	}
	_ = running.Close()
	if all, _ := d.ListTokens(); all[0].Used != "2026-05-05" {
		t.Errorf("%+v", all)
	}
	d.at = d.at.Add(60 * 24 * time.Hour)
	d.make("bob", 0)
	if all, _ := d.ListTokens(); len(all) != 1 || all[0].Name != "bob" {
		t.Errorf("%+v", all)
	}
}

// TestTampering checks that no token is valid if the file was edited, removed, or replaced by an old version.
func TestTampering(t *testing.T) {
	for name, tamper := range map[string]func(d *tokenSetup, old []byte){
		"edited":      func(d *tokenSetup, _ []byte) { d.edit("anna", "root") },
		"an old one":  func(d *tokenSetup, old []byte) { d.put(d.path, old) },
		"more writes": func(d *tokenSetup, _ []byte) { d.edit(`"writes":3`, `"writes":9`) },
		"gone":        func(d *tokenSetup, _ []byte) { _ = os.Remove(d.path) },
		"rubbish":     func(d *tokenSetup, _ []byte) { d.put(d.path, []byte("{")) },
		"empty":       func(d *tokenSetup, _ []byte) { d.put(d.path, nil) },
		"huge":        func(d *tokenSetup, _ []byte) { _ = os.Truncate(d.path, maxFile+1) },
		"a folder":    func(d *tokenSetup, _ []byte) { _ = os.Remove(d.path); _ = os.Mkdir(d.path, 0o700) },
		"a link": func(d *tokenSetup, old []byte) {
			d.put(d.path+"2", old)
			_ = os.Remove(d.path)
			_ = os.Symlink(d.path+"2", d.path)
		},
		"the count is wrong": func(d *tokenSetup, _ []byte) { d.put(d.countPath, []byte("x")) },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			kept, _ := d.make("anna", 0)
			old, err := os.ReadFile(d.path)
			if err != nil {
				t.Fatal(err)
			}
			d.make("bob", 0)
			running := d.openSecond()
			if _, err := running.authenticateToken(kept); err != nil {
				t.Fatal(err)
			}
			_ = running.Close()
			if _, err := running.authenticateToken(kept); err != nil {
				t.Fatal(err)
			}
			tamper(d, old)
			for _, b := range []*TokenStore{running, d.openSecond()} {
				if _, err := b.authenticateToken(kept); !errors.Is(err, ErrToken) {
					t.Errorf("it counts: %v", err)
				}
				if _, err := b.ListTokens(); err == nil {
					t.Error("it is not said that the file can't be believed")
				}
			}
		})
	}
}

func (d *tokenSetup) put(path string, text []byte) {
	d.t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *tokenSetup) edit(from, to string) {
	d.t.Helper()
	text, err := os.ReadFile(d.path)
	if err != nil || !strings.Contains(string(text), from) {
		d.t.Fatalf("%s, %v", text, err)
	}
	d.put(d.path, []byte(strings.ReplaceAll(string(text), from, to)))
}

// TestAnotherKey checks that no token is valid without the key with which the file was sealed.
func TestAnotherKey(t *testing.T) {
	d := newDesk(t)
	text, _ := d.make("anna", 0)
	for range 2 {
		_ = os.Remove(d.key)
		if _, err := d.openSecond().authenticateToken(text); !errors.Is(err, ErrToken) {
			t.Errorf("it counts: %v", err)
		}
		if _, err := seal.LoadOrCreateKey(d.key); err != nil {
			t.Fatal(err)
		}
		if _, err := d.openSecond().authenticateToken(text); !errors.Is(err, ErrToken) {
			t.Errorf("it counts with another key: %v", err)
		}
	}
}

// TestBeginAnew checks that RevokeAll replaces a file that was tampered with, and that the old file is not accepted
// afterwards.
func TestBeginAnew(t *testing.T) {
	d := newDesk(t)
	text, _ := d.make("anna", 0)
	old, _ := os.ReadFile(d.path)
	d.edit("anna", "root")
	if _, err := d.ListTokens(); err == nil {
		t.Error("listed")
	}
	if _, err := d.RevokeTokens("anna"); err == nil {
		t.Error("revoked")
	}
	if _, _, err := d.CreateToken("bob", 0, permit); err == nil {
		t.Error("created")
	}
	if _, err := d.RevokeAll(); err != nil {
		t.Fatal(err)
	}
	d.make("bob", 0)
	if _, err := d.authenticateToken(text); err == nil {
		t.Error("it is back")
	}
	d.put(d.path, old)
	if _, err := d.authenticateToken(text); err == nil {
		t.Error("the old file counts")
	}
}

// TestTogether checks that no change is lost if many processes create and revoke tokens at the same time.
func TestTogether(t *testing.T) {
	d := newDesk(t)
	var wg sync.WaitGroup
	texts := make([]string, 20)
	for i := range texts {
		wg.Go(func() {
			b := d.openSecond()
			text, made, err := b.CreateToken("anna", 0, permit)
			if err != nil {
				t.Error(err)
			}
			if _, err := b.authenticateToken(text); err != nil {
				t.Error(err)
			}
			texts[i] = text
			if i%2 == 0 {
				if _, err := d.openSecond().RevokeTokens(made.ID); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for i, text := range texts {
		if _, err := d.authenticateToken(text); (err == nil) != (i%2 == 1) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	dir := b.TempDir()
	book := OpenBook(filepath.Join(dir, "tokens.json"), filepath.Join(dir, "keys", "key"))
	text, _, err := book.CreateToken("anna", 0, permit)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := book.authenticateToken(text); err != nil {
			b.Fatal(err)
		}
	}
	_ = book.Close()
}
