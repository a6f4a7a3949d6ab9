//go:build !linux

package testenv

import "testing"

// KilledAtChange works like KilledAt, because folders cannot be watched on this system. The number of lines after
// which it kills the child grows with changes.
func KilledAtChange(t *testing.T, variable, value string, _ []string, changes, none int) (last int) {
	t.Helper()
	return KilledAt(t, variable, value, 1+changes/8, none)
}
