package anomaly

// rateWindow counts events in a sliding time window and learns the usual count.
type rateWindow struct {
	width       int64 // in seconds
	slot        int64 // current time slot
	begun       bool
	now, before float64
	mean, swing float64         // moving averages of the counts of slots, and of their distance from it
	usual       histogramSketch // counts of the slots that had events
}

const (
	slotWeight = 1.0 / 32 // weight of the newest slot in the moving averages
	maxIdle    = 256      // idle slots after which the averages are practically zero
)

// rollSlots closes the time slots that have ended. A clock that goes back by less than a slot changes nothing. After
// a larger jump back, counting restarts.
func (w *rateWindow) rollSlots(t int64) {
	slot := t / w.width
	switch {
	case !w.begun:
		w.slot, w.begun = slot, true
	case slot < w.slot-1:
		w.closeSlot()
		w.slot, w.now, w.before = slot, 0, 0
	case slot > w.slot:
		w.closeSlot()
		idle := slot - w.slot - 1
		for range min(idle, maxIdle) {
			if w.updateAverage(0); w.swing < 1e-9 {
				break
			}
		}
		if w.before = w.now; idle > 0 {
			w.before = 0
		}
		w.slot, w.now = slot, 0
	}
}

func (w *rateWindow) closeSlot() {
	w.updateAverage(w.now)
	if w.now > 0 {
		w.usual.addCapped(w.now)
	}
}

func (w *rateWindow) updateAverage(x float64) {
	off := x - w.mean
	w.mean += slotWeight * off
	w.swing += slotWeight * (max(off, -off) - w.swing)
}

// countAt counts n events that happened at the time t. It returns the number of events within one window width before
// t.
func (w *rateWindow) countAt(t int64, n float64) float64 {
	w.rollSlots(t)
	w.now += n
	return w.countBefore(t)
}

// countBefore returns an estimate of the count within one window width before a time.
func (w *rateWindow) countBefore(t int64) float64 {
	w.rollSlots(t)
	left := float64(w.width-max(0, t-w.slot*w.width)) / float64(w.width)
	return w.now + w.before*max(0, left)
}

// isUnusual reports whether n events in one window are unusual: at least floor, and unusually many compared with
// all earlier counts and with the recent counts.
func (w *rateWindow) isUnusual(n, floor float64) bool {
	return n >= floor && n > unusualFactor*w.usual.highestValue() && n > w.mean+6*w.swing
}
