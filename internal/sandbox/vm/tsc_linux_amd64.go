package vm

import "time"

// ticksNow returns the value of the processor's time stamp counter. A processor that QEMU emulates has the same
// counter.
func ticksNow() uint64

// counterKHz measures the frequency of the time stamp counter, in kHz. The kernel of a machine cannot measure it,
// because the machine has no other clock to compare it with.
func counterKHz() int64 {
	const span = 50 * time.Millisecond
	first := ticksNow()
	began := time.Now()
	time.Sleep(span)
	last := ticksNow()
	return int64(float64(last-first) / float64(time.Since(began)) * float64(time.Millisecond))
}
