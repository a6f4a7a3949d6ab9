//go:build !linux && !darwin

package process

// How the backend describes itself: a process that is restricted only by the runtime in it.
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
