package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"retort/internal/core"
	"retort/internal/sandbox/wire"
)

const (
	// maxSampleInterval and minSampleInterval bound the time between two measurements of a child's memory. The nearer
	// the child is to its limit, the shorter the time. fillRate is the speed at which a child is assumed to fill its
	// memory, in bytes per nanosecond.
	maxSampleInterval, minSampleInterval = 20 * time.Millisecond, time.Millisecond
	fillRate                             = 4
	// cpuSampleInterval sets the interval at which the processor time of a child is measured.
	cpuSampleInterval = 100 * time.Millisecond
	// ceilingGrace is how long a child may be unable to map more memory before it is killed.
	ceilingGrace = 500 * time.Millisecond
	// guestOverhead bounds the memory that a process may use in addition to its baseline and the program's limit, in
	// bytes. A runtime needs it for garbage that it has not collected yet and for copies of data that it sends and
	// receives.
	guestOverhead = 64 << 20
	// spareMapping is the number of bytes of address space that the process of a guest may map beyond the memory that
	// it may use. The stacks of threads and large blocks of the allocator need them. helperSpare is the same for a
	// helper process, which is not a guest.
	spareMapping, helperSpare = 256 << 20, 1 << 30
)

// baselineMemory holds how much memory, in bytes, and how many threads a child has before its program arrives. All
// limits are relative to these numbers, because the memory that runtimes map without using it differs by gigabytes.
type baselineMemory struct {
	data     int64 // memory that the process has mapped for data
	own      int64 // resident memory without the pages of files
	resident int64
	threads  int
}

// presetLimits sets in advance the limits that the child's program will probably have. Setting them takes a fraction
// of a millisecond, for which a program would otherwise have to wait.
func (c *guestChild) presetLimits(l core.Limits, threads int) {
	c.footing, c.presetFor = footingOf(c.cmd.Process.Pid), l
	c.group.SetLimits(c.footing.own+memoryAllowance(l), l, threads)
}

// setLimits sets the kernel's limits for the child's program. They are a backstop: the guest's runtime and
// watchLimits act first.
func (c *guestChild) setLimits(l core.Limits, threads int) {
	if f := c.presetFor; f.Memory != l.Memory || f.Result != l.Result || f.CPU != l.CPU {
		c.presetLimits(l, threads)
	}
	pid := c.cmd.Process.Pid
	setLimit(pid, unix.RLIMIT_DATA, uint64(c.footing.data+memoryAllowance(l)+spareMapping))
	setLimit(pid, unix.RLIMIT_CPU, uint64(processorTime(l)/time.Second))
}

// residentBefore returns the resident memory of the child before its program arrived.
func (c *guestChild) residentBefore() int64 { return c.footing.resident }

// limitHelper bounds the memory of a helper process, which is not a guest.
func limitHelper(pid int, most int64) {
	setLimit(pid, unix.RLIMIT_DATA, uint64(footingOf(pid).data+most+helperSpare))
}

func setLimit(pid, resource int, most uint64) {
	_ = unix.Prlimit(pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil) // the child may be gone
}

// memoryAllowance returns how much resident memory a child may use above its baseline, in bytes.
func memoryAllowance(l core.Limits) int64 { return l.Memory + guestOverhead }

// Watch implements warmpool.ProgramWatcher.
func (c *guestChild) Watch(l core.Limits, cancel context.CancelCauseFunc) (stop func()) {
	return c.watchLimits(l, c.kind.plan.Processes, cancel)
}

