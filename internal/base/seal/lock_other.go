//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package seal

import (
	"os"
	"time"
)

// Locks is false because this system does not support these file locks.
const Locks = false

// LockFile does nothing: this system does not support these file locks.
func LockFile(*os.File, time.Duration) error { return nil }

// UnlockFile does nothing.
func UnlockFile(*os.File) error { return nil }

// Lock does nothing because this system does not support these file locks. If two processes write at the same time,
// the last write wins.
func Lock(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// LockShared does nothing because this system does not support these file locks.
func LockShared(string, time.Duration) (unlock func(), err error) { return func() {}, nil }
