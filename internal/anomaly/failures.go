package anomaly

import (
	"math"
	"math/bits"
)

// failureRate counts the failed calls among the last twenty calls and, separately, among the calls before these.
type failureRate struct {
	recent        uint32 // one bit for each recent call, the newest in the lowest bit
	filled        uint8
	calls, failed float64 // calls and failures before the recent ones
}

const (
	recentExecutions = 20
	fewLost          = 10   // minimum number of failures among the recent calls
	unlikelyChance   = 1e-6 // probability below which this number of failures is not due to chance
	failureWindow    = 2000 // number of calls at which the earlier counts are halved
	quantile3        = 3.0  // standard deviations between the observed rate and its upper bound
)

// addCall adds a call to the counts. It returns true if the call failed and the recent calls failed more often
// than chance explains, given the failures of earlier calls. It returns false if there are fewer than enough
// earlier calls.
func (f *failureRate) addCall(failed bool, enough int) bool {
	if f.filled == recentExecutions {
		f.calls++
		f.failed += float64(f.recent >> (recentExecutions - 1) & 1)
		if f.calls >= failureWindow {
			f.calls, f.failed = f.calls/2, f.failed/2
		}
	} else {
		f.filled++
	}
	f.recent = f.recent << 1 & (1<<recentExecutions - 1)
	if failed {
		f.recent |= 1
	}
	return failed && f.failedCount() >= fewLost && f.calls >= float64(enough) &&
		tailProbability(f.failedCount(), recentExecutions, f.failureBound()) < unlikelyChance
}

func (f *failureRate) failedCount() int { return bits.OnesCount32(f.recent) }

// failureBound returns an upper bound of the usual failure rate. It is Wilson's bound for one more failure than was
// observed, so that it is never zero.
func (f *failureRate) failureBound() float64 {
	n := f.calls + 2
	p := (f.failed + 1) / n
	z := quantile3
	return (p + z*z/(2*n) + z*math.Sqrt(p*(1-p)/n+z*z/(4*n*n))) / (1 + z*z/n)
}

// tailProbability returns the probability that at least k of n calls fail if each fails with probability p.
func tailProbability(k, n int, p float64) (sum float64) {
	term := math.Pow(1-p, float64(n))
	for i := range n + 1 {
		if i >= k {
			sum += term
		}
		term *= float64(n-i) / float64(i+1) * p / (1 - p)
	}
	return sum
}
