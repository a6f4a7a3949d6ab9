package audit

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"retort/internal/core"
)

// readAfter returns the entries that After streams for the positions in the argument places, together with its
// warnings.
func readAfter(t *testing.T, r *LogReader, f Filter, places ReadPositions) (all []Entry, warnings []string) {
	t.Helper()
	for e, err := range r.After(t.Context(), f, "", places, &warnings) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	return all, warnings
}

func TestAfter(t *testing.T) {
	r, stores := twoEngines(t)
	places := ReadPositions{}
	all, warnings := readAfter(t, r, Filter{}, places)
	if len(warnings) > 0 || len(all) != 300*2+3 { // two stops, and what was retained
		t.Fatal(len(all), warnings)
	}
	last := ReadPositions{}
	for i, e := range all {
		if i > 0 && e.At.Before(all[i-1].At) {
			t.Fatalf("entry %d is older than the one before", i)
		}
		if last[e.Chain]++; last[e.Chain] != e.Seq {
			t.Fatalf("entry %d of chain %s comes after %d", e.Seq, e.Chain, last[e.Chain]-1)
		}
	}
	if !maps.Equal(places, last) {
		t.Fatal(places, last)
	}
	again, err := PlacesFrom(places.String())
	if err != nil || !maps.Equal(again, places) {
		t.Fatal(again, err)
	}
	if more, _ := readAfter(t, r, Filter{}, again); len(more) > 0 {
		t.Fatal(more)
	}
	l := opening(t, stores[1], Options{Keys: testKeys(), Checkpoints: r.Checkpoints, Home: "home"})
	_ = l.Record(request("new"), true)
	more, _ := readAfter(t, r, Filter{}, again)
	if len(more) != 1 || more[0].Execution != "new" {
		t.Fatal(more)
	}
	_ = l.Close()
}

// TestAfterInParts checks that After returns each entry exactly once if it is called repeatedly while the log grows.
func TestAfterInParts(t *testing.T) {
	r, stores := twoEngines(t)
	whole, _ := readAfter(t, r, Filter{}, ReadPositions{})
	rows := map[string][]LogRow{}
	for _, m := range stores {
		maps.Copy(rows, m.rows)
	}
	var parts []Entry
	places := ReadPositions{}
	for _, share := range []int{0, 3, 5, 8, 10} {
		for _, m := range stores {
			m.set(func() { m.rows[m.chain] = rows[m.chain][:len(rows[m.chain])*share/10] })
		}
		some, _ := readAfter(t, r, Filter{}, places)
		parts = append(parts, some...)
	}
	seen := map[string]int{}
	for _, e := range parts {
		seen[ReadPositions{e.Chain: e.Seq}.String()]++
	}
	if len(seen) != len(whole) || len(parts) != len(whole) {
		t.Fatalf("%d entries in parts, %d of them different, and %d as a whole", len(parts), len(seen), len(whole))
	}
}

func TestAfterFilters(t *testing.T) {
	r, _ := twoEngines(t)
	from := newClock().at.Add(4 * time.Hour)
	places := ReadPositions{}
	some, _ := readAfter(t, r, Filter{From: from, Kinds: []string{string(core.EventRequest)}, Session: "s1"}, places)
	if len(some) != 20 || some[0].At.Before(from) {
		t.Fatal(len(some))
	}
	if rest, _ := readAfter(t, r, Filter{}, places); len(rest) > 0 {
		t.Fatal("what a filter left out comes again")
	}
	var warnings []string
	for range r.After(t.Context(), Filter{}, "", places, &warnings) {
	}
	places = ReadPositions{}
	for range r.After(t.Context(), Filter{}, "", places, &warnings) {
		break
	}
	if len(places) > 0 {
		t.Fatal("a place that was not reached is told: ", places)
	}
}

func TestAfterDamage(t *testing.T) {
	r, stores := twoEngines(t)
	files, _ := filepath.Glob(filepath.Join(r.Archives, "*"+archiveEnd))
	if err := os.WriteFile(files[0], []byte("rubbish"), 0o600); err != nil {
		t.Fatal(err)
	}
	some, warnings := readAfter(t, r, Filter{}, ReadPositions{})
	if len(some) == 0 || len(warnings) != 1 || !strings.Contains(warnings[0], "are omitted") {
		t.Fatal(len(some), warnings)
	}
	stores[0].set(func() {
		for chain, rows := range stores[0].rows {
			stores[0].rows[chain] = slices.Clone(rows[:len(rows)-5])
		}
	})
	places := ReadPositions{"c1": 100_000}
	if _, warnings = readAfter(t, r, Filter{Chain: "c1"}, places); len(warnings) != 1 || !strings.Contains(warnings[0], "was cut off") {
		t.Fatal(warnings)
	}
}

func TestPlaces(t *testing.T) {
	for _, bad := range []string{"x", "x:", ":1", "c:-1", "c:1,c:2", "c:1 2", "c:1;d:2"} {
		if p, err := PlacesFrom(bad); err == nil {
			t.Errorf("%q is %v", bad, p)
		}
	}
	if p, err := PlacesFrom(" \n"); err != nil || len(p) > 0 {
		t.Error(p, err)
	}
}
