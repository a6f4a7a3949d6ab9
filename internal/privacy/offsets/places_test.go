package offsets

import (
	"math/rand/v2"
	"testing"
)

// TestByHash checks that ByHash finds and replaces every place in small and large tables, even for hashes that differ
// only in bits which are not stored.
func TestByHash(t *testing.T) {
	for _, n := range []int{1, Few - 1, Few, 50_000} {
		var x ByHash
		r := rand.New(rand.NewPCG(2, 2))
		hashes := make([]uint64, n)
		for i := range hashes {
			hashes[i] = r.Uint64() &^ (1<<40 - 1)
			hashes[i] |= uint64(i) // alike in all that is kept, some of them
			x.InsertOffset(hashes[i], uint32(i+1))
		}
		for i, h := range hashes {
			place := uint32(i + 1)
			if got := x.FindOffset(h, func(p uint32) bool { return p == place }); got != place {
				t.Fatalf("%d of %d: %d", i, n, got)
			}
			x.ReplaceOffset(h, place, place+1<<20)
		}
		for i, h := range hashes {
			place := uint32(i + 1 + 1<<20)
			if got := x.FindOffset(h, func(p uint32) bool { return p == place }); got != place {
				t.Fatalf("%d of %d, replaced: %d", i, n, got)
			}
		}
		if got := x.FindOffset(hashes[0], func(uint32) bool { return false }); got != 0 {
			t.Errorf("%d: found %d", n, got)
		}
	}
}

// TestNumbered checks that ByNumber returns the place of every number, whether the places on a page of the table are
// close together or far apart.
func TestNumbered(t *testing.T) {
	var n ByNumber
	want := map[int]uint32{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 900 {
		number, place := 1+r.IntN(4*pageSize), 64+r.Uint32N(80_000)
		if number < pageSize {
			place = uint32(1000 + 64*len(want)) // this page is near
		}
		n.Set(number, place)
		want[number] = place
		if n.OffsetAt(number) != place {
			t.Fatalf("%d: %d, want %d", number, n.OffsetAt(number), place)
		}
	}
	count := 0
	for place := range n.AllOffsets {
		_ = place
		count++
	}
	for number := range 6 * pageSize {
		if n.OffsetAt(number) != want[number] {
			t.Errorf("%d: %d, want %d", number, n.OffsetAt(number), want[number])
		}
	}
	if count != len(want) || n.pages[0].far != nil || n.pages[3].far == nil {
		t.Errorf("%d of %d; far: %v, %v", count, len(want), n.pages[0].far != nil, n.pages[3].far != nil)
	}
}
