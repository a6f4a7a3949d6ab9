package procgroup

import (
	"fmt"
	"os"
	"strings"
)

// OwnMemory returns the anonymous memory of a process, such as stacks and heap, in bytes. It omits pages of files
// that the process has not changed. It returns 0 if the process is gone.
func OwnMemory(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(data), "\nRssAnon:")
	var kb int64
	_, _ = fmt.Sscan(after, &kb)
	return kb << 10
}
