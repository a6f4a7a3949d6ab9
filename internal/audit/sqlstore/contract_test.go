package sqlstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/audit"
	"retort/internal/core"
	"retort/internal/devel/testenv"
)

// newStores maps each database to a function that returns the address of a new store, which can be opened
// repeatedly.
var newStores = map[string]func(t testing.TB) (url string){
	"postgres": newDatabase,
	"sqlite":   func(t testing.TB) string { return filepath.Join(t.TempDir(), "record.db") },
}

// runWithEach runs a test once with each database.
func runWithEach(t *testing.T, f func(t *testing.T, url string)) {
	for name, place := range newStores {
		t.Run(name, func(t *testing.T) { f(t, place(t)) })
	}
}

var background = context.Background()

func open(t testing.TB, url string, o Options) audit.LogStore {
	t.Helper()
	s, err := Open(background, url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func head(t testing.TB, s audit.LogStore) audit.ChainHead {
	t.Helper()
	h, err := s.Head(background)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func all(t testing.TB, rows iter.Seq2[audit.LogRow, error]) (list []audit.LogRow) {
	t.Helper()
	for r, err := range rows {
		must(t, err)
		list = append(list, r)
	}
	return list
}

// nextRows returns n simple rows that follow the head of the store's chain.
func nextRows(t testing.TB, s audit.LogStore, n int) (rows []audit.LogRow) {
	h := head(t, s)
	for i := range n {
		rows = append(rows, audit.LogRow{Chain: h.Chain, Seq: h.Seq + int64(i) + 1, At: int64(1e18) + h.Seq + int64(i), Kind: "call", Hash: bytes.Repeat([]byte{byte(i)}, 32)})
	}
	return rows
}

func TestHead(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		h := head(t, s)
		if _, ok := chainOf(h.Chain); !ok || h.Seq != 0 || h.Hash != nil || h.Base != 0 {
			t.Fatalf("%+v is no new head", h)
		}
		rows := nextRows(t, s, 5)
		must(t, s.Append(background, audit.WriteBatch{Rows: rows}))
		want := audit.ChainHead{Chain: h.Chain, Seq: 5, Hash: rows[4].Hash}
		if got := head(t, s); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
		must(t, s.Close())
		again := open(t, url, Options{})
		if got := head(t, again); !cmp.Equal(got, want) {
			t.Error("after it was opened again: ", cmp.Diff(want, got))
		}
		chains, err := again.Chains(background)
		if err != nil || !cmp.Equal(chains, []audit.ChainHead{want}) {
			t.Error(chains, err)
		}
		if n, err := again.Size(background); err != nil || n < 1000 {
			t.Error(n, err)
		}
	})
}

// TestRowsComeBackAsTheyWere checks that both databases return rows with arbitrary bytes unchanged.
func TestRowsComeBackAsTheyWere(t *testing.T) {
	odd := []string{"", "plain", "zürich 東京 🜔", "zero\x00byte\x00", "broken \xff\xfe\xc3(", "' \" ; -- \\", strings.Repeat("long", 5000)}
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := nextRows(t, s, len(odd)+3)
		for i, o := range odd {
			r := &rows[i]
			r.Kind, r.Execution, r.Session, r.Principal, r.Server, r.Tool, r.Status = o, o+"e", o, o+"p", o+"v", o+"t", o+"s"
			r.Risk, r.Micros, r.Bytes, r.Returned, r.Avoided = int64(i)*16-1, 1<<62, -1, 3, 4
			r.Facts, r.Body, r.Code = []byte(o), []byte(o), []byte(o)
		}
		rows[0].Facts, rows[0].Body, rows[0].Code = nil, nil, nil
		rows[len(odd)+1].Body = bytes.Repeat([]byte("\x00\xff big"), 1<<20/6)
		given := slices.Clone(rows)
		given[0].Facts, given[0].Body, given[0].Code = []byte{}, []byte{}, []byte{}
		must(t, s.Append(background, audit.WriteBatch{Rows: given}))
		for name, s := range map[string]audit.LogStore{"writer": s, "reader": open(t, url, Options{ReadOnly: true})} {
			if got := all(t, s.Walk(background, rows[0].Chain, 1)); !reflect.DeepEqual(got, rows) {
				t.Error(name, cmp.Diff(rows, got))
			}
			got := all(t, s.Find(background, audit.Filter{}))
			slices.Reverse(got)
			if !reflect.DeepEqual(got, rows) {
				t.Error(name, cmp.Diff(rows, got))
			}
			for i, r := range all(t, s.Find(background, audit.Filter{Bare: true})) {
				want := rows[len(rows)-1-i]
				want.Facts, want.Body = nil, nil
				if !reflect.DeepEqual(r, want) {
					t.Error(name, cmp.Diff(want, r))
				}
			}
			for i, o := range odd[1:] {
				for _, f := range []audit.Filter{{Executions: []string{o + "e"}}, {Session: o}, {Principal: o + "p"}, {Server: o + "v"}, {Tool: o + "t"}, {Kinds: []string{o}}, {Statuses: []string{o + "s"}}} {
					if got := all(t, s.Find(background, f)); len(got) != 1 || got[0].Seq != rows[i+1].Seq {
						t.Errorf("%s: %d rows for %+v", name, len(got), f)
					}
				}
			}
		}
	})
}

