//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package seal

import (
	"path/filepath"
	"testing"
	"time"
)

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path, 10*time.Millisecond); err == nil {
		t.Fatal("two have the lock")
	}
	unlock()
	again, err := Lock(path, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	again()
}
