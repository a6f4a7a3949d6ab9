package anomaly

// window counts what happens within its width, and learns how much that usually is.
type window struct {
	width       int64 // seconds
	slot        int64 // of time that is counted now
	begun       bool
	now, before float64
	mean, swing float64 // moving average of slots, and of how far they are from it
	usual       sketch  // of the slots in which something was
}

const (
	smoothing = 1.0 / 32 // weight of the newest slot in averages
	maxIdle   = 256      // slots, after which averages are as good as zero
)

// roll closes the slots that are over. A clock that goes back by less than a slot changes
// nothing; where it jumps further, counting begins anew there.
func (w *window) roll(t int64) {
	slot := t / w.width
	switch {
	case !w.begun:
		w.slot, w.begun = slot, true
	case slot < w.slot-1:
		w.close()
		w.slot, w.now, w.before = slot, 0, 0
	case slot > w.slot:
		w.close()
		idle := slot - w.slot - 1
		for range min(idle, maxIdle) {
			if w.average(0); w.swing < 1e-9 {
				break
			}
		}
		if w.before = w.now; idle > 0 {
			w.before = 0
		}
		w.slot, w.now = slot, 0
	}
}

func (w *window) close() {
	w.average(w.now)
	if w.now > 0 {
		w.usual.learn(w.now)
	}
}

func (w *window) average(x float64) {
	off := x - w.mean
	w.mean += smoothing * off
	w.swing += smoothing * (max(off, -off) - w.swing)
}

// add counts n at a time and returns how much there was within a width before it.
func (w *window) add(t int64, n float64) float64 {
	w.roll(t)
	w.now += n
	return w.at(t)
}

// at is about how much there was within a width before a time.
func (w *window) at(t int64) float64 {
	w.roll(t)
	left := float64(w.width-max(0, t-w.slot*w.width)) / float64(w.width)
	return w.now + w.before*max(0, left)
}

// unusual reports whether so much within a width is: in absolute terms, against all
// that there was, and against what there was of late.
func (w *window) unusual(n, floor float64) bool {
	return n >= floor && n > fold*w.usual.highest() && n > w.mean+6*w.swing
}