func TestAppendRefuses(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 3)}))
		for name, change := range map[string]func(rows []audit.LogRow){
			"again":        func(rows []audit.LogRow) { rows[0].Seq, rows[1].Seq = 3, 4 },
			"a gap":        func(rows []audit.LogRow) { rows[0].Seq, rows[1].Seq = 5, 6 },
			"a gap within": func(rows []audit.LogRow) { rows[1].Seq = 6 },
			"other chain":  func(rows []audit.LogRow) { rows[0].Chain = "0000000000000001" },
			"much risk":    func(rows []audit.LogRow) { rows[1].Risk = 101 },
			"no hash":      func(rows []audit.LogRow) { rows[1].Hash = nil },
		} {
			rows := nextRows(t, s, 2)
			change(rows)
			err := s.Append(background, audit.WriteBatch{Rows: rows, Keys: []audit.BodyKey{{ID: name}}, Opened: []string{name}})
			var known *core.Error
			if !errors.As(err, &known) {
				t.Errorf("%s: %v", name, err)
			}
			keys, err := s.Keys(background, []string{name})
			opened, err2 := s.Open(background)
			if h := head(t, s); h.Seq != 3 || len(keys) > 0 || len(opened) > 0 || err != nil || err2 != nil {
				t.Errorf("%s: something was written: %v %v %v %v %v", name, h, keys, opened, err, err2)
			}
		}
		ended, cancel := context.WithCancel(background)
		cancel()
		if err := s.Append(ended, audit.WriteBatch{Rows: nextRows(t, s, 1)}); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		must(t, s.Append(background, audit.WriteBatch{Keys: []audit.BodyKey{{ID: "twice"}}}))
		if err := s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1), Keys: []audit.BodyKey{{ID: "twice"}}}); err == nil || head(t, s).Seq != 3 {
			t.Error("a key was written twice: ", err, head(t, s))
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
		if got := len(all(t, s.Walk(background, head(t, s).Chain, 1))); got != 4 {
			t.Errorf("%d rows", got)
		}
	})
}

// filterRows returns the rows that Find must return. rows must be sorted newest first.
func filterRows(rows []audit.LogRow, f audit.Filter) (found []audit.LogRow) {
	in := func(list []string, s string) bool { return len(list) == 0 || slices.Contains(list, s) }
	is := func(want, s string) bool { return want == "" || want == s }
	for _, r := range rows {
		at := time.Unix(0, r.At)
		fits := is(f.Chain, r.Chain) && (f.From.IsZero() || !at.Before(f.From)) && (f.To.IsZero() || at.Before(f.To)) && in(f.Kinds, r.Kind) &&
			in(f.Executions, r.Execution) && is(f.Session, r.Session) && is(f.Principal, r.Principal) && is(f.Server, r.Server) && is(f.Tool, r.Tool) &&
			in(f.Statuses, r.Status) && (f.MinRisk == 0 || r.Risk >= f.MinRisk)
		if b := f.Before; b != nil {
			fits = fits && compareNewest(rawRow{LogRow: audit.LogRow{At: b.At, Seq: b.Seq}, chain: number(b.Chain)}, rawRow{LogRow: r, chain: number(r.Chain)}) < 0
		}
		if fits && (f.Limit == 0 || len(found) < f.Limit) {
			found = append(found, r)
		}
	}
	return found
}

