package vault

import (
	"encoding/binary"
	"errors"
	"slices"
	"sync/atomic"
)

// entryFrame holds up to frameEntries entries, encoded in the same way in memory and on disk:
//
//	u types · (text)... · u origins · (u servers · (text)...)... · (entry)...
//	entry: u number · u type · u origin<<2 | again<<1 | digits · text value
//
// Here u is an unsigned varint, and a text is preceded by its length. An entry refers to its type, and to the list of
// servers that it came from (its origin), by index. An entry without a value means that all numbers up to its own are
// reserved.
type entryFrame struct {
	names *frameNames
	body  []byte   // the entries
	at    []uint16 // where in body each begins
	used  atomic.Bool
}

// frameNames holds the lists of types and origins to which the entries of a frame refer. Frames with equal lists
// share them, so lists are never modified after they are shared.
type frameNames struct {
	types   []string
	origins [][]string
}

const (
	frameEntries = 64      // small, so that reading one entry decrypts few others
	frameBytes   = 8 << 10 // a frame of this size is full
)

// frameRecord represents an entry as decoded from a frame.
type frameRecord struct {
	typ    string
	number int
	value  []byte // must not be modified
	digits bool
	again  bool // it updates an earlier entry with the same number
	from   []string
}

func (r *frameRecord) toEntry() *TokenEntry {
	return &TokenEntry{Type: r.typ, Number: r.number, Value: string(r.value), Digits: r.digits, From: r.from}
}

func (f *entryFrame) isFull() bool { return len(f.at) == frameEntries || len(f.body) >= frameBytes }

// memorySize returns the approximate memory that the frame uses, in bytes.
func (f *entryFrame) memorySize() int { return cap(f.body) + 2*cap(f.at) + 96 }

// appendEntry adds an entry. If again is set, the entry updates an earlier one with the same number. The frame must
// not be full, and no other frame may share its lists of names.
func (f *entryFrame) appendEntry(e *TokenEntry, again bool) {
	flags := uint64(f.names.originIndex(e.From)) << 2
	if again {
		flags |= 2
	}
	if e.Digits {
		flags |= 1
	}
	f.at = append(f.at, uint16(len(f.body)))
	b := binary.AppendUvarint(f.body, uint64(e.Number))
	b = binary.AppendUvarint(b, uint64(f.names.typeIndex(e.Type)))
	b = binary.AppendUvarint(b, flags)
	f.body = appendText(b, e.Value)
}

func (n *frameNames) typeIndex(t string) int {
	i := slices.Index(n.types, t)
	if i < 0 {
		i, n.types = len(n.types), append(n.types, t)
	}
	return i
}

func (n *frameNames) originIndex(from []string) int {
	i := slices.IndexFunc(n.origins, func(o []string) bool { return slices.Equal(o, from) })
	if i < 0 {
		i, n.origins = len(n.origins), append(n.origins, slices.Clone(from))
	}
	return i
}

// recordAt returns the entry with index i.
func (f *entryFrame) recordAt(i int) frameRecord {
	r := frameReader{text: f.body[f.at[i]:]}
	number, typ, flags := r.readUint(), r.readUint(), r.readUint()
	return frameRecord{
		typ: f.names.types[typ], number: number, value: r.readBytes(),
		digits: flags&1 != 0, again: flags&2 != 0, from: f.names.origins[flags>>2],
	}
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// appendTo appends the lists to b in their encoded form.
func (n *frameNames) appendTo(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(n.types)))
	for _, t := range n.types {
		b = appendText(b, t)
	}
	b = binary.AppendUvarint(b, uint64(len(n.origins)))
	for _, servers := range n.origins {
		b = binary.AppendUvarint(b, uint64(len(servers)))
		for _, s := range servers {
			b = appendText(b, s)
		}
	}
	return b
}

var errForm = errors.New("a frame has an invalid format")

// decodeFrame decodes a frame from plain. The frame refers to the bytes of plain, which must not be modified
// afterwards.
func decodeFrame(plain []byte, shared *nameSharing) (*entryFrame, error) {
	r := frameReader{text: plain}
	for range r.readUint() {
		r.readBytes()
	}
	for range r.readUint() {
		for range r.readUint() {
			r.readBytes()
		}
	}
	if r.bad {
		return nil, errForm
	}
	f := &entryFrame{names: shared.sharedNames(plain[:len(plain)-len(r.text)]), body: r.text}
	var at [frameEntries]uint16
	for n := 0; len(r.text) > 0; n++ {
		start := len(f.body) - len(r.text)
		number, typ, flags := r.readUint(), r.readUint(), r.readUint()
		r.readBytes()
		if r.bad || n == frameEntries || start > frameBytes || number < 1 || number > maxNumber || typ >= len(f.names.types) ||
			flags>>2 >= len(f.names.origins) {
			return nil, errForm
		}
		at[n] = uint16(start)
		f.at = at[:n+1]
	}
	f.at = slices.Clone(f.at)
	return f, nil
}

// frameReader reads numbers and strings from the field text. If the input is invalid, it returns 0 or an empty result
// and sets the field bad.
type frameReader struct {
	text []byte
	bad  bool
}

func (r *frameReader) readUint() int {
	if len(r.text) > 0 && r.text[0] < 0x80 {
		n := int(r.text[0])
		r.text = r.text[1:]
		return n
	}
	n, size := binary.Uvarint(r.text)
	if size <= 0 || n > maxFrame {
		r.text, r.bad = nil, true
		return 0
	}
	r.text = r.text[size:]
	return int(n)
}

func (r *frameReader) readBytes() []byte {
	n := r.readUint()
	if n > len(r.text) {
		r.text, r.bad = nil, true
		return nil
	}
	text := r.text[:n:n]
	r.text = r.text[n:]
	return text
}

// nameSharing keeps the lists of names seen so far, so that frames with equal lists share one copy.
type nameSharing struct{ known map[string]*frameNames }

// maxShared bounds the number of lists kept for sharing, because the same names may occur in many orders.
const maxShared = 256

// sharedNames returns the lists that text encodes, if possible a copy that other frames use too. The text must be
// well formed.
func (s *nameSharing) sharedNames(text []byte) *frameNames {
	if n := s.known[string(text)]; n != nil {
		return n
	}
	if s.known == nil || len(s.known) == maxShared {
		s.known = map[string]*frameNames{}
	}
	r, n := frameReader{text: text}, &frameNames{}
	for range r.readUint() {
		n.types = append(n.types, string(r.readBytes()))
	}
	for range r.readUint() {
		var servers []string
		for range r.readUint() {
			servers = append(servers, string(r.readBytes()))
		}
		n.origins = append(n.origins, servers)
	}
	s.known[string(text)] = n
	return n
}
