package process

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
	"retort/internal/sandbox/procgroup"
)

// baseline is an upper bound on the resident memory, in bytes, that a runtime has before its program arrives.
const baseline = 64 << 20

// TestMemoryInGroup checks that a program that uses up its memory in a control group exceeds its limit by no more
// than the baseline and guestOverhead.
func TestMemoryInGroup(t *testing.T) {
	g := procgroup.OpenGroups()
	if g == nil {
		t.Skip("this machine delegates no control groups")
	}
	g.Close()
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) { checkMemoryLimit(t, runtime, true, baseline+guestOverhead) })
	}
}

// TestMemoryWithoutGroups checks the memory limit on a machine that delegates no control groups. On such a machine
// only watchLimits and the kernel's limits for a single process enforce the limit. watchLimits may be late on a busy
// machine. The kernel's limit is then what bounds the program: it counts what is mapped for data, and a runtime has
// mapped more than it uses before the program arrives.
func TestMemoryWithoutGroups(t *testing.T) {
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			checkMemoryLimit(t, runtime, false, mappedByRuntime(t, runtime)+guestOverhead+spareMapping)
		})
	}
}

// mappedByRuntime returns how much memory, in bytes, the process of a runtime has mapped for data before its program
// arrives.
func mappedByRuntime(t *testing.T, runtime string) int64 {
	o := optionsFor(t, runtime)
	o.Warm = -1
	b := newBackend(o, nil).open()
	defer b.Close()
	s, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: runtime, Limits: core.DefaultLimits()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	mapped := footingOf(childOf(s).cmd.Process.Pid).data
	t.Logf("%d MB are mapped before the program arrives", mapped>>20)
	return mapped
}

// checkMemoryLimit runs programs that use more memory than they may, with different memory limits. It checks that the
// limit ends each program, and that the memory of the test process hardly grows. The argument above is the number of
// bytes by which the process of a program may exceed the program's limit.
func checkMemoryLimit(t *testing.T, runtime string, groups bool, above int64) {
	bounds := "rlimits, watcher"
	o := optionsFor(t, runtime)
	o.Warm = -1
	var g *procgroup.GroupSet
	if groups {
		g = procgroup.OpenGroups()
		bounds = (&procgroup.ChildGroup{GroupSet: g}).DescribeLimits()
	}
	b := newBackend(o, g).open()
	defer b.Close()
	for _, memory := range []int64{64 << 20, 128 << 20, 256 << 20, 512 << 20} {
		if memory > 64<<20 && (runtime != "node" || memory != 512<<20) && !testenv.Full() {
			continue // Only the engine of node is also told its limit.
		}
		for name, code := range greedyPrograms(runtime) {
			t.Run(fmt.Sprintf("%s to %d MB", name, memory>>20), func(t *testing.T) {
				const most = 64 << 20
				_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) // the high-water mark begins again
				was := highWater(os.Getpid())
				l := core.Limits{Memory: memory, Timeout: testenv.Patience}
				r := inRuntime(t, b, runtime, code, l)
				if r.Status != core.StatusMemoryLimit || r.Error == nil || r.Error.Kind != core.KindLimit || r.Error.Hint == "" {
					t.Errorf("%s %+v", r.Status, r.Error)
				}
				if r.Bounds != bounds {
					t.Errorf("bounded by %s", r.Bounds)
				}
				if grown := highWater(os.Getpid()) - was; grown > most {
					t.Errorf("the host has grown by %d MB", grown>>20)
				}
				if r.MemoryBytes > memory+above || r.MemoryBytes < memory/3 {
					t.Errorf("the process had %d MB", r.MemoryBytes>>20)
				}
				t.Logf("%d MB", r.MemoryBytes>>20)
			})
		}
	}
}

// TestGarbage checks that a program runs to its end if it allocates several times its memory limit in total but keeps
// nothing of that.
func TestGarbage(t *testing.T) {
	const memory = 64 << 20
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			megabytes := 1024
			if runtime == quickjs && !testenv.Full() { // It is slow, and frees a value with its last reference.
				megabytes = 256
			}
			o := Options{Warm: -1, Limits: core.Limits{Memory: memory}}
			if runtime != quickjs {
				o.Interpreters = []RuntimeInterpreter{interpreterHere(t, runtime, memory)}
			}
			b := New(o)
			defer b.Close()
			for name, code := range garbagePrograms(runtime, megabytes) {
				if runtime == "bun" && name == "large buffers" {
					continue // Bun collects them late, as docs/RUNTIMES.md says.
				}
				r := inRuntime(t, b, runtime, code, core.Limits{Memory: memory, Timeout: testenv.Patience})
				if r.Status != core.StatusOK || string(r.Value) != strconv.Itoa(megabytes) {
					t.Errorf("%s: %s %s %+v", name, r.Status, r.Value, r.Error)
				}
				t.Logf("%s: %d MB", name, r.MemoryBytes>>20)
			}
		})
	}
}

// garbagePrograms returns programs that allocate lists, texts or buffers of one megabyte, or buffers of 16 megabytes,
// and keep none of them. Each program returns the number of megabytes that it has allocated.
func garbagePrograms(runtime string, megabytes int) map[string]string {
	programs := map[string]string{
		"lists":         "const row = new Array(131072).fill(0.5); let n = 0; for (let i = 0; i < megabytes; i++) n += row.slice().length / 131072; return n",
		"texts":         "let n = 0; for (let i = 0; i < megabytes; i++) n += `${i % 8}`.repeat(1 << 20).length >> 20; return n",
		"buffers":       "let n = 0; for (let i = 0; i < megabytes; i++) n += new Uint8Array(1 << 20).fill(1).length >> 20; return n",
		"large buffers": "let n = 0; for (let i = 0; i < megabytes; i += 16) n += new Uint8Array(16 << 20).fill(1).length >> 20; return n",
	}
	if runtime == "python" {
		programs = map[string]string{
			"lists":   "n = 0\nfor i in range(megabytes): n += len([i] * 131_072) // 131_072\nn",
			"buffers": "n = 0\nfor i in range(megabytes): n += len(b'x' * (1 << 20)) >> 20\nn",
		}
	}
	for name, code := range programs {
		programs[name] = strings.ReplaceAll(code, "megabytes", strconv.Itoa(megabytes))
	}
	return programs
}

// TestUntilLook checks that the next measurement of a child comes sooner if the child is nearer to its memory limit.
func TestUntilLook(t *testing.T) {
	for left, want := range map[int64]time.Duration{-1: minSampleInterval, 0: minSampleInterval, 4 << 20: 1048576, 40 << 20: 10485760, 1 << 40: maxSampleInterval, math.MaxInt64: maxSampleInterval} {
		if got := untilLook(left); got != want {
			t.Errorf("%d bytes: %v, want %v", left, got, want)
		}
	}
}

// greedyPrograms returns programs that use more and more memory until they are ended. Some fill the runtime's own heap,
// others fill buffers outside of it.
func greedyPrograms(runtime string) map[string]string {
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
