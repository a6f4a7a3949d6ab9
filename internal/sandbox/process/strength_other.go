//go:build !linux && !darwin

package process

// How the backend describes itself on this system: a process that only its runtime restricts.
const (
	strength     = 10
	strengthWeak = 10
)

func walledBy(bool) []string {
	return []string{
		"a process of its own, killed at the deadline", "no environment, no inherited descriptors",
		"a runtime without files, network or processes",
	}
}
