package client

import (
	"sync/atomic"
)

// rubbish counts what a server sends that is no message, or answers nothing.
type rubbish struct {
	lines   atomic.Int64
	strays  atomic.Int64
	samples tail
}

func (r *rubbish) line(data []byte) {
	r.lines.Add(1)
	_, _ = r.samples.Write(data[:min(len(data), 2*tailWidth)])
	_, _ = r.samples.Write([]byte{'\n'})
}

func (r *rubbish) stray() { r.strays.Add(1) }

func (r *rubbish) report() Rubbish {
	return Rubbish{Lines: int(r.lines.Load()), Strays: int(r.strays.Load()), Samples: r.samples.last(5)}
}
