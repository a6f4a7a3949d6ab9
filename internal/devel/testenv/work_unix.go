//go:build unix

package testenv

import (
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"
)

// GrowsLinearly fails the test if work(size) takes more than 24 times as much processor time as work(size/8). It
// passes if work(size) takes less than a tenth of a second, which is too short to measure. It measures only this
// process, up to nine times, and uses the shortest times, because other processes can only make a measurement longer.
func GrowsLinearly(t testing.TB, what string, size int, work func(size int)) {
	t.Helper()
	const noise = 100 * time.Millisecond
	large := processorTime(t, size, work)
	if large <= noise {
		return
	}
	small := processorTime(t, size/8, work)
	for round := 0; round < 8 && large > noise && large > 24*small; round++ {
		large, small = min(large, processorTime(t, size, work)), min(small, processorTime(t, size/8, work))
	}
	if large > 24*small && large > noise {
		t.Errorf("%s: %v for a size of %d, but %v for %d", what, small, size/8, large, size)
	}
}

// processorTime returns the processor time that this process spends on work. It turns the garbage collector off,
// because a collection could happen to run in only one of two compared measurements.
func processorTime(t testing.TB, size int, work func(size int)) time.Duration {
	t.Helper()
	spent := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	runtime.GC()
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	began := spent()
	work(size)
	return spent() - began
}
