//go:build unix

package testenv

import (
	"syscall"
	"testing"
	"time"
)

// GrowsLinearly fails the test if work on eight times as much takes more than twenty-four times
// the processor time. Processes beside this one do not count, and what takes less than a tenth of
// a second for size passes: it can't be told from noise.
func GrowsLinearly(t testing.TB, what string, size int, work func(size int)) {
	t.Helper()
	const noise = 100 * time.Millisecond
	large := processorTime(t, size, work)
	if large <= noise {
		return
	}
	small := processorTime(t, size/8, work)
	for range 2 {
		large, small = min(large, processorTime(t, size, work)), min(small, processorTime(t, size/8, work))
	}
	if large > 24*small && large > noise {
		t.Errorf("%s: %v for a size of %d, but %v for %d", what, small, size/8, large, size)
	}
}

// processorTime returns what this process spends on work.
func processorTime(t testing.TB, size int, work func(size int)) time.Duration {
	t.Helper()
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	began := spent()
	work(size)
	return spent() - began
}
