//go:build !linux

package confine

// Enter returns ErrUnsupported, because a process cannot confine itself on this system.
func Enter(func(profile string) map[string][]byte) error { return ErrUnsupported }

// EnterContained returns ErrUnsupported, because a process cannot confine itself on this system.
func EnterContained(string) error { return ErrUnsupported }
