//go:build !linux

package testenv

import "testing"

// Dockerd is a Docker daemon that tests have started.
type Dockerd struct{}

// StartDockerd skips the test: daemons run on Linux.
func StartDockerd(t testing.TB) *Dockerd {
	t.Helper()
	t.Skip("Docker's daemon is for Linux")
	return nil
}

// Host returns the address of the daemon.
func (*Dockerd) Host() string { return "" }

// End stops the daemon.
func (*Dockerd) End() {}
