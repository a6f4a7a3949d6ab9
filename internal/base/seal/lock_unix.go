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
	return lockFile(path, syscall.LOCK_EX, patience)
}

// LockShared returns Lock for those who may have the lock together, but not beside one of Lock.
func LockShared(path string, patience time.Duration) (unlock func(), err error) {
	return lockFile(path, syscall.LOCK_SH, patience)
}

func lockFile(path string, how int, patience time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	f, err := OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := flockWithin(f, how, patience); err != nil {
		_ = f.Close()
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}

// Locks says that files have locks here.
const Locks = true

// LockFile waits, at most for patience, until nobody else has the lock of a file. UnlockFile gives it
// back, and so does the end of the process.
func LockFile(f *os.File, patience time.Duration) error {
	return flockWithin(f, syscall.LOCK_EX, patience)
}

// UnlockFile gives the lock of a file back.
func UnlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

func flockWithin(f *os.File, how int, patience time.Duration) error {
	var late time.Time
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		if err == nil || !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return err
		}
		if late.IsZero() {
			late = time.Now().Add(patience)
		}
		if !time.Now().Before(late) {
			return err
		}
		time.Sleep(2 * time.Millisecond)
	}
}
