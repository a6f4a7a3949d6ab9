package vm

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// mostPatience times its bound is how long a machine may take at most, however long it waits for a processor.
	mostPatience = 5
	askEvery     = 250 * time.Millisecond
)

// within kills the machine when it takes longer than most until stop is called. On a computer that is busy
// with other things a machine gets little of a processor: what it waits for one does not count.
func (m *vm) within(most time.Duration) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(min(askEvery, most))
		defer tick.Stop()
		for began := time.Now(); ; {
			select {
			case <-done:
				return
			case <-m.over:
				return
			case <-tick.C:
			}
			took, waited := time.Since(began), starvedFor(m.cmd.Process.Pid)
			if took-waited > most || took > mostPatience*most {
				m.abandon(errSlow(took, waited))
				return
			}
		}
	}()
	return func() { close(done) }
}

// errSlow is the error of a machine that took too long.
func errSlow(took, waited time.Duration) error {
	return fmt.Errorf("the machine was not ready after %v, of which it waited %v for a processor, and was ended", took.Round(time.Second), waited.Round(time.Second))
}

// starvedFor returns how long the thread of a process that waited longest for a processor has done so; 0 where
// the system does not tell.
func starvedFor(pid int) (longest time.Duration) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	for _, file := range files {
		text, _ := os.ReadFile(file)
		if fields := strings.Fields(string(text)); len(fields) > 1 { // time on a processor, time before that, in ns
			ns, _ := strconv.ParseInt(fields[1], 10, 64)
			longest = max(longest, time.Duration(ns))
		}
	}
	return longest
}
