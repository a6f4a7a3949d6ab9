package testenv

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

// sleepChecks is the number of consecutive checks for which a process must not run to count as idle.
const sleepChecks = 20

// FallsAsleep waits until a process is idle: no thread of it runs during several consecutive checks, about 10 ms
// apart. It returns false if that does not happen within Patience or the process ends first. It always returns false
// on systems other than Linux.
func FallsAsleep(pid int) bool {
	last, asleep := 0, 0
	there := true
	slept := Poll(func() bool {
		now := contextSwitches(pid)
		if asleep++; now != last {
			last, asleep = now, 0
		}
		there = now > 0
		return asleep >= sleepChecks || !there
	})
	return slept && there
}

var switched = regexp.MustCompile(`(?m)^voluntary_ctxt_switches:\s+(\d+)`)

// contextSwitches returns the number of voluntary context switches of the threads of a process. It returns
// 0 if the process is gone.
func contextSwitches(pid int) (n int) {
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
