//go:build !linux

package testenv

import "testing"

// DockerDaemon is a Docker daemon that tests have started.
type DockerDaemon struct{}

// StartDockerd skips the test: daemons run on Linux.
func StartDockerd(t testing.TB) *DockerDaemon {
	t.Helper()
	t.Skip("Docker's daemon is for Linux")
	return nil
}

// Host returns the address of the daemon.
func (*DockerDaemon) Host() string { return "" }

// End stops the daemon.
func (*DockerDaemon) End() {}
