package procgroup

import (
	"fmt"
	"os"
	"strings"
)

// OwnMemory returns the memory of a process that it shares with no file, in bytes: what it has written, and stacks and
// heap. It returns 0 if the process is gone.
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
