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
	// starvationFactor bounds how long a machine may take in total if it often waits for a processor: at most this
	// many times its time limit. The time limit itself does not include the waiting.
	starvationFactor = 5
	askEvery         = 250 * time.Millisecond
)

// killAfter kills the machine when it has run for longer than the argument most. Time in which the machine waits for
// a processor does not count, because it may be long on a busy computer. The returned function stop cancels the
// killing.
func (m *virtualMachine) killAfter(most time.Duration) (stop func()) {
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
			if took-waited > most || took > starvationFactor*most {
				m.abandonMachine(errSlow(took, waited))
				return
			}
		}
	}()
	return func() { close(done) }
}

// errSlow returns the error for a machine that exceeded its time limit.
func errSlow(took, waited time.Duration) error {
	return fmt.Errorf(
		"the machine was stopped because it was not ready after %v; it spent %v of that waiting for a processor",
		took.Round(time.Second), waited.Round(time.Second),
	)
}

// starvedFor returns how long a process has been starved of processor time: of all its threads' waiting times, it
// returns the longest. It returns 0 if the system does not measure them.
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
