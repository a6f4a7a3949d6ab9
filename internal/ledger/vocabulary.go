package ledger

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/binary"
	"io"
	"math"
	"sync"
	"unsafe"
)

// vocabularyFile holds the tokens of o200k_base in the order of their ranks, each as its length
// (a uvarint) and its bytes. They come from github.com/openai/tiktoken; o200k_base.LICENSE.
//
//go:embed o200k_base.gz
var vocabularyFile []byte

// vocabulary finds the rank of a token. A map of Go's would take twice the memory, and as a
// literal in a source file six megabytes of the program.
type vocabulary struct {
	text  []byte
	ends  []uint32 // where the token of a rank ends in text; it starts at the end of the one before
	slots []uint32 // rank+1 of the token that hashes there, 0 for nobody; a power of two
}

const noRank = math.MaxUint32

// o200k is read on the first use: that takes 20 ms.
var o200k = sync.OnceValue(func() *vocabulary { return readVocabulary(vocabularyFile) })

// Warm loads the vocabulary ahead of the first count.
func Warm() { o200k() }

// readVocabulary reads what is part of the program: a damaged one is a defect of the build.
func readVocabulary(file []byte) *vocabulary {
	z, err := gzip.NewReader(bytes.NewReader(file))
	if err != nil {
		panic(err)
	}
	raw := make([]byte, binary.LittleEndian.Uint32(file[len(file)-4:])) // the last four bytes of gzip data are the uncompressed length
	if _, err := io.ReadFull(z, raw); err != nil {
		panic(err)
	}
	v := &vocabulary{text: make([]byte, 0, len(raw)), ends: make([]uint32, 0, len(raw)/7), slots: make([]uint32, 1<<19)}
	for len(raw) > 0 {
		size, n := binary.Uvarint(raw)
		v.text = append(v.text, raw[n:n+int(size)]...)
		v.ends = append(v.ends, uint32(len(v.text)))
		raw = raw[n+int(size):]
		v.put(uint32(len(v.ends) - 1))
	}
	return v
}

func (v *vocabulary) put(rank uint32) {
	slot := v.slot(v.token(rank))
	for v.slots[slot] != 0 {
		slot = (slot + 1) & uint32(len(v.slots)-1)
	}
	v.slots[slot] = rank + 1
}

// rank is the rank of the token that is spelled so, or noRank.
func (v *vocabulary) rank(spelled string) uint32 {
	for slot := v.slot(spelled); v.slots[slot] != 0; slot = (slot + 1) & uint32(len(v.slots)-1) {
		if rank := v.slots[slot] - 1; v.token(rank) == spelled {
			return rank
		}
	}
	return noRank
}

// token is the token of a rank.
func (v *vocabulary) token(rank uint32) string {
	start := uint32(0)
	if rank > 0 {
		start = v.ends[rank-1]
	}
	return unsafe.String(&v.text[start], v.ends[rank]-start)
}

// slot is where the search for a token begins: FNV-1a, folded.
func (v *vocabulary) slot(s string) uint32 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return uint32(h^h>>32) & uint32(len(v.slots)-1)
}

// count is the number of tokens of a piece of text that split found.
func (v *vocabulary) count(piece string) int {
	if len(piece) == 1 || v.rank(piece) != noRank {
		return 1
	}
	return v.merge(piece)
}

// merge is how many tokens byte pair encoding leaves of a piece: the neighbours whose joint token
// has the lowest rank become one, the leftmost first, until no two neighbours are a token. A
// queue of them keeps a piece of n bytes at n log n steps.
func (v *vocabulary) merge(piece string) int {
	n := int32(len(piece))
	parts := make([]part, n+1) // the last is the end
	for i := range parts {
		parts[i] = part{prev: int32(i) - 1, next: int32(i) + 1, rank: noRank}
	}
	var waiting pairs
	look := func(i int32) {
		second := parts[i].next
		if second >= n {
			parts[i].rank = noRank
			return
		}
		parts[i].rank = v.rank(piece[i:parts[second].next])
		if parts[i].rank != noRank {
			waiting.push(pair{parts[i].rank, i})
		}
	}
	for i := range n {
		look(i)
	}
	left := int(n)
	for len(waiting) > 0 {
		p := waiting.pop()
		if parts[p.at].rank != p.rank {
			continue // it has another neighbour since
		}
		gone := parts[p.at].next
		parts[gone].rank = noRank
		parts[p.at].next = parts[gone].next
		parts[parts[gone].next].prev = p.at
		left--
		look(p.at)
		if before := parts[p.at].prev; before >= 0 {
			look(before)
		}
	}
	return left
}

// part is a piece's part that starts at its own index.
type part struct {
	prev, next int32
	rank       uint32 // of the token that it and the next would be
}

type pair struct {
	rank uint32
	at   int32
}

func (p pair) before(q pair) bool { return p.rank < q.rank || p.rank == q.rank && p.at < q.at }

// pairs is a heap; the pair to be merged next is the first.
type pairs []pair

func (h *pairs) push(p pair) {
	q := append(*h, p)
	i := len(q) - 1
	for i > 0 && p.before(q[(i-1)/2]) {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = p
	*h = q
}

func (h *pairs) pop() pair {
	q := *h
	first, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(q) && q[child+1].before(q[child]) {
			child++
		}
		if child >= len(q) || !q[child].before(last) {
			break
		}
		q[i] = q[child]
		i = child
	}
	if len(q) > 0 {
		q[i] = last
	}
	return first
}
