package tokens

// messageSample keeps a bounded, evenly spread part of a stream of messages. It keeps the whole stream while it fits.
// After that it keeps a slice of every message, and the slices get thinner as the stream grows.
type messageSample struct {
	kept  []byte
	seen  int // bytes
	every int // bytes of the stream per kept byte
	skip  int // bytes to pass over before the next slice
}

// sampleSlice is the number of consecutive bytes that are sampled together: enough for whole words.
const sampleSlice = 256

func (s *messageSample) addMessage(data []byte) {
	s.every = max(s.every, 1)
	s.seen += len(data)
	for len(data) > 0 {
		if s.skip >= len(data) {
			s.skip -= len(data)
			return
		}
		data = data[s.skip:]
		n := min(sampleSlice, len(data))
		s.kept = append(s.kept, data[:n]...)
		data = data[n:]
		s.skip = (s.every - 1) * n
		if len(s.kept) > 2*sampledBytes {
			s.halveRate()
		}
	}
}

// halveRate drops every second slice and halves the sampling rate.
func (s *messageSample) halveRate() {
	kept := s.kept[:0]
	for i := 0; i < len(s.kept); i += 2 * sampleSlice {
		kept = append(kept, s.kept[i:min(i+sampleSlice, len(s.kept))]...)
	}
	s.kept = kept
	s.every *= 2
	s.skip = (s.every - 1) * sampleSlice
}

// estimateTokens estimates the tokens of a stream of total bytes.
func (s *messageSample) estimateTokens(total int) int {
	if len(s.kept) == 0 {
		return 0
	}
	n := EstimateTokens(string(s.kept), sampledBytes)
	return int(float64(n) * float64(total) / float64(len(s.kept)))
}
