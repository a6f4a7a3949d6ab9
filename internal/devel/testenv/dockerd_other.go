//go:build !linux

package testenv

import "testing"

// Dockerd is a daemon of Docker's that tests have started.
type Dockerd struct{}

// StartDockerd skips the test: daemons run on Linux.
func StartDockerd(t testing.TB) *Dockerd {
	t.Helper()
	t.Skip("Docker's daemon is for Linux")
	return nil
}

// Host is where the daemon listens.
func (*Dockerd) Host() string { return "" }

// End ends the daemon.
func (*Dockerd) End() {}
