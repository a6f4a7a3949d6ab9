//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package seal

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock waits, at most for patience, until no other process has the lock of this
// name. The lock ends with the process that has it.
func Lock(path string, patience time.Duration) (unlock func(), err error) {
	return lock(path, syscall.LOCK_EX, patience)
}

// Share is Lock for those who may have the lock together, but not beside one of Lock.
func Share(path string, patience time.Duration) (unlock func(), err error) {
	return lock(path, syscall.LOCK_SH, patience)
}

func lock(path string, how int, patience time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for late := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		err = syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) || !time.Now().Before(late) {
			_ = f.Close()
			return nil, err
		}
	}
}
