//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package approval

import (
	"os"
	"syscall"
)

// lockJournal locks the file for this process's lifetime. It fails if another process holds the lock.
func lockJournal(f *os.File) error {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
}
