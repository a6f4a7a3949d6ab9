package process

import "retort/internal/sandbox"

// strength and strengthWeak are the isolation strengths of this backend's sandboxes on Linux. strength applies if the
// operating system confines the process fully, strengthWeak if it confines the process without namespaces.
const (
	strength     = sandbox.Process
	strengthWeak = 20
)

func walledBy(weak bool) []string {
	common := []string{
		"a separate process, killed at the deadline", "no environment, no inherited descriptors, no capabilities",
		"an allow list of system calls", "Landlock, where the kernel has it", "limits on memory, CPU time, files, threads and descriptors",
		"ends with the engine, however the engine ends",
	}
	if weak {
		return common
	}
	return append([]string{
		"its own namespaces: users, mounts, processes, network, IPC, host name, control groups",
		"a file system that contains only the runtime",
	}, common...)
}
