//go:build !linux

package testenv

import "testing"

// WaitForUsers does nothing on this system, which has no /proc.
func WaitForUsers(testing.TB, string) {}
