package memory

import (
	"os"
	"runtime"
	"runtime/debug"
)

// minHeap is the heap size in bytes at which Go starts the first collection with GOGC=100.
const minHeap = 4 << 20

// DelayFirstCollection makes the first garbage collection of this process start when its heap has size bytes, and then
// sets the percentage of GOGC to percent. A short command ends before that. A collection while the process starts would
// find hardly any garbage. The variable GOGC takes precedence. It must be called once, before the process has a large
// heap.
func DelayFirstCollection(size, percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	runtime.AddCleanup(new([4]*int), func(percent int) { debug.SetGCPercent(percent) }, percent)
	debug.SetGCPercent(100 * max(1, size/minHeap))
}
