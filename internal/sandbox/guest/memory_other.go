//go:build !unix

package guest

import "runtime"

// peakMemory is the most memory this process has had from the system, in bytes.
// What the engine maps by itself is not in it.
func peakMemory() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys)
}
