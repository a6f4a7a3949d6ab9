package pii

import (
	"fmt"
	"strings"
	"testing"

	"retort/internal/privacy/vault"
)

// TestKnownValuesAreSmall checks that a name of two words takes at most 40 bytes. It also checks that IsFull reports a
// full list.
func TestKnownValuesAreSmall(t *testing.T) {
	g := &KnownValues{}
	const names = 50_000
	for i := range names {
		g.AddExact(Name, fmt.Sprintf("Given%d Family%d", i, i)) // no word occurs twice
	}
	size := 8 * len(g.first.Load().bits)
	for i := range g.words.shards {
		size += 8 * cap(*g.words.shards[i].entries.Load())
	}
	if each := size/names + 9; each > 40 { // offsets.ByHash takes up to 9 bytes
		t.Errorf("a name takes %d bytes", each)
	} else {
		t.Logf("a name takes %d bytes", each)
	}
	full := &KnownValues{most: 2}
	for _, name := range []string{"Hanne Zandstra", "Kwame Mensah", "Iga Petrova"} {
		full.AddExact(Name, name)
	}
	if !full.IsFull() || full.exact != 2 {
		t.Errorf("the list has %d values, full: %v", full.exact, full.IsFull())
	}
}

// TestRoomEqualsThatOfVault checks that a list has room for as many values as the vault of a session.
func TestRoomEqualsThatOfVault(t *testing.T) {
	if MaxKnown != vault.MaxEntries {
		t.Errorf("room for %d values, but the vault has %d", MaxKnown, vault.MaxEntries)
	}
}

// TestKnownWords checks in which places known names are found, and in which they are not.
func TestKnownWords(t *testing.T) {
	g := &KnownValues{}
	for _, name := range []string{"Rose Will", "Bo Ng", "Jan van Dijkstra", "KwameMensah", "王小明", "'t Hooft Bouw"} {
		g.AddExact(Name, name)
	}
	for text, want := range map[string]string{
		"Rose Will came": "Rose Will", "the rose will bloom": "", "Rose": "", "a Ng here": "Ng", "the ng of it": "",
		"Dijkstras work": "Dijkstra", "from van to van": "", "昨日王小明さん": "王小明", "see 't Hooft Bouw!": "'t Hooft Bouw",
		"DijkstraTree3": "", "KwameMensah3": "KwameMensah", "ROSE WILL": "ROSE WILL", "bo ng": "bo ng",
	} {
		checkFound(t, g, text, want)
	}
}

// checkFound checks that ReplaceValues, when it knows the values in g, finds exactly the values in want in a text. want
// lists them separated by |.
func checkFound(t *testing.T, g *KnownValues, text, want string) {
	t.Helper()
	v := newTokens()
	New(Options{}).ReplaceValues([]byte(text), g, v)
	var got []string
	for _, found := range v.all {
		got = append(got, found.Text)
	}
	if strings.Join(got, "|") != want {
		t.Errorf("%s: found %q, want %q", text, got, want)
	}
}
