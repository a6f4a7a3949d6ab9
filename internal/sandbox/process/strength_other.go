//go:build !linux && !darwin

package process

// The strength of this backend on this system, where only the runtime restricts the process of a program.
const (
	strength     = 10
	strengthWeak = 10
)

func walledBy(bool) []string {
	return []string{
		"a separate process, killed at the deadline", "no environment, no inherited descriptors",
		"a runtime without files, network or processes",
	}
}
