package anomaly

import (
	"fmt"
	"math"
	"testing"
)

func TestSketch(t *testing.T) {
	var s histogramSketch
	for i := range 101 {
		s.addValue(float64(50 + i)) // 50 to 150
	}
	if m := bucketCenter(s.medianBucket()); m < 80 || m > 120 {
		t.Errorf("median %v", m)
	}
	if s.isOutlier(500) || !s.isOutlier(5000) {
		t.Errorf("highest %v, score of 5000 %v", s.highestValue(), s.deviationScore(5000))
	}
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1), 1e300} {
		s.addValue(v)
	}
	for range 100 * maxRemembered {
		s.addValue(7)
	}
	if s.n > maxRemembered || s.highestValue() > 8 {
		t.Errorf("what is long ago is not forgotten: %d, %v", s.n, s.highestValue())
	}
}

// TestOutliersAreNotLearned checks that a value is still an outlier after the same value was observed once.
func TestOutliersAreNotLearned(t *testing.T) {
	var s histogramSketch
	for range 100 {
		s.addCapped(100)
	}
	s.addCapped(1e6)
	if !s.isOutlier(1e6) {
		t.Errorf("highest %v", s.highestValue())
	}
}

// TestLevelThatLasts checks that a much higher rate of events is unusual at first and becomes usual after it has
// lasted for some time windows.
func TestLevelThatLasts(t *testing.T) {
	w := rateWindow{width: 60}
	for slot := range int64(40) {
		w.countAt(slot*60, 1)
	}
	if !w.isUnusual(w.countAt(40*60, 1e6), 10) {
		t.Error("a million is not unusual")
	}
	for slot := int64(41); slot < 47; slot++ {
		w.countAt(slot*60, 1e6)
	}
	if w.isUnusual(1e6, 10) {
		t.Errorf("it is after some slots, too: %v, %v, %v", w.mean, w.swing, w.usual.highestValue())
	}
}

// TestWindowSlides checks that a rateWindow counts the events within one window width before a given time, even if
// that span crosses the boundary between two of its time slots.
func TestWindowSlides(t *testing.T) {
	w := rateWindow{width: 60}
	w.countAt(50, 10)
	if n := w.countAt(65, 10); n < 18 || n > 20 {
		t.Errorf("%v", n)
	}
	if n := w.countBefore(180); n != 0 {
		t.Errorf("%v", n)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		before, lost, then int
		want               bool
	}{{400, 2, 12, true}, {400, 2, 9, false}, {2, 0, 20, false}, {100, 40, 12, false}} {
		var f failureRate
		for i := range c.before + recentExecutions {
			f.addCall(i*100/(c.before+recentExecutions) < c.lost, 30)
		}
		found := false
		for range c.then {
			found = f.addCall(true, 30) || found
		}
		if found != c.want {
			t.Errorf("%+v: %v", c, found)
		}
	}
	if p := tailProbability(10, 20, 0.5); math.Abs(p-0.5881) > 0.0001 {
		t.Errorf("the tail of the binomial distribution is %v", p)
	}
}

// TestFirstUse checks that the first use of a tool is unusual only for a principal that seldom uses new tools.
func TestFirstUse(t *testing.T) {
	for often, want := range map[int]bool{1: false, 50: true} {
		p := newPerson(StateLimits{}.withDefaults())
		for i := range 500 {
			p.countUse(toolName{"s", fmt.Sprint(i / often)})
		}
		if got := p.countUse(toolName{"s", "new"}); got != want {
			t.Errorf("each %d times: %v", often, got)
		}
	}
}

func TestSpan(t *testing.T) {
	var s dayCount
	for _, day := range []int64{10, 10, 11, 10, 11, 9, 40, 11, 1000, 10, 10} {
		s.addDay(day)
	}
	if s.days != 6 { // 9, 10, 11, 40, 1000, and 10 again, after a clock that was wrong by years
		t.Errorf("%d days", s.days)
	}
}
