package process

import (
	"fmt"
	"os"
	"testing"

	"retort/internal/run"
	"retort/internal/testenv"
)

// TestMemoryWithoutGroups has programs use all their memory where the machine
// delegates no control groups: limits of the process and the watcher hold alone,
// and the host hardly grows.
func TestMemoryWithoutGroups(t *testing.T) {
	for _, runtime := range everywhere {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.Warm = -1
			b := newBackend(o, nil)
			defer b.Close()
			for _, memory := range []int64{64 << 20, 512 << 20} {
				if memory > 64<<20 && runtime != "node" && !testenv.Full() {
					continue // Only the engine of node is also told its limit.
				}
				for name, code := range devouring(runtime) {
					t.Run(fmt.Sprintf("%s to %d MB", name, memory>>20), func(t *testing.T) {
						const most = 64 << 20
						_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the high-water mark begins again
						was := highWater(os.Getpid())
						l := run.Limits{Memory: memory, Result: 1 << 20, Timeout: testenv.Patience}
						r := inRuntime(t, b, runtime, code, l)
						if r.Status != run.StatusMemoryLimit || r.Error == nil || r.Error.Kind != run.KindLimit || r.Error.Hint == "" {
							t.Errorf("%s %+v", r.Status, r.Error)
						}
						if r.Bounds != "rlimits, watcher" {
							t.Errorf("bounded by %s", r.Bounds)
						}
						if grown := highWater(os.Getpid()) - was; grown > most {
							t.Errorf("the host has grown by %d MB", grown>>20)
						}
						if r.MemoryBytes > memory+512<<20 {
							t.Errorf("the program had %d MB", r.MemoryBytes>>20)
						}
					})
				}
			}
		})
	}
}

// devouring are programs that use memory without end: the runtime's own heap,
// and what is beside it.
func devouring(runtime string) map[string]string {
	const buffers = "const a = []; for (;;) a.push(new Uint8Array(1 << 20).fill(1))"
	switch runtime {
	case "python":
		return map[string]string{
			"lists":   "a = []\nwhile True: a.append([len(a)] * 100_000)",
			"buffers": "a = []\nwhile True: a.append(b'x' * (1 << 20))",
		}
	case quickjs: // which takes seconds to fill lists
		return map[string]string{"texts": "const a = []; for (;;) a.push(`${a.length}`.repeat(1 << 18))", "buffers": buffers}
	}
	return map[string]string{"lists": "const a = [], row = new Array(1e5).fill(0.5); for (;;) a.push(row.slice())", "buffers": buffers}
}
