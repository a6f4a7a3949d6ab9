package vm

import "time"

// ticksNow is the processor's counter, which an emulated one counts with.
func ticksNow() uint64

// kilohertz is how fast the counter runs. A machine of this kind has nothing that its
// kernel could compare it with.
func kilohertz() int64 {
	const span = 50 * time.Millisecond
	first := ticksNow()
	began := time.Now()
	time.Sleep(span)
	last := ticksNow()
	return int64(float64(last-first) / float64(time.Since(began)) * float64(time.Millisecond))
}
