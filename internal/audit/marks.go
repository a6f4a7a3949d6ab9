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

// checkpointMark holds the sequence number and hash of a checkpoint.
type checkpointMark struct {
	seq  int64
	hash [32]byte
}

// checkpointIndex holds the checkpoints of a chain, in the order of the entries to which they refer.
type checkpointIndex struct {
	chain string
	local bool // the checkpoints name this data directory
	all   []checkpointMark
	next  int // index of the next checkpoint to compare
}

func (m *checkpointIndex) lastMark() checkpointMark {
	if len(m.all) == 0 {
		return checkpointMark{}
	}
	return m.all[len(m.all)-1]
}

// contradictsRow reports whether a checkpoint has the sequence number of the row but another hash. It must be
// called with the rows in order.
func (m *checkpointIndex) contradictsRow(r *LogRow) (yes bool) {
	for ; m.next < len(m.all) && m.all[m.next].seq <= r.Seq; m.next++ {
		yes = yes || m.all[m.next].seq == r.Seq && string(m.all[m.next].hash[:]) != string(r.Hash)
	}
	return yes
}

func sortedMarks(all map[string]*checkpointIndex) []*checkpointIndex {
	return slices.SortedFunc(maps.Values(all), func(a, b *checkpointIndex) int { return cmp.Compare(a.chain, b.chain) })
}

// readMarks reads the checkpoints of this machine and those in the files that VerifyOptions lists.
func (v *recordVerifier) readMarks() error {
	v.marks = map[string]*checkpointIndex{}
	if v.record.Checkpoints != "" {
		v.markAll("", eachCheckpoint(v.record.Checkpoints))
	}
	for _, path := range v.o.Checkpoints {
		read := int64(0)
		for c, err := range ReadCheckpoints(path) {
			if err != nil && read == 0 {
				return fmt.Errorf("no checkpoints can be read: %w", err)
			}
			v.addCheckpoint(path, c, err)
			read++
		}
	}
	for _, m := range v.marks {
		slices.SortFunc(m.all, func(a, b checkpointMark) int { return cmp.Compare(a.seq, b.seq) })
		m.all = slices.Compact(m.all)
	}
	return nil
}

func (v *recordVerifier) markAll(path string, all iter.Seq2[Checkpoint, error]) {
	for c, err := range all {
		v.addCheckpoint(path, c, err)
	}
}

// addCheckpoint adds a checkpoint to those with which the chains are compared, if its signature is valid. Otherwise
// it adds a finding. err is the error that occurred when the checkpoint was read, or nil.
func (v *recordVerifier) addCheckpoint(path string, c Checkpoint, err error) {
	of := ""
	if path != "" {
		of = " of " + path
	}
	if err != nil {
		v.addFinding(VerifyFinding{"", 0, Forged, fmt.Sprintf("a checkpoint%s cannot be read: %v", of, err)})
		return
	}
	at := checkpointMark{seq: c.Seq}
	n, err := hex.Decode(at.hash[:], []byte(c.Hash[:min(len(c.Hash), 2*len(at.hash))]))
	if err != nil || n != len(at.hash) || c.Seq < 1 || c.Chain == "" || !c.isSignedBy(v.signer) {
		v.addFinding(VerifyFinding{
			c.Chain, max(c.Seq, 0), Forged,
			fmt.Sprintf("the checkpoint%s of entry %d of chain %.40q is not signed by the key of this audit log", of, c.Seq, c.Chain),
		})
		return
	}
	if v.signer == nil { // all that follow are by the same one
		key, _ := base64.StdEncoding.DecodeString(c.Key)
		v.signer = ed25519.PublicKey(key)
	}
	m := v.marks[c.Chain]
	if m == nil {
		m = &checkpointIndex{chain: c.Chain}
		v.marks[c.Chain] = m
	}
	m.local = m.local || c.Home == "" || c.Home == v.record.Home
	m.all = append(m.all, at)
	v.out.Checkpoints++
}
