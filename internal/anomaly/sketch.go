package anomaly

import "math"

// histogramSketch counts values by order of magnitude, with two buckets for each power of two. Old values slowly lose
// weight, and its size is fixed. The same values in the same order give the same sketch. Statistics are computed from
// the logarithms of the values, because sizes, counts and durations are roughly symmetric on that scale.
type histogramSketch struct {
	n       uint32
	buckets [bucketCount]uint16
}

const (
	bucketCount      = 64   // values up to 2^32
	bucketsPerOctave = 2    // buckets for each power of two
	maxRemembered    = 1024 // number of values at which all counts are halved
)

func bucketOf(v float64) int {
	if !(v >= 1) { // NaN, too
		return 0
	}
	return int(min(1+math.Floor(bucketsPerOctave*math.Log2(v)), bucketCount-1))
}

// bucketUpper returns the exclusive upper bound of the values in a bucket.
func bucketUpper(bucket int) float64  { return math.Exp2(float64(bucket) / bucketsPerOctave) }
func bucketCenter(bucket int) float64 { return math.Exp2((float64(bucket) - 0.5) / bucketsPerOctave) }

func (s *histogramSketch) addValue(v float64) {
	s.buckets[bucketOf(v)]++
	if s.n++; s.n >= maxRemembered {
		s.n = 0
		for i := range s.buckets {
			s.buckets[i] /= 2
			s.n += uint32(s.buckets[i])
		}
	}
}

// medianBucket returns the bucket of the median, or 0 if there are no values.
func (s *histogramSketch) medianBucket() int {
	var seen uint32
	for i, n := range s.buckets {
		if seen += uint32(n); n > 0 && 2*seen >= s.n {
			return i
		}
	}
	return 0
}

// medianDeviation returns the median distance of all values from their median, in buckets. It returns at least half
// an octave (a factor of two), because positions within a bucket are unknown.
func (s *histogramSketch) medianDeviation(median int) float64 {
	var seen uint32
	for d := range bucketCount {
		if i := median - d; i >= 0 {
			seen += uint32(s.buckets[i])
		}
		if i := median + d; i < bucketCount && d > 0 {
			seen += uint32(s.buckets[i])
		}
		if 2*seen >= s.n {
			return max(float64(d), bucketsPerOctave/2)
		}
	}
	return bucketsPerOctave / 2
}

// highestValue returns an upper bound of all remembered values, or 0.
func (s *histogramSketch) highestValue() float64 {
	for i := bucketCount - 1; i >= 0; i-- {
		if s.buckets[i] > 0 {
			return bucketUpper(i)
		}
	}
	return 0
}

// deviationScore returns how many standard deviations a value is above the median, assuming that the logarithms are
// normally distributed.
func (s *histogramSketch) deviationScore(v float64) float64 {
	m := s.medianBucket()
	return float64(bucketOf(v)-m) / (1.4826 * s.medianDeviation(m))
}

const (
	outlierDeviations = 3.5 // standard deviations; the bound for outliers of Iglewicz and Hoaglin
	// unusualFactor is how many times as large as any earlier value a value must be to be unusual, whatever the
	// distribution.
	unusualFactor = 4
)

// isOutlier reports whether a value is far from all earlier values.
func (s *histogramSketch) isOutlier(v float64) bool {
	return v > unusualFactor*s.highestValue() && (s.n == 0 || s.deviationScore(v) > outlierDeviations)
}

// addCapped adds a value to the histogram. It caps the value at twice the highest earlier one, so that one outlier
// does not make the next one look usual.
func (s *histogramSketch) addCapped(v float64) {
	if s.n > 0 {
		v = min(v, 2*s.highestValue())
	}
	s.addValue(v)
}

func (s *histogramSketch) toEvidence(now float64) FindingEvidence {
	m := s.medianBucket()
	e := FindingEvidence{Now: roundValue(now), Samples: int(s.n)}
	if s.n > 0 {
		e.Median, e.Highest = roundValue(bucketCenter(m)), math.Ceil(s.highestValue())-1
		e.Deviation = roundValue(math.Exp2(s.medianDeviation(m) / bucketsPerOctave))
	}
	return e
}

func roundValue(v float64) float64 { return math.Round(v*100) / 100 }
