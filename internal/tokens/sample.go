package tokens

// messageSample keeps a sample of a stream of messages, in bounded memory. While the stream is short, the sample is
// the whole stream. Later it consists of slices of the stream at regular distances. The longer the stream, the larger
// are the distances.
type messageSample struct {
	kept  []byte
	seen  int // bytes
	every int // bytes of the stream per kept byte
	skip  int // bytes to skip before the next slice
}

// sampleSlice is the number of consecutive bytes that are sampled together. It is large enough for whole words.
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

// halveRate drops every second slice, and from now on samples half as much of the stream.
func (s *messageSample) halveRate() {
	kept := s.kept[:0]
	for i := 0; i < len(s.kept); i += 2 * sampleSlice {
		kept = append(kept, s.kept[i:min(i+sampleSlice, len(s.kept))]...)
	}
	s.kept = kept
	s.every *= 2
	s.skip = (s.every - 1) * sampleSlice
}

// estimateTokens estimates the number of tokens in the whole stream of total bytes.
func (s *messageSample) estimateTokens(total int) int {
	if len(s.kept) == 0 {
		return 0
	}
	n := EstimateTokens(string(s.kept), sampledBytes)
	return int(float64(n) * float64(total) / float64(len(s.kept)))
}
