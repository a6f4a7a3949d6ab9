package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/run"
	"retort/internal/wire"
)

const lookEvery = 20 * time.Millisecond

// limit sets the limits of one program, as a backstop: the guest's runtime and
// the watcher come first.
func (k *kind) limit(pid int, l run.Limits) {
	setLimit(pid, unix.RLIMIT_DATA, uint64(allowance(l)+k.reserve))
	setLimit(pid, unix.RLIMIT_CPU, uint64(l.Timeout/time.Second)*2+10)
}

// limitHelper bounds the memory of a process that is not a guest.
func limitHelper(pid int, most int64) { setLimit(pid, unix.RLIMIT_DATA, uint64(most+goReserve)) }

func setLimit(pid, resource int, most uint64) {
	_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil) // the child may be gone
}

// allowance is how much memory a child may have resident: the program's, and
// what the guest needs beside it, such as copies of what is sent and received.
func allowance(l run.Limits) int64 { return l.Memory + 64<<20 + 2*l.Result }

// watch cancels the program when its child uses more memory than it may. The
// runtime's own limit comes first; this one holds when that does not.
func (c *child) watch(l run.Limits, cancel context.CancelCauseFunc) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			used := residentPrivate(c.cmd.Process.Pid)
			c.peak.note(used)
			if used > allowance(l) {
				cancel(wire.MemoryStop(l.Memory))
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// residentPrivate is the memory of a process that is its own: what it shares
// with others, such as the pages of this very program, is not counted.
func residentPrivate(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data) // in pages: size resident shared …
	if len(fields) < 3 {
		return 0
	}
	resident, _ := strconv.ParseInt(string(fields[1]), 10, 64)
	shared, _ := strconv.ParseInt(string(fields[2]), 10, 64)
	return (resident - shared) * int64(os.Getpagesize())
}

// highWater is the most memory that a process has had resident, of which its
// program's pages are a part.
func highWater(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, found := bytes.Cut(data, []byte("VmHWM:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(string(fields[0]), 10, 64)
	return kb << 10
}

// scarce is the available memory, in bytes, below which no children are kept
// ready: a waiting one takes 10 to 60 MB.
const scarce = 512 << 20

// hasRoom says whether the machine has memory to spare.
func hasRoom() bool {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return true
	}
	_, after, found := bytes.Cut(data, []byte("MemAvailable:"))
	fields := bytes.Fields(after)
	if !found || len(fields) == 0 {
		return true
	}
	kb, err := strconv.ParseInt(string(fields[0]), 10, 64)
	return err != nil || kb<<10 >= scarce
}
