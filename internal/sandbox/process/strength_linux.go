package process

import "retort/internal/sandbox"

// The strengths of this backend's sandboxes: strength if the operating system confines the process fully, and
// strengthWeak if the process is confined without namespaces.
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