// watchLimits cancels the program when its child exceeds its memory, processor time or threads. It is a backstop: the
// runtime's own limits and those of the control group act first. The returned function stop ends the watching and
// waits until that has happened.
func (c *guestChild) watchLimits(l core.Limits, threads int, cancel context.CancelCauseFunc) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		var full time.Duration // time in which nothing could be mapped
		wait := untilLook(memoryAllowance(l))
		next := time.NewTimer(wait)
		defer next.Stop()
		unmeasured, computed := time.Duration(0), processorTimeOf(c.cmd.Process.Pid)
		for {
			select {
			case <-done:
				return
			case <-next.C:
			}
			now := footingOf(c.cmd.Process.Pid)
			c.peak.Note(now.own)
			if full += wait; !atCeiling(c.cmd.Process.Pid, now.data) {
				full = 0
			}
			left := c.footing.own + memoryAllowance(l) - now.own
			reason := checkLimits(left, full, now.threads, threads, l)
			if unmeasured += wait; reason == nil && unmeasured >= cpuSampleInterval {
				unmeasured, reason = 0, checkComputeTime(processorTimeOf(c.cmd.Process.Pid)-computed, l)
			}
			if reason != nil {
				cancel(reason)
				return
			}
			wait = untilLook(left)
			next.Reset(wait)
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// checkLimits returns the reason to kill a child that has exceeded its memory or its number of threads, or nil. The
// argument left is the number of bytes by which the child's memory may still grow. The argument full is how long the
// child has been unable to map memory.
func checkLimits(left int64, full time.Duration, threads, mostThreads int, l core.Limits) error {
	switch {
	case left < 0 || full > ceilingGrace:
		return wire.MemoryStop(l.Memory)
	case threads > mostThreads:
		return wire.ThreadStop(mostThreads)
	}
	return nil
}

// checkComputeTime returns the reason to end a child that has used too much processor time, or nil. The argument
// computed is the processor time that the child has used for its program.
func checkComputeTime(computed time.Duration, l core.Limits) error {
	if computed > l.Computing {
		return wire.ComputingStop(l.Computing)
	}
	return nil
}

// untilLook returns how long to wait before a child's memory is measured again. The argument left is the number of
// bytes by which the child's memory may still grow.
func untilLook(left int64) time.Duration {
	return min(max(time.Duration(left/fillRate), minSampleInterval), maxSampleInterval)
}

// processorTimeOf returns the processor time of all threads of a process, including those that have ended, or 0 if
// the process is gone.
func processorTimeOf(pid int) time.Duration {
	const ticks = 100 // in a second, by the interface of the kernel
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // the name before may have blanks
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(string(fields[11]), 10, 64)
	system, _ := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * time.Second / ticks
}

// atCeiling reports whether a process that has mapped data bytes cannot map any more memory. Such a process may never
// end. CPython, for example, retries for ever to raise a MemoryError if it has no memory for an integer.
func atCeiling(pid int, data int64) bool {
	const least = 1 << 20 // unit of allocators
	var most unix.Rlimit
	return data > 0 && unix.Prlimit(pid, unix.RLIMIT_DATA, nil, &most) == nil && uint64(data)+least > most.Cur
}

// exceededMemory reports whether a child that has ended had used more memory than its program was allowed to use. If
// so, that explains the child's end better than its exit status does.
func (c *guestChild) exceededMemory(l core.Limits) bool {
	usage, ok := c.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return ok && usage.Maxrss<<10-c.footing.resident > l.Memory
}

// footingOf measures the memory and threads of a process before its program arrives. The program's limits are added to
// these numbers. The result is zero if the process is gone. Only anonymous and shared memory counts as the process's
// own, not the pages of files such as the executable.
func footingOf(pid int) baselineMemory {
	m := statusOf(pid)
	return baselineMemory{data: m["VmData"], own: m["RssAnon"] + m["RssShmem"], resident: m["VmRSS"], threads: int(m["Threads"])}
}

// statusOf returns the numeric fields of /proc/PID/status. Sizes are in bytes.
func statusOf(pid int) map[string]int64 {
	numbers := map[string]int64{}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return numbers
	}
	for line := range bytes.Lines(data) {
		name, rest, _ := bytes.Cut(line, []byte(":"))
		fields := bytes.Fields(rest)
		if len(fields) == 0 {
			continue
		}
		n, err := strconv.ParseInt(string(fields[0]), 10, 64)
		if len(fields) == 2 && string(fields[1]) == "kB" {
			n <<= 10
		}
		if err == nil {
			numbers[string(name)] = n
		}
	}
	return numbers
}

// highWater returns the peak resident memory of a process in bytes, including the pages of its executable.
func highWater(pid int) int64 { return statusOf(pid)["VmHWM"] }
