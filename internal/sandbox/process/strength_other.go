//go:build !linux && !darwin

package process

// strength is the isolation strength of this backend's sandboxes on this system. It is low, because only the runtime
// restricts a program and the operating system does not.
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
