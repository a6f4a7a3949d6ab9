//go:build !unix

package guest

import "runtime"

// peakMemory returns the peak memory that this process has obtained from the system, in bytes. It does not include
// what the engine maps itself.
func peakMemory() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys)
}
