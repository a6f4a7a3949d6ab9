//go:build !linux

package confine

// Enter returns ErrUnsupported: this system has no confinement.
func Enter(func(profile string) map[string][]byte) error { return ErrUnsupported }

// EnterContained returns ErrUnsupported: this system has no confinement.
func EnterContained(string) error { return ErrUnsupported }
