package index

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"retort/internal/core"
)

// synthetic returns n artificial tools on servers with 50 tools each. The lengths of their texts and the frequencies
// of words are like those of real tools.
func synthetic(n int) *core.Toolset {
	r := rand.New(rand.NewPCG(1, 2))
	frequent := rand.NewZipf(r, 1.3, 8, 30_000)
	word := func() string { return spell(frequent.Uint64()) }
	sentence := func(words int) string {
		all := make([]string, words)
		for i := range all {
			all[i] = word()
		}
		return strings.Join(all, " ")
	}
	var servers []*core.ToolServer
	for len(servers)*50 < n {
		s := &core.ToolServer{Name: fmt.Sprintf("server-%06d-%s", len(servers), word())}
		for range min(50, n-len(servers)*50) {
			properties := map[string]any{}
			for range 1 + r.IntN(6) {
				properties[word()+"_"+word()] = map[string]string{"type": "string", "description": sentence(4 + r.IntN(12))}
			}
			schema, _ := json.Marshal(map[string]any{"type": "object", "properties": properties})
			name := fmt.Sprintf("%s_%s_%d", word(), word(), len(s.Tools))
			s.Tools = append(s.Tools, &core.Tool{
				Server: s.Name, Name: name, Pin: s.Name + name, Description: sentence(8 + r.IntN(24)), InputSchema: schema,
			})
		}
		servers = append(servers, s)
	}
	return core.NewToolset(servers)
}

// spell returns an artificial word for a number. Equal numbers give equal words.
func spell(n uint64) string {
	syllables := []string{"ba", "ce", "di", "fo", "gu", "la", "me", "ni", "po", "ru", "sta", "tre", "vi", "wo", "zu", "chan"}
	s := syllables[n%16]
	for n /= 16; n > 0; n /= 16 {
		s += syllables[n%16]
	}
	return s + "k"
}

func benchQueries() []string {
	r := rand.New(rand.NewPCG(3, 4))
	frequent := rand.NewZipf(r, 1.3, 8, 30_000)
	var all []string
	for range 100 {
		words := make([]string, 3+r.IntN(4))
		for i := range words {
			words[i] = spell(frequent.Uint64())
		}
		all = append(all, strings.Join(words, " "))
	}
	return all
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{2_000, 100_000} {
		x := New()
		x.UpdateTools(synthetic(n))
		queries := benchQueries()
		b.Run(fmt.Sprint("tools=", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				x.Search(queries[i%len(queries)], SearchFilter{}, 10)
			}
		})
		b.Run(fmt.Sprint("mistyped/tools=", n), func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				x.Search(queries[i%len(queries)]+" stamechanqk", SearchFilter{}, 10)
			}
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, n := range []int{2_000, 100_000} {
		ts := synthetic(n)
		b.Run(fmt.Sprint("all/tools=", n), func(b *testing.B) {
			for b.Loop() {
				New().UpdateTools(ts)
			}
		})
		b.Run(fmt.Sprint("one/tools=", n), func(b *testing.B) {
			x := New()
			x.UpdateTools(ts)
			for i := 0; b.Loop(); i++ {
				changed := *ts.Servers[0]
				changed.Tools = append([]*core.Tool(nil), changed.Tools...)
				tool := *changed.Tools[0]
				tool.Pin = fmt.Sprint(i)
				changed.Tools[0] = &tool
				x.UpdateTools(&core.Toolset{Servers: append([]*core.ToolServer{&changed}, ts.Servers[1:]...)})
			}
		})
		b.Run(fmt.Sprint("memory/tools=", n), func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			x := New()
			x.UpdateTools(ts)
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MB")
			runtime.KeepAlive(x)
		})
	}
}