func number(chain string) int64 {
	n, _ := chainOf(chain)
	return n
}

// appendMixed appends rows in which each column has few different values, and times repeat and are out of order.
func appendMixed(t testing.TB, s audit.LogStore, n int, seed uint64) []audit.LogRow {
	r := rand.New(rand.NewPCG(seed, 1))
	pick := func(values ...string) string { return values[r.IntN(len(values))] }
	rows := nextRows(t, s, n)
	for i := range rows {
		row := &rows[i]
		row.At = int64(1e18) + int64(i/7)*int64(time.Minute) + r.Int64N(3)*int64(time.Hour)
		row.Kind, row.Execution, row.Session = pick("call", "call", "call", "verdict", "end"), fmt.Sprint("x", i/20*r.IntN(2)), fmt.Sprint("s", i/400)
		row.Principal, row.Server, row.Tool = pick("ann", "ann", "bob"), pick("", "crm", "drive"), pick("", "read", "write", "list")
		row.Status, row.Risk, row.Micros, row.Bytes = pick("", "ok", "ok", "ok", "error"), r.Int64N(102)*r.Int64N(2)-1, r.Int64N(1000), r.Int64N(1000)
		row.Returned, row.Avoided = r.Int64N(9), r.Int64N(9)
	}
	for part := range slices.Chunk(rows, 700) {
		must(t, s.Append(background, audit.WriteBatch{Rows: part}))
	}
	return rows
}

// randomFilter returns a random filter whose values mostly come from rows.
func randomFilter(r *rand.Rand, rows []audit.LogRow) (f audit.Filter) {
	like := rows[r.IntN(len(rows))]
	some := func(set func()) {
		if r.IntN(4) == 0 {
			set()
		}
	}
	some(func() { f.From = time.Unix(0, like.At) })
	some(func() { f.To = time.Unix(0, rows[r.IntN(len(rows))].At) })
	some(func() { f.Kinds = []string{like.Kind, "end", "unheard"}[:1+r.IntN(3)] })
	some(func() {
		f.Executions = []string{like.Execution, rows[r.IntN(len(rows))].Execution, "nothing"}[:1+r.IntN(3)]
	})
	some(func() { f.Session = like.Session })
	some(func() { f.Principal = like.Principal })
	some(func() { f.Server = like.Server })
	some(func() { f.Tool = like.Tool })
	some(func() { f.Statuses = []string{"error", like.Status, like.Status}[:1+r.IntN(3)] })
	some(func() { f.MinRisk = r.Int64N(104) })
	some(func() { f.Chain = like.Chain })
	some(func() { f.Before = &audit.RowPosition{At: like.At, Chain: like.Chain, Seq: like.Seq} })
	some(func() {
		f.Before = &audit.RowPosition{At: like.At, Chain: []string{"", "0", "zz", like.Chain}[r.IntN(4)], Seq: 7}
	})
	some(func() { f.Limit = 1 + r.IntN(100) })
	return f
}

func TestFind(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		n, filters := 2500, 100
		if testenv.Full() {
			n, filters = 6000, 300
		}
		rows := appendMixed(t, s, n, 1)
		slices.SortFunc(rows, func(a, b audit.LogRow) int { return compareNewest(rawRow{LogRow: a}, rawRow{LogRow: b}) })
		r := rand.New(rand.NewPCG(2, 2))
		found := 0
		for range filters {
			f := randomFilter(r, rows)
			if f.Before != nil && number(f.Before.Chain) == 0 {
				continue // see TestFindBefore
			}
			want, got := filterRows(rows, f), all(t, s.Find(background, f))
			if !reflect.DeepEqual(got, want) {
				t.Fatalf("%+v gives %d rows, want %d", f, len(got), len(want))
			}
			found += min(len(got), 1)
		}
		if found < filters/6 {
			t.Errorf("only %d filters find anything", found)
		}
		for _, f := range []audit.Filter{{Chain: "0123"}, {Chain: "0000000000000001"}, {Chain: "x"}, {Session: "nobody"}, {Kinds: []string{"unheard"}, Limit: 3}} {
			if got := all(t, s.Find(background, f)); len(got) != 0 {
				t.Errorf("%+v gives %d rows", f, len(got))
			}
		}
	})
}

