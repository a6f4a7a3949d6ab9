//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package seal

import (
	"os"
	"time"
)

// Locks is false because this system does not support the file locks of this package.
const Locks = false

// LockFile does nothing, because this system does not support the file locks of this package.
func LockFile(*os.File, time.Duration) error { return nil }

// UnlockFile does nothing, because LockFile has not locked anything.
func UnlockFile(*os.File) error { return nil }

// Lock does nothing, because this system does not support the file locks of this package. If two processes write a
// file at the same time, the last write wins.
func Lock(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// LockShared does nothing, because this system does not support the file locks of this package.
func LockShared(string, time.Duration) (unlock func(), err error) { return func() {}, nil }
