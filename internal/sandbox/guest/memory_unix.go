//go:build unix

package guest

import (
	"runtime"
	"syscall"
)

// peakMemory returns the peak resident memory of this process, in bytes.
func peakMemory() int64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(usage.Maxrss) // in bytes there
	}
	return int64(usage.Maxrss) << 10
}
