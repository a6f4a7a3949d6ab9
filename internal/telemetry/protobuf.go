package telemetry

import (
	"encoding/binary"
	"math"
)

// protoMessage builds a message in the protocol buffers wire format. It omits fields with the value 0, except those
// of a oneof.
type protoMessage []byte

// The numbers of those wire types of protocol buffers that this package writes.
const (
	wireVarint = 0
	wire64     = 1
	wireBytes  = 2
	wire32     = 5
)

func (m *protoMessage) putTag(field, wire uint64) { *m = binary.AppendUvarint(*m, field<<3|wire) }

func (m *protoMessage) putVarint(field uint64, v uint64) {
	m.putTag(field, wireVarint)
	*m = binary.AppendUvarint(*m, v)
}

func (m *protoMessage) putFixed64(field uint64, v uint64) {
	m.putTag(field, wire64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *protoMessage) putFixed32(field uint64, v uint32) {
	m.putTag(field, wire32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *protoMessage) putDouble(field uint64, v float64) { m.putFixed64(field, math.Float64bits(v)) }

func (m *protoMessage) putBytes(field uint64, b []byte) {
	m.putTag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *protoMessage) putText(field uint64, s string) {
	if s != "" {
		m.putBytes(field, []byte(s))
	}
}

// putMessage writes a nested message as a field.
func (m *protoMessage) putMessage(field uint64, write func(*protoMessage)) {
	var inner protoMessage
	write(&inner)
	m.putBytes(field, inner)
}

// putPacked writes a list of 64-bit numbers as one packed field.
func putPacked[T any](m *protoMessage, field uint64, all []T, bits func(T) uint64) {
	inner := make([]byte, 0, 8*len(all))
	for _, v := range all {
		inner = binary.LittleEndian.AppendUint64(inner, bits(v))
	}
	m.putBytes(field, inner)
}