// TestFindBefore checks that reading page by page returns each row exactly once, and that a consumer may stop early.
func TestFindBefore(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := appendMixed(t, s, 3000, 3)
		for i := range rows {
			rows[i].At = rows[0].At // see model
		}
		same := nextRows(t, s, 2500)
		for i := range same {
			same[i].At = 5
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: same}))
		for _, f := range []audit.Filter{{Limit: 29}, {Limit: 100, Kinds: []string{"call", "end"}}, {Limit: 50, MinRisk: 3}} {
			seen := map[int64]bool{}
			want := f
			want.Limit = 0
			for {
				page := all(t, s.Find(background, f))
				for _, r := range page {
					if seen[r.Seq] {
						t.Fatal("a row comes twice")
					}
					seen[r.Seq] = true
				}
				if len(page) < f.Limit {
					break
				}
				last := page[len(page)-1]
				f.Before = &audit.RowPosition{At: last.At, Chain: last.Chain, Seq: last.Seq}
			}
			if n := len(all(t, s.Find(background, want))); n != len(seen) || n < 1000 {
				t.Errorf("%+v: pages give %d rows, all are %d", want, len(seen), n)
			}
		}
		for chain, want := range map[string]int{"": 0, "0000000000000000": 0, "7fffffffffffffff": 2500, "ffffffffffffffff": 2500, head(t, s).Chain: 1} {
			if got := len(all(t, s.Find(background, audit.Filter{Before: &audit.RowPosition{At: 5, Chain: chain, Seq: 3002}}))); got != want {
				t.Errorf("%d rows at the same time before chain %q, want %d", got, chain, want)
			}
		}
		for range 20 {
			for range s.Find(background, audit.Filter{}) {
				break
			}
			for range s.Walk(background, rows[0].Chain, 1) {
				break
			}
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1)}))
	})
}

func TestWalk(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := appendMixed(t, s, 2*rowsPerRead, 4)
		for _, from := range []int64{0, 1, 2, rowsPerRead, rowsPerRead + 1, 2 * rowsPerRead, 2*rowsPerRead + 1} {
			got := all(t, s.Walk(background, rows[0].Chain, from))
			if want := rows[min(max(from-1, 0), 2*rowsPerRead):]; !slices.EqualFunc(got, want, func(a, b audit.LogRow) bool { return reflect.DeepEqual(a, b) }) {
				t.Errorf("from %d: %d rows, want %d", from, len(got), len(want))
			}
		}
		for _, chain := range []string{"", "x", "0000000000000001"} {
			if got := all(t, s.Walk(background, chain, 1)); len(got) > 0 {
				t.Errorf("chain %q has %d rows", chain, len(got))
			}
		}
	})
}

func TestGroups(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := appendMixed(t, s, 11000, 5) // spread over two days
		for _, f := range []audit.Filter{{}, {Principal: "bob", MinRisk: 5}, {Kinds: []string{"unheard"}}, {Chain: "x"}} {
			sums := map[audit.UsageGroup]audit.UsageGroup{}
			for _, r := range filterRows(rows, f) {
				key := audit.UsageGroup{Day: time.Unix(0, r.At).UTC().Format(time.DateOnly), Kind: r.Kind, Server: r.Server, Tool: r.Tool, Status: r.Status}
				g, there := sums[key]
				if !there {
					g = key
					g.MaxRisk = r.Risk
				}
				g.Count++
				g.Micros, g.Bytes, g.Returned, g.Avoided, g.MaxRisk = g.Micros+r.Micros, g.Bytes+r.Bytes, g.Returned+r.Returned, g.Avoided+r.Avoided, max(g.MaxRisk, r.Risk)
				sums[key] = g
			}
			want := slices.SortedFunc(maps.Values(sums), func(a, b audit.UsageGroup) int {
				return strings.Compare(strings.Join([]string{a.Day, a.Kind, a.Server, a.Tool, a.Status}, "\x00"), strings.Join([]string{b.Day, b.Kind, b.Server, b.Tool, b.Status}, "\x00"))
			})
			got, err := s.Groups(background, f)
			if err != nil || !cmp.Equal(got, want) {
				t.Errorf("%+v: %v %s", f, err, cmp.Diff(want, got))
			}
		}
	})
}

