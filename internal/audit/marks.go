package audit

import (
	"cmp"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// mark describes what a checkpoint saw.
type mark struct {
	seq  int64
	hash [32]byte
}

// marks holds the checkpoints of a chain by position.
type marks struct {
	chain string
	here  bool // the chain is of this home
	all   []mark
	at    int // those before it were passed
}

func (m *marks) last() mark {
	if len(m.all) == 0 {
		return mark{}
	}
	return m.all[len(m.all)-1]
}

// differs reports whether a checkpoint contradicts a row. Rows must come in order.
func (m *marks) differs(r *Row) (yes bool) {
	for ; m.at < len(m.all) && m.all[m.at].seq <= r.Seq; m.at++ {
		yes = yes || m.all[m.at].seq == r.Seq && string(m.all[m.at].hash[:]) != string(r.Hash)
	}
	return yes
}

func sortedMarks(all map[string]*marks) []*marks {
	return slices.SortedFunc(maps.Values(all), func(a, b *marks) int { return cmp.Compare(a.chain, b.chain) })
}

// readMarks reads the checkpoints of this machine, and those that were kept elsewhere.
func (v *verifier) readMarks() error {
	v.marks = map[string]*marks{}
	if v.record.Checkpoints != "" {
		v.markAll("", eachCheckpoint(v.record.Checkpoints))
	}
	for _, path := range v.o.Checkpoints {
		read := int64(0)
		for c, err := range ReadCheckpoints(path) {
			if err != nil && read == 0 {
				return fmt.Errorf("no checkpoints can be read: %w", err)
			}
			v.mark(path, c, err)
			read++
		}
	}
	for _, m := range v.marks {
		slices.SortFunc(m.all, func(a, b mark) int { return cmp.Compare(a.seq, b.seq) })
		m.all = slices.Compact(m.all)
	}
	return nil
}

func (v *verifier) markAll(path string, all iter.Seq2[Checkpoint, error]) {
	for c, err := range all {
		v.mark(path, c, err)
	}
}

// mark adds a checkpoint if it is valid.
func (v *verifier) mark(path string, c Checkpoint, err error) {
	of := ""
	if path != "" {
		of = " of " + path
	}
	if err != nil {
		v.find(Finding{"", 0, Forged, fmt.Sprintf("a checkpoint%s cannot be read: %v", of, err)})
		return
	}
	at := mark{seq: c.Seq}
	n, err := hex.Decode(at.hash[:], []byte(c.Hash[:min(len(c.Hash), 2*len(at.hash))]))
	if err != nil || n != len(at.hash) || c.Seq < 1 || c.Chain == "" || !c.holds(v.signer) {
		v.find(Finding{c.Chain, max(c.Seq, 0), Forged, fmt.Sprintf("the checkpoint%s of entry %d of chain %.40q is not signed by the key of this record", of, c.Seq, c.Chain)})
		return
	}
	if v.signer == nil { // all that follow are by the same one
		key, _ := base64.StdEncoding.DecodeString(c.Key)
		v.signer = ed25519.PublicKey(key)
	}
	m := v.marks[c.Chain]
	if m == nil {
		m = &marks{chain: c.Chain}
		v.marks[c.Chain] = m
	}
	m.here = m.here || c.Home == "" || c.Home == v.record.Home
	m.all = append(m.all, at)
	v.out.Checkpoints++
}
