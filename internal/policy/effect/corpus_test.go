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

// These bounds limit the share of tools, in each part of the corpus, that are judged wrongly.
const (
	mostMilder   = 0.005
	mostStricter = 0.08
)

// labelled holds a real tool together with its true effect, which was determined by reading its definition.
type labelled struct {
	Server, Name, Description, Effect string
	Carrier                           bool // its effect depends on what its arguments carry
}

// kind parses the name of an effect.
func kind(t testing.TB, effect string) core.EffectKind {
	t.Helper()
	k, ok := core.ParseEffect(effect)
	if !ok {
		t.Fatalf("%q is no effect", effect)
	}
	return k
}

// readLines decodes a corpus file that holds one JSON value on each line.
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

// heldBack reports whether a tool belongs to the third of the corpus that was not used while the rules were
// developed.
func heldBack(name string) bool {
	return sha256.Sum256([]byte(strings.ToLower(name)))[0]%3 == 0
}

// TestCorpus checks how many real tools are judged milder or stricter than they are. It measures separately the tools
// that were used to develop the rules and those that were held back.
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

// measure logs the shares of tools in one part of the corpus that are judged too mildly or too strictly. The test
// fails if a share exceeds its bound.
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