func TestKeys(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		var keys []audit.BodyKey
		var ids []string
		for i := range 1200 {
			k := audit.BodyKey{ID: fmt.Sprint("x", i), Session: fmt.Sprint("s", i%3), Principal: fmt.Sprint("p", i%2), Wrapped: fmt.Appendf(nil, "wrapped %d\x00", i)}
			keys, ids = append(keys, k), append(ids, k.ID)
		}
		must(t, s.Append(background, audit.WriteBatch{Keys: keys}))
		check := func(want []audit.BodyKey) {
			t.Helper()
			got, err := s.Keys(background, append(ids, "missing", ""))
			if err != nil || len(got) != len(want) {
				t.Fatalf("%d keys, want %d, %v", len(got), len(want), err)
			}
			for _, k := range want {
				if !cmp.Equal(got[k.ID], k) {
					t.Error(cmp.Diff(k, got[k.ID]))
				}
			}
		}
		check(keys)
		of, err := s.KeysOf(background, "p1", "s2")
		if err != nil || len(of) != 200 || of[0] != "x5" || of[1] != "x11" {
			t.Error(len(of), of[:2], err)
		}
		for _, pair := range [][2]string{{"p0", "unheard"}, {"unheard", "s1"}, {"", ""}} {
			if of, err := s.KeysOf(background, pair[0], pair[1]); len(of) > 0 || err != nil {
				t.Error(pair, len(of), err)
			}
		}
		if n, err := s.Forget(background, append(ids[:1000:1000], "missing")); n != 1000 || err != nil {
			t.Error(n, err)
		}
		check(keys[1000:])
		if n, err := s.Forget(background, ids[:1000]); n != 0 || err != nil {
			t.Error(n, err)
		}
		if of, err := s.KeysOf(background, "p1", "s2"); err != nil || len(of) != 34 {
			t.Error(len(of), err)
		}
		keys[999].Wrapped = []byte("a new one")
		must(t, s.Append(background, audit.WriteBatch{Keys: keys[999:1000]}))
		must(t, s.Close())
		s = open(t, url, Options{})
		check(keys[999:])
	})
}

func TestOpened(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		check := func(want ...string) {
			t.Helper()
			if got, err := s.Open(background); err != nil || !slices.Equal(got, want) {
				t.Errorf("%q are open, want %q, %v", got, want, err)
			}
		}
		check()
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 1), Opened: []string{"c", "a", "b\x00"}}))
		must(t, s.Append(background, audit.WriteBatch{Opened: []string{"d", "e", "a"}, Closed: []string{"d", "c", "unheard"}}))
		check("a", "b\x00", "e")
		must(t, s.Close())
		s = open(t, url, Options{})
		check("a", "b\x00", "e")
		must(t, s.Append(background, audit.WriteBatch{Closed: []string{"a", "b\x00", "e"}}))
		check()
	})
}

