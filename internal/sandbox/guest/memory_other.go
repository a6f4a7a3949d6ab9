//go:build !unix

package guest

import "runtime"

// peakMemory returns the memory that Go's runtime has obtained from the system, in bytes. It omits memory that the
// JavaScript engine maps itself.
func peakMemory() int64 {
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.Sys)
}
