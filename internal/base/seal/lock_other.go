//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package seal

import (
	"os"
	"time"
)

// Locks says that files have no locks of this kind here.
const Locks = false

// LockFile does nothing.
func LockFile(*os.File, time.Duration) error { return nil }

// UnlockFile does nothing.
func UnlockFile(*os.File) error { return nil }

// Lock does nothing where files have no locks of this kind: of two processes that
// write at once, the last one counts.
func Lock(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// LockShared does nothing either.
func LockShared(string, time.Duration) (unlock func(), err error) { return func() {}, nil }
