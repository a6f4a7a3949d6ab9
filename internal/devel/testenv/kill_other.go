//go:build !linux

package testenv

import "testing"

// KilledAtChange works like KilledAt, because this system cannot watch folders. It kills the child after a number of
// lines that grows with changes.
func KilledAtChange(t *testing.T, variable, value string, _ []string, changes, none int) (last int) {
	t.Helper()
	return KilledAt(t, variable, value, 1+changes/8, none)
}
