package tokens

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"retort/internal/core"
)

func TestCountKnownTexts(t *testing.T) {
	for text, want := range map[string]int{"": 0, "hello world": 2, "{\"a\":1}": 5} {
		if got := CountTokens(text); got != want {
			t.Errorf("Count(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestChunksLoseNothing(t *testing.T) {
	for _, text := range []string{strings.Repeat("é", 9000), strings.Repeat("word ", 5000), strings.Repeat("x", 10000), "", "\xff" + strings.Repeat("\x80", 9000)} {
		var b strings.Builder
		for start, part := range chunksOf(text) {
			if start != b.Len() {
				t.Fatalf("chunk at %d, expected at %d", start, b.Len())
			}
			b.WriteString(part)
		}
		if b.String() != text {
			t.Errorf("chunks of %.10q… do not join to it", text)
		}
	}
}

func TestPrefixIsWithinLimitAndWhole(t *testing.T) {
	text := strings.Repeat("Größe 東京 42, ", 2000)
	for _, limit := range []int{0, 1, 7, 100, 2000} {
		p := PrefixWithin(text, limit)
		if n := CountTokens(p); n > limit {
			t.Errorf("Prefix(…, %d) has %d tokens", limit, n)
		}
		if limit >= 100 && CountTokens(p) < limit*9/10 {
			t.Errorf("Prefix(…, %d) has only %d tokens", limit, CountTokens(p))
		}
		if !utf8.ValidString(p) || !strings.HasPrefix(text, p) {
			t.Errorf("Prefix(…, %d) is no clean prefix", limit)
		}
	}
	if PrefixWithin("short", 100) != "short" {
		t.Error("a short text must stay whole")
	}
}

func TestFitsAgreesWithCount(t *testing.T) {
	text := strings.Repeat("some words in a row ", 1000)
	n := CountTokens(text)
	if got, ok := FitsLimit(text, n); !ok || got != n {
		t.Errorf("Fits at the limit = %d, %v", got, ok)
	}
	if _, ok := FitsLimit(text, n-1); ok {
		t.Error("Fits beyond the limit")
	}
}

func TestSampleEstimatesWithinFivePercent(t *testing.T) {
	var e LedgerEntry
	var all strings.Builder
	for i := range 3000 {
		msg := fmt.Sprintf(`{"id":%d,"name":"Customer %d","status":"open","amount":%d.50}`, i, i*7, i*13)
		e.AddCarried([]byte(msg))
		all.WriteString(msg)
	}
	exact, got := CountTokens(all.String()), e.data.estimateTokens(e.bytes)
	if math.Abs(float64(got-exact)) > 0.05*float64(exact) {
		t.Errorf("estimated %d tokens, exact %d", got, exact)
	}
}

func TestDefinitionsCountOncePerSession(t *testing.T) {
	l := New()
	settle := func(session string, carried string) core.Outcome {
		e := l.Open(session)
		e.AddCarried([]byte(carried))
		o := core.Outcome{Status: core.StatusOK}
		e.CloseOnce(&o, 10, 5000)
		e.CloseOnce(&o, 99, 9999)
		return o
	}
	first, second, other := settle("a", ""), settle("a", strings.Repeat("word ", 100)), settle("b", "")
	if first.Stats.Tokens.AvoidedDefinitions != 5000 || second.Stats.Tokens.AvoidedDefinitions != 0 || other.Stats.Tokens.AvoidedDefinitions != 5000 {
		t.Errorf("definitions: %+v %+v %+v", first.Stats.Tokens, second.Stats.Tokens, other.Stats.Tokens)
	}
	if d := second.Stats.Tokens.AvoidedData; d < 85 || d > 95 {
		t.Errorf("data avoided = %d, want about 90 (100 carried, 10 returned)", d)
	}
	if s := l.SummaryOf("a"); s.Total != 2 || s.Active != 0 || s.ByStatus[core.StatusOK] != 2 || s.Tokens.Returned != 20 {
		t.Errorf("summary of a: %+v", s)
	}
	if s := l.SummaryOf(""); s.Total != 3 || s.DurationMS == nil {
		t.Errorf("summary of all: %+v", s)
	}
	if s := l.SummaryOf("nobody"); s.Total != 0 {
		t.Errorf("summary of an unknown session: %+v", s)
	}
}
