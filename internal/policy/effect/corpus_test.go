package effect

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"retort/internal/core"
)

// The bounds of the two errors, as shares of the tools of a part of the corpus.
const (
	mostMilder   = 0.005
	mostStricter = 0.08
)

// labelled is a tool of the corpus with the effect that reading it gave.
type labelled struct {
	Server, Name, Description, Effect string
	Carrier                           bool // its effect depends on what its arguments carry
}

// kind returns the effect that the text names.
func kind(t testing.TB, effect string) core.EffectKind {
	t.Helper()
	for k := read; k <= destructive; k++ {
		if k.String() == effect {
			return k
		}
	}
	t.Fatalf("%q is no effect", effect)
	return destructive
}

// readLines decodes a file of the corpus, one value a line.
func readLines[T any](t testing.TB, name string) (list []T) {
	t.Helper()
	text, err := os.ReadFile("testdata/corpus/" + name)
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for n := 1; lines.Scan(); n++ {
		var v T
		d := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		d.DisallowUnknownFields()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("%s:%d: %v", name, n, err)
		}
		list = append(list, v)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// heldBack reports whether a tool is of the third that the rules were not made with.
func heldBack(name string) bool {
	return sha256.Sum256([]byte(strings.ToLower(name)))[0]%3 == 0
}

// TestCorpus measures how often real tools are judged milder and stricter than they are, for
// the tools that the rules were made with and for those that were held back.
func TestCorpus(t *testing.T) {
	tools := readLines[labelled](t, "tools.jsonl")
	if len(tools) < 600 {
		t.Fatalf("the corpus has %d tools", len(tools))
	}
	for _, part := range []struct {
		name string
		held bool
	}{{"tuned", false}, {"held-back", true}} {
		t.Run(part.name, func(t *testing.T) {
			measure(t, tools, part.held)
		})
	}
}

// measure prints both rates of a part of the corpus, and fails if one is above its bound.
func measure(t *testing.T, tools []labelled, held bool) {
	var total int
	var milder, stricter []string
	for _, l := range tools {
		if l.Carrier || heldBack(l.Name) != held {
			continue
		}
		total++
		want := kind(t, l.Effect)
		e := OfTool(&core.Tool{Name: l.Name, Description: l.Description}, false)
		line := fmt.Sprintf("%s %s is %s, judged %s (%s)", l.Server, l.Name, want, e.Kind, e.Reason)
		switch {
		case e.Kind < want:
			milder = append(milder, line)
		case e.Kind > want:
			stricter = append(stricter, line)
		}
	}
	share := func(list []string) float64 { return float64(len(list)) / float64(total) }
	t.Logf("%d tools: %d wrongly milder (%.2f %%), %d wrongly stricter (%.2f %%)", total, len(milder), 100*share(milder), len(stricter), 100*share(stricter))
	for _, line := range milder {
		t.Log("milder: " + line)
	}
	if os.Getenv("RETORT_CORPUS_STRICTER") != "" {
		t.Log("stricter: " + strings.Join(stricter, "\nstricter: "))
	}
	if share(milder) > mostMilder || share(stricter) > mostStricter {
		t.Errorf("above the bounds of %.1f %% and %.0f %%", 100*mostMilder, 100*mostStricter)
	}
}
