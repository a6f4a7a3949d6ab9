//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package seal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Lock acquires the exclusive lock on the file at path. If other processes hold the lock, it waits for at most
// patience. The lock is held until unlock is called or the process ends.
func Lock(path string, patience time.Duration) (unlock func(), err error) {
	return lockFile(path, syscall.LOCK_EX, patience)
}

// LockShared acquires a shared lock on the file at path, in the same way as Lock. While it is held, other processes
// can hold shared locks, but not the exclusive lock.
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
		return nil, &fs.PathError{Op: "lock", Path: path, Err: err}
	}
	return func() { _ = f.Close() }, nil
}

// Locks is true because this system supports the file locks of this package.
const Locks = true

// waitForLock waits in the kernel until it has locked the file. The wait has no time limit.
func waitForLock(f *os.File, how int) error {
	for {
		if err := syscall.Flock(int(f.Fd()), how); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// LockFile locks an open file. If other processes hold the lock, it waits for at most patience. The lock is held until
// UnlockFile is called or the process ends.
func LockFile(f *os.File, patience time.Duration) error {
	return flockWithin(f, syscall.LOCK_EX, patience)
}

// UnlockFile releases the lock of a file.
func UnlockFile(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

func flockWithin(f *os.File, how int, patience time.Duration) error {
	if patience == Unbounded {
		return waitForLock(f, how)
	}
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
