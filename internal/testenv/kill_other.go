//go:build !linux

package testenv

import "testing"

// KilledAtChange is KilledAt where changes of folders are not told: each number stands for some.
func KilledAtChange(t *testing.T, variable, value string, _ []string, changes, none int) (last int) {
	t.Helper()
	return KilledAt(t, variable, value, 1+changes/8, none)
}
