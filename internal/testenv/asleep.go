package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// looks is how often in a row FallsAsleep must find a process asleep.
const looks = 20

// FallsAsleep waits until no thread of a process has been woken between so many looks at it, about
// 10 ms apart. It reports false if that does not happen within Patience or the process is gone.
// Only Linux tells of it: elsewhere every process is gone.
func FallsAsleep(pid int) bool {
	last, asleep := 0, 0
	there := true
	slept := Poll(func() bool {
		now := switches(pid)
		if asleep++; now != last {
			last, asleep = now, 0
		}
		there = now > 0
		return asleep >= looks || !there
	})
	return slept && there
}

var switched = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)`)

// switches counts how often the threads of a process have given the processor away.
func switches(pid int) (n int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	for _, file := range tasks {
		data, _ := os.ReadFile(file) // the thread may be gone
		if m := switched.FindSubmatch(data); m != nil {
			count, _ := strconv.Atoi(string(m[1]))
			n += count
		}
	}
	return n
}
