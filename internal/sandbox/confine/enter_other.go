//go:build !linux

package confine

// Enter builds the walls of this process. It is not there on this system.
func Enter(func(profile string) map[string][]byte) error { return ErrUnsupported }

// EnterContained is not there on this system either.
func EnterContained(string) error { return ErrUnsupported }
