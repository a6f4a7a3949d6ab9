//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package approval

import (
	"os"
	"syscall"
)

// own fails if another process owns the file. It does so as long as that lives.
func own(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }
