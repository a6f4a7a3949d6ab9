package client

import (
	"sync/atomic"
)

// strayOutput counts the messages of a server that are invalid or answer no call.
type strayOutput struct {
	lines   atomic.Int64
	strays  atomic.Int64
	samples outputTail
}

func (r *strayOutput) noteLine(data []byte) {
	r.lines.Add(1)
	_, _ = r.samples.Write(data[:min(len(data), 2*tailWidth)])
	_, _ = r.samples.Write([]byte{'\n'})
}

func (r *strayOutput) noteStray() { r.strays.Add(1) }

func (r *strayOutput) takeSnapshot() NonProtocolOutput {
	return NonProtocolOutput{Lines: int(r.lines.Load()), Strays: int(r.strays.Load()), Samples: r.samples.lastLines(5)}
}