func TestDrop(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := appendMixed(t, s, 2*maxRowsPerDelete+500, 6)
		before, err := s.Size(background)
		must(t, err)
		for _, step := range []struct{ upTo, base int64 }{{0, 0}, {100, 100}, {50, 100}, {2*maxRowsPerDelete + 400, 2*maxRowsPerDelete + 400}} {
			must(t, s.Drop(background, rows[0].Chain, step.upTo))
			if h := head(t, s); h.Base != step.base || h.Seq != int64(len(rows)) {
				t.Errorf("after %d: %+v", step.upTo, h)
			}
			if got := all(t, s.Walk(background, rows[0].Chain, 1)); len(got) != len(rows)-int(step.base) || got[0].Seq != step.base+1 {
				t.Errorf("after %d: %d rows", step.upTo, len(got))
			}
		}
		if n := len(all(t, s.Find(background, audit.Filter{Kinds: []string{"call", "verdict", "end"}, MinRisk: 1}))); n > 100 {
			t.Errorf("%d rows are found", n)
		}
		must(t, s.Drop(background, "x", 1))
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
		must(t, s.Drop(background, rows[0].Chain, 1<<40))
		if h := head(t, s); h.Base != h.Seq || h.Seq != int64(len(rows))+10 {
			t.Errorf("%+v", h)
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
		if _, err := s.Forget(background, nil); err != nil { // takes in the log
			t.Error(err)
		}
		if after, err := s.Size(background); err != nil || strings.HasSuffix(url, ".db") && after > before/2 {
			t.Errorf("%d bytes before, %d after, %v", before, after, err)
		}
	})
}

// TestReadersBesideAWriter checks that concurrent readers see only complete batches while another connection writes.
func TestReadersBesideAWriter(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
		chain := head(t, s).Chain
		stop := make(chan struct{})
		var readers sync.WaitGroup
		for i := range 4 {
			r := s
			if i%2 == 0 {
				r = open(t, url, Options{ReadOnly: true})
			}
			readers.Go(func() {
				for last := 0; ; {
					n := 0
					for row, err := range r.Walk(background, chain, 1) {
						if n++; err != nil || row.Seq != int64(n) {
							t.Error(row.Seq, n, err)
							return
						}
					}
					if n%10 != 0 || n < last {
						t.Errorf("%d rows, %d before", n, last)
					}
					last = n
					select {
					case <-stop:
						return
					default:
					}
				}
			})
		}
		batches := 50
		if testenv.Full() {
			batches = 200
		}
		for range batches {
			must(t, s.Append(background, audit.WriteBatch{Rows: nextRows(t, s, 10)}))
		}
		close(stop)
		readers.Wait()
	})
}

func TestReadOnly(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		w := open(t, url, Options{})
		must(t, w.Append(background, audit.WriteBatch{Rows: nextRows(t, w, 1), Keys: []audit.BodyKey{{ID: "k"}}}))
		chain := head(t, w).Chain
		r := open(t, url, Options{ReadOnly: true})
		_, err1 := r.Head(background)
		_, err2 := r.Open(background)
		_, err3 := r.Forget(background, []string{"k"})
		for i, err := range []error{err1, err2, err3, r.Append(background, audit.WriteBatch{}), r.Drop(background, chain, 1)} {
			var known *core.Error
			if !errors.As(err, &known) {
				t.Error(i, err)
			}
		}
		must(t, w.Append(background, audit.WriteBatch{Rows: nextRows(t, w, 1)}))
		must(t, w.Close())
		if got := all(t, r.Walk(background, chain, 1)); len(got) != 2 {
			t.Errorf("%d rows", len(got))
		}
		if keys, err := r.Keys(background, []string{"k"}); err != nil || len(keys) != 1 {
			t.Error(keys, err)
		}
		chains, err := r.Chains(background)
		if err != nil || len(chains) != 1 || chains[0].Seq != 2 {
			t.Error(chains, err)
		}
	})
}

// TestFindFormerNames checks that a filter for either name of a renamed anomaly finds the entries of both.
func TestFindFormerNames(t *testing.T) {
	runWithEach(t, func(t *testing.T, url string) {
		s := open(t, url, Options{})
		rows := nextRows(t, s, 3)
		for i, status := range []string{"destructive_burst", "irreversible_burst", "rate"} {
			rows[i].Kind, rows[i].Status = "anomaly", status
		}
		must(t, s.Append(background, audit.WriteBatch{Rows: rows}))
		for _, asked := range []string{"destructive_burst", "irreversible_burst"} {
			if found := all(t, s.Find(background, audit.Filter{Statuses: []string{asked}})); len(found) != 2 {
				t.Errorf("%s: %d entries", asked, len(found))
			}
		}
	})
}
