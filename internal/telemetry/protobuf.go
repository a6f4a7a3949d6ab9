package telemetry

import (
	"encoding/binary"
	"math"
)

// message builds a message of protocol buffers. Fields with the value 0 are omitted, except those
// of a oneof.
type message []byte

// The wire types.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func (m *message) tag(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *message) varint(field uint64, v uint64) {
	m.tag(field, wireVarint)
	*m = binary.AppendUvarint(*m, v)
}

func (m *message) fixed64(field uint64, v uint64) {
	m.tag(field, wire64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) fixed32(field uint64, v uint32) {
	m.tag(field, wire32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *message) double(field uint64, v float64) { m.fixed64(field, math.Float64bits(v)) }

func (m *message) bytes(field uint64, b []byte) {
	m.tag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *message) text(field uint64, s string) {
	if s != "" {
		m.bytes(field, []byte(s))
	}
}

// within writes a nested message as a field.
func (m *message) within(field uint64, write func(*message)) {
	var inner message
	write(&inner)
	m.bytes(field, inner)
}

// packed writes numbers of 64 bits as one field.
func packed[T any](m *message, field uint64, all []T, bits func(T) uint64) {
	inner := make([]byte, 0, 8*len(all))
	for _, v := range all {
		inner = binary.LittleEndian.AppendUint64(inner, bits(v))
	}
	m.bytes(field, inner)
}
