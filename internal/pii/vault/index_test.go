package vault

import (
	"math/rand/v2"
	"testing"
)

// Places come back by number, however far they are from each other.
func TestNumbered(t *testing.T) {
	var n numbered
	want := map[int]uint32{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 900 {
		number, place := 1+r.IntN(4*pageSize), 64+r.Uint32N(80_000)
		if number < pageSize {
			place = uint32(1000 + 64*len(want)) // this page is near
		}
		n.set(number, place)
		want[number] = place
		if n.at(number) != place {
			t.Fatalf("%d: %d, want %d", number, n.at(number), place)
		}
	}
	count := 0
	for place := range n.all {
		_ = place
		count++
	}
	for number := range 6 * pageSize {
		if n.at(number) != want[number] {
			t.Errorf("%d: %d, want %d", number, n.at(number), want[number])
		}
	}
	if count != len(want) || n.pages[0].far != nil || n.pages[3].far == nil {
		t.Errorf("%d of %d; far: %v, %v", count, len(want), n.pages[0].far != nil, n.pages[3].far != nil)
	}
}
