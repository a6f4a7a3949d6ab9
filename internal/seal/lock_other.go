//go:build !(linux || darwin || freebsd || netbsd || openbsd || dragonfly)

package seal

import "time"

// Lock does nothing where files have no locks of this kind: of two processes that
// write at once, the last one counts.
func Lock(string, time.Duration) (unlock func(), err error) { return func() {}, nil }

// Share does nothing either.
func Share(string, time.Duration) (unlock func(), err error) { return func() {}, nil }
