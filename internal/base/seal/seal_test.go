package seal

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestOneKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "below", "key")
	keys := make([][]byte, 32)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() { keys[i], _ = LoadOrCreateKey(path) })
	}
	all.Wait()
	for _, key := range keys {
		if len(key) != keySize || !bytes.Equal(key, keys[0]) {
			t.Fatalf("keys %x and %x", key, keys[0])
		}
	}
	left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".tmp-*"))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || len(left) > 0 {
		t.Errorf("%v, %v, left %v", info, err, left)
	}
}

func TestBadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key, err := LoadOrCreateKey(path); err == nil {
		t.Errorf("%q is a key", key)
	}
}

func TestCode(t *testing.T) {
	key := bytes.Repeat([]byte{1}, keySize)
	code := ComputeMAC(key, []byte("a"), []byte("bc"))
	if !VerifyMAC(key, code, []byte("a"), []byte("bc")) {
		t.Error("it does not hold")
	}
	for _, parts := range [][][]byte{{[]byte("ab"), []byte("c")}, {[]byte("abc")}, {[]byte("a"), []byte("bd")}, {}} {
		if VerifyMAC(key, code, parts...) {
			t.Errorf("it holds for %q", parts)
		}
	}
}
