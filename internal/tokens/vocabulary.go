package tokens

import (
	_ "embed"
	"math"
)

// vocabularyFile holds the tokens of o200k_base in the format that newVocabulary expects. It is uncompressed and used
// in place, because every sandbox and every command starts this binary, and decompressing it would take longer than
// the command itself. TestVocabulary generates the file. The tokens come from github.com/openai/tiktoken; see
// o200k_base.LICENSE.
//
//go:embed o200k_base.table
var vocabularyFile string

const (
	vocabularySize = 199998
	hashSlots      = 1 << 19 // number of slots in the hash table, a power of two
	noRank         = math.MaxUint32
	cellSize       = 4 // size of each number in a table, in bytes
)

// tokenVocabulary maps tokens to their ranks and ranks to tokens.
type tokenVocabulary struct {
	slots numberTable // rank+1 of the token that hashes there, 0 if the slot is free
	ends  numberTable // where the token of a rank ends in text; it starts at the end of the one before
	text  string      // all tokens in the order of their ranks
}

// numberTable is a table of little-endian numbers of cellSize bytes each.
type numberTable string

func (c numberTable) numberAt(i uint32) uint32 {
	cell := c[int(i)*cellSize:]
	_ = cell[cellSize-1] // one check of bounds is enough
	return uint32(cell[0]) | uint32(cell[1])<<8 | uint32(cell[2])<<16 | uint32(cell[3])<<24
}

var o200k = newVocabulary(vocabularyFile)

// newVocabulary returns the vocabulary in the text of a vocabulary file. The file consists of a hash table (the
// slots), the offsets at which the tokens end, and the tokens' text. newVocabulary copies none of it.
func newVocabulary(file string) tokenVocabulary {
	const ends, text = cellSize * hashSlots, cellSize * (hashSlots + vocabularySize)
	return tokenVocabulary{slots: numberTable(file[:ends]), ends: numberTable(file[ends:text]), text: file[text:]}
}

// rankOf returns the rank of the token s, or noRank if there is no such token.
func (v *tokenVocabulary) rankOf(spelled string) uint32 {
	for slot := slotOf(spelled); ; slot = (slot + 1) % hashSlots {
		rank := v.slots.numberAt(slot)
		if rank == 0 {
			return noRank
		}
		if v.tokenOf(rank-1) == spelled {
			return rank - 1
		}
	}
}

// tokenOf returns the text of the token with this rank.
func (v *tokenVocabulary) tokenOf(rank uint32) string {
	start := uint32(0)
	if rank > 0 {
		start = v.ends.numberAt(rank - 1)
	}
	return v.text[start:v.ends.numberAt(rank)]
}

// slotOf returns the hash table slot at which the search for a token begins. The hash function is FNV-1a, with the
// upper half folded into the lower half.
func slotOf(s string) uint32 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return uint32(h^h>>32) % hashSlots
}

// countPiece returns the number of tokens of one piece of text, as the function firstMatch splits it.
func (v *tokenVocabulary) countPiece(piece string) int {
	if len(piece) == 1 || v.rankOf(piece) != noRank {
		return 1
	}
	return v.mergePairs(piece)
}

// mergePairs returns the number of tokens after byte pair encoding of a piece. It repeatedly merges the two
// neighbours whose joint token has the lowest rank, the leftmost first, until no two neighbours form a token. A
// priority queue limits the cost for n bytes to n log n steps.
func (v *tokenVocabulary) mergePairs(piece string) int {
	n := int32(len(piece))
	parts := make([]mergePart, n+1) // the last is the end
	for i := range parts {
		parts[i] = mergePart{prev: int32(i) - 1, next: int32(i) + 1, rank: noRank}
	}
	var waiting pairHeap
	look := func(i int32) {
		second := parts[i].next
		if second >= n {
			parts[i].rank = noRank
			return
		}
		parts[i].rank = v.rankOf(piece[i:parts[second].next])
		if parts[i].rank != noRank {
			waiting.pushPair(mergePair{parts[i].rank, i})
		}
	}
	for i := range n {
		look(i)
	}
	left := int(n)
	for len(waiting) > 0 {
		p := waiting.popPair()
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

// mergePart holds a part of a piece during byte pair encoding. The index of the part is its offset in the piece.
type mergePart struct {
	prev, next int32
	rank       uint32 // rank of the token formed by this part and the next
}

type mergePair struct {
	rank uint32
	at   int32
}

func (p mergePair) isBefore(q mergePair) bool {
	return p.rank < q.rank || p.rank == q.rank && p.at < q.at
}

// pairHeap is a heap of neighbouring parts. The pair to be merged next is at the root.
type pairHeap []mergePair

func (h *pairHeap) pushPair(p mergePair) {
	q := append(*h, p)
	i := len(q) - 1
	for i > 0 && p.isBefore(q[(i-1)/2]) {
		q[i] = q[(i-1)/2]
		i = (i - 1) / 2
	}
	q[i] = p
	*h = q
}

func (h *pairHeap) popPair() mergePair {
	q := *h
	first, last := q[0], q[len(q)-1]
	q = q[:len(q)-1]
	*h = q
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(q) && q[child+1].isBefore(q[child]) {
			child++
		}
		if child >= len(q) || !q[child].isBefore(last) {
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
