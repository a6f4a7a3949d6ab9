//go:build !unix

package testenv

import "testing"

// GrowsLinearly skips the test, because processor time cannot be measured on this system.
func GrowsLinearly(t testing.TB, _ string, _ int, _ func(size int)) {
	t.Helper()
	t.Skip("this system does not report processor time")
}
