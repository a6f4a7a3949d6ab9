package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func kept(a *AnswerCache, server, key string) string {
	value, ok := a.Get(server, key)
	if !ok {
		return "-"
	}
	return string(value)
}

func TestAnswers(t *testing.T) {
	dir, start := t.TempDir(), time.Now()
	now := start
	a := NewAnswers(dir, time.Minute, 1<<20)
	a.now = func() time.Time { return now }
	a.Put("crm", "k", []byte("{\"a\":\n1}"))
	a.Put("crm", "large", make([]byte, maxAnswer+1))
	a.Put("mail", "k", []byte("2"))
	again := NewAnswers(dir, time.Minute, 1<<20)
	again.now = a.now
	if got := kept(again, "crm", "k") + kept(again, "mail", "k") + kept(again, "crm", "other") + kept(again, "crm", "large"); got != "{\"a\":\n1}2--" {
		t.Errorf("%q", got)
	}
	a.Forget("crm")
	if got := kept(again, "crm", "k") + kept(again, "mail", "k"); got != "-2" {
		t.Errorf("%q", got)
	}
	for _, later := range []time.Duration{-time.Second, time.Minute} { // the clock has jumped back; it is too old
		now = start.Add(later)
		if got := kept(a, "mail", "k"); got != "-" {
			t.Errorf("%v later: %q", later, got)
		}
	}
}

// TestAnswersThatAreDamaged checks that a cached result counts as missing if its file is truncated or if any of its
// bytes was changed.
func TestAnswersThatAreDamaged(t *testing.T) {
	a := NewAnswers(t.TempDir(), time.Hour, 1<<20)
	a.Put("crm", "k", []byte(`{"name":"x"}`))
	path := a.filePath("crm", "k")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		changed := append([]byte{}, whole...)
		changed[i] ^= 4
		for _, data := range [][]byte{whole[:i], changed} {
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := kept(a, "crm", "k"); got != "-" && got != `{"name":"x"}` {
				t.Fatalf("byte %d: %q", i, got)
			}
		}
	}
}

func TestAnswersAreBounded(t *testing.T) {
	dir := t.TempDir()
	a := NewAnswers(dir, time.Hour, 100_000)
	for i := range 60 {
		a.Put("crm", fmt.Sprint(i), []byte(`"`+strings.Repeat("x", 5000)+`"`))
		at := time.Now().Add(time.Duration(i-100) * time.Second)
		_ = os.Chtimes(a.filePath("crm", fmt.Sprint(i)), at, at)
	}
	var total int64
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, _ error) error {
		if info.Mode().IsRegular() {
			total += info.Size()
		}
		return nil
	})
	if total > 110_000 || kept(a, "crm", "59") == "-" || kept(a, "crm", "0") != "-" {
		t.Errorf("%d bytes, the last %.5s, the first %.5s", total, kept(a, "crm", "59"), kept(a, "crm", "0"))
	}
}

// TestSmallAnswersAreBounded checks that the cache's size limit also bounds the number of very small results.
func TestSmallAnswersAreBounded(t *testing.T) {
	const most = 32
	dir := t.TempDir()
	a := NewAnswers(dir, time.Hour, most*entryCost)
	for i := range 10 * most {
		a.Put("crm", fmt.Sprint(i), []byte("1"))
	}
	files := 0
	_ = filepath.Walk(dir, func(_ string, info os.FileInfo, _ error) error {
		if info.Mode().IsRegular() {
			files++
		}
		return nil
	})
	if files > most+most/16+1 || files < most/2 {
		t.Errorf("%d answers are kept, want about %d", files, most)
	}
}
