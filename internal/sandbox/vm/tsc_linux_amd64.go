package vm

import "time"

// ticksNow returns the processor's time stamp counter. An emulated processor uses the same counter.
func ticksNow() uint64

// counterKHz measures the frequency of the counter. A machine of this type has no other clock with which its kernel
// could measure it.
func counterKHz() int64 {
	const span = 50 * time.Millisecond
	first := ticksNow()
	began := time.Now()
	time.Sleep(span)
	last := ticksNow()
	return int64(float64(last-first) / float64(time.Since(began)) * float64(time.Millisecond))
}
