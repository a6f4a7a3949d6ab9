package memory

import (
	"os"
	"runtime"
	"runtime/debug"
)

// minHeap is the heap size, in bytes, at which Go starts the first garbage collection of a process if GOGC is 100.
const minHeap = 4 << 20

// DelayFirstCollection makes the first garbage collection of this process start when its heap has size bytes. A
// command that runs for a short time then ends before its first collection, which would find hardly any garbage. From
// the first collection on, the garbage collector runs with GOGC=percent. If the environment variable GOGC is set,
// this function does nothing. It must be called once, while the heap is small.
func DelayFirstCollection(size, percent int) {
	if os.Getenv("GOGC") != "" {
		return
	}
	runtime.AddCleanup(new([4]*int), func(percent int) { debug.SetGCPercent(percent) }, percent)
	debug.SetGCPercent(100 * max(1, size/minHeap))
}
