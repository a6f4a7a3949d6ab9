//go:build !linux

package testenv

import "testing"

// DockerDaemon does nothing on this system: Docker daemons run only on Linux.
type DockerDaemon struct{}

// StartDockerd skips the test: Docker daemons run only on Linux.
func StartDockerd(t testing.TB) *DockerDaemon {
	t.Helper()
	t.Skip("Docker's daemon is for Linux")
	return nil
}

// Host returns the address of the daemon.
func (*DockerDaemon) Host() string { return "" }

// End stops the daemon.
func (*DockerDaemon) End() {}
