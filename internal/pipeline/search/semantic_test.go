package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/pipeline/search/index"
)

// meaning returns the vector of a text as a tiny embedding model would. The model knows three groups of words, and
// takes the words of a group for synonyms.
func meaning(text string) []float32 {
	v := make([]float32, 4)
	v[3] = 0.01
	for i, line := range []string{"issue bug ticket defect", "message mail letter epistle", "contact person human"} {
		for _, word := range strings.Fields(line) {
			if strings.Contains(strings.ToLower(text), word) {
				v[i]++
			}
		}
	}
	return v
}

// fake implements a TextEmbedder in memory.
type fake struct {
	calls atomic.Int32
	fail  atomic.Pointer[error]
}

func newFake() *fake { return &fake{} }

func (f *fake) Model() string { return "fake" }

func (f *fake) failWith(err error) {
	if err == nil {
		f.fail.Store(nil)
		return
	}
	f.fail.Store(&err)
}

func (f *fake) Embed(_ context.Context, texts []string) ([][]float32, error) {
	f.calls.Add(1)
	if err := f.fail.Load(); err != nil {
		return nil, *err
	}
	all := make([][]float32, len(texts))
	for i, text := range texts {
		all[i] = meaning(text)
	}
	return all, nil
}

// filled waits until every tool has a vector.
func filled(t *testing.T, d *Searcher) {
	t.Helper()
	d.StartIndexing()
	want := d.catalog.Toolset().CountTools()
	testenv.WaitUntil(t, "all tools have vectors", func() bool {
		have := 0
		for _, p := range d.semantic.plannedVectors() {
			if d.semantic.kept.getVector(p.key) != nil {
				have++
			}
		}
		return have == want
	})
}

// endpoint is an HTTP server whose behaviour the test can change.
type endpoint struct {
	*httptest.Server
	answer   atomic.Pointer[http.HandlerFunc]
	requests atomic.Int32
}

func startEndpoint(t *testing.T) *endpoint {
	e := &endpoint{}
	e.set(wellBehaved)
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.requests.Add(1)
		(*e.answer.Load())(w, r)
	}))
	t.Cleanup(e.Server.Close)
	return e
}

func (e *endpoint) set(f http.HandlerFunc) { e.answer.Store(&f) }

func input(r *http.Request) (model string, texts []string) {
	var body struct {
		Model string
		Input []string
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		return "", nil
	}
	return body.Model, body.Input
}

// wellBehaved handles embedding requests correctly. It returns the vectors in reverse order, which is allowed because
// the field index says to which text each vector belongs.
func wellBehaved(w http.ResponseWriter, r *http.Request) {
	model, texts := input(r)
	if r.Method != http.MethodPost || r.URL.Path != "/v1/embeddings" || model != "tiny" {
		http.Error(w, "wrong request", http.StatusBadRequest)
		return
	}
	type item struct {
		Index     int       `json:"index"`
		Embedding []float32 `json:"embedding"`
	}
	var data []item
	for i := len(texts) - 1; i >= 0; i-- {
		data = append(data, item{i, meaning(texts[i])})
	}
	json.NewEncoder(w).Encode(map[string]any{"object": "list", "data": data})
}

// hanging handles an HTTP request without ever answering. It reads the request, because only then does the server
// notice that the client has closed the connection.
func hanging(_ http.ResponseWriter, r *http.Request) {
	input(r)
	<-r.Context().Done()
}

func TestSearchByMeaning(t *testing.T) {
	e := startEndpoint(t)
	dir := t.TempDir()
	d := start(t, desk(), Options{Embedder: NewEndpoint(e.URL+"/v1/", "tiny", "secret"), Dir: dir})
	filled(t, d)
	for query, want := range map[string]string{
		"defect":        "github.create_issue", // no word in common
		"write epistle": "mail.send",
		"human":         "my-crm.create_contact",
		"mail.search":   "mail.search", // a name that is spelled out stays first
	} {
		a := search(t, d, SearchQuery{Text: query})
		if len(a.Hits) == 0 || names(a)[0] != want || a.Warnings != nil {
			t.Errorf("%q finds %v, warnings %v", query, names(a), a.Warnings)
		}
	}
	if a := search(t, d, SearchQuery{Text: "defect", Category: "crm"}); len(a.Hits) != 2 || a.Hits[0].Tool.Server != "my-crm" {
		t.Errorf("within crm: %v", names(a))
	}
	asked := e.requests.Load()
	search(t, d, SearchQuery{Text: "defect"})
	if e.requests.Load() != asked {
		t.Error("the same query is asked for again")
	}
}

func TestVectorsOutliveTheProcess(t *testing.T) {
	dir := t.TempDir()
	first := newFake()
	d := start(t, desk(), Options{Embedder: first, Dir: dir})
	filled(t, d)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	second := newFake()
	d = start(t, desk(), Options{Embedder: second, Dir: dir})
	filled(t, d)
	if n := second.calls.Load(); n != 0 {
		t.Errorf("%d requests for vectors that are kept", n)
	}
	if a := search(t, d, SearchQuery{Text: "defect"}); names(a)[0] != "github.create_issue" {
		t.Errorf("found %v", names(a))
	}
}

// TestFailingEndpoint checks that tools are still found by words if the endpoint fails, with a warning that describes
// the failure.
func TestFailingEndpoint(t *testing.T) {
	for _, c := range []struct {
		name    string
		answer  http.HandlerFunc
		warning string
	}{
		{"error", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(http.StatusNotFound)
			fmt.Fprint(w, `{"error":{"message":"no such model"}}`)
		}, "404 Not Found: no such model"},
		{"rubbish", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "<html>") }, "cannot be read"},
		{"no vectors", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"data":[]}`) }, "0 vectors for 1 texts"},
		{"no numbers", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"data":[{"index":0,"embedding":[]}]}`) }, "vector of 0 numbers"},
		{"wrong index", func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, `{"data":[{"index":7,"embedding":[1]}]}`) }, "exactly one vector"},
		{"wrong dimension", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":[{"index":0,"embedding":[1,2,3]}]}`)
		}, "vector of 3 numbers, but the stored ones have 4"},
		{"zero", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":[{"embedding":[0,0,0,0]}]}`)
		}, "zero vector"},
		{"overflow", func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, `{"data":[{"embedding":[1e300,0,0,0]}]}`)
		}, "cannot be read"},
		{"endless", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, "more than"},
		{"redirect", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, "307"},
		{"hanging", hanging, "did not answer within 50ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := startEndpoint(t)
			d := start(t, desk(), Options{Embedder: NewEndpoint(e.URL+"/v1", "tiny", "")})
			filled(t, d)
			e.set(c.answer)
			if c.name == "hanging" {
				d.semantic.patience = 50 * time.Millisecond
			}
			a := search(t, d, SearchQuery{Text: "open an issue"})
			if diff := cmp.Diff([]string{"github.create_issue", "github.list_issues"}, names(a)); diff != "" {
				t.Error(diff)
			}
			if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], c.warning) || !strings.Contains(a.Warnings[0], "by keywords only") {
				t.Errorf("warnings %q, want %q", a.Warnings, c.warning)
			}
		})
	}
}

func TestDeadEndpointCostsNothing(t *testing.T) {
	e := startEndpoint(t)
	d := start(t, desk(), Options{Embedder: NewEndpoint(e.URL+"/v1", "tiny", "")})
	filled(t, d)
	now := time.Now()
	d.semantic.breaker.now = func() time.Time { return now }
	e.set(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusBadGateway) })
	before := e.requests.Load()
	for i := range 50 {
		if a := search(t, d, SearchQuery{Text: fmt.Sprint("issue ", i)}); len(a.Warnings) != 1 || len(a.Hits) == 0 {
			t.Fatalf("%v, warnings %q", names(a), a.Warnings)
		}
	}
	if n := e.requests.Load() - before; n != maxFailures {
		t.Errorf("%d requests to a dead endpoint, want %d", n, maxFailures)
	}
}

func TestFetchingGoesOnAfterAFailure(t *testing.T) { synctest.Test(t, fetchAfterAFailure) }

func fetchAfterAFailure(t *testing.T) {
	f := newFake()
	f.failWith(errors.New("not yet"))
	d := start(t, desk(), Options{Embedder: f})
	d.StartIndexing()
	testenv.WaitUntil(t, "the first fetch fails", func() bool { return d.semantic.breaker.lastFailure() != nil })
	if a := search(t, d, SearchQuery{Text: "issue"}); len(a.Hits) == 0 || !strings.Contains(fmt.Sprint(a.Warnings), "not yet") {
		t.Errorf("%v, warnings %q", names(a), a.Warnings)
	}
	f.failWith(nil)
	filled(t, d)
	if a := search(t, d, SearchQuery{Text: "defect"}); len(a.Hits) == 0 || a.Warnings != nil {
		t.Errorf("%v, warnings %q", names(a), a.Warnings)
	}
}

func TestPartOfTheToolsHaveVectors(t *testing.T) {
	tools := desk()
	f := newFake()
	d := start(t, tools, Options{Embedder: f})
	if a := search(t, d, SearchQuery{Text: "issue"}); len(a.Warnings) > 1 {
		t.Errorf("warnings %q", a.Warnings)
	}
	filled(t, d)
	search(t, d, SearchQuery{Text: "defect"})
	f.failWith(errors.New("away"))
	more := append([]*core.ToolServer{server("aaa", "", "new: tool")}, tools.Toolset().Servers...)
	tools.current.Store(core.NewToolset(more))
	a := search(t, d, SearchQuery{Text: "defect"})
	if len(a.Warnings) != 1 || !strings.Contains(a.Warnings[0], "6 of 7 tools") {
		t.Errorf("warnings %q", a.Warnings)
	}
}

func TestManyToolsAreFetchedInBatches(t *testing.T) {
	var texts []string
	for i := range 500 {
		texts = append(texts, fmt.Sprintf("tool_%d: does %d", i, i))
	}
	f := newFake()
	d := start(t, shelve(server("s", "", texts...)), Options{Embedder: f, Dir: t.TempDir()})
	filled(t, d)
	if n := f.calls.Load(); n != (500+batchSize-1)/batchSize {
		t.Errorf("%d requests", n)
	}
}

func TestNothingIsLeftAfterClose(t *testing.T) {
	testenv.CheckGoroutines(t)
	e := startEndpoint(t)
	e.set(hanging)
	for range 5 {
		d, err := New(desk(), Options{Embedder: NewEndpoint(e.URL, "tiny", ""), Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		d.StartIndexing()
		if err := errors.Join(d.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
	e.CloseClientConnections()
	e.Server.Close()
}

func TestKeyIsSent(t *testing.T) {
	e := startEndpoint(t)
	var sent sync.Map
	e.set(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(r.Header.Get("Authorization"), true)
		wellBehaved(w, r)
	})
	if _, err := NewEndpoint(e.URL+"/v1", "tiny", "secret").Embed(t.Context(), []string{"x"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := sent.Load("Bearer secret"); !ok {
		t.Error("the key is not sent")
	}
	e.Server.Close()
	if _, err := NewEndpoint(e.URL+"/v1", "tiny", "secret").Embed(t.Context(), []string{"x"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
}

func TestVectorsFile(t *testing.T) {
	dir := t.TempDir()
	write := func(server string) {
		v, err := openVectors(dir, "m")
		if err != nil {
			t.Fatal(err)
		}
		if err := v.putVectors([]vectorKey{keyOf(server, "p")}, [][]float32{{0.6, 0.8}}); err != nil {
			t.Fatal(err)
		}
		if err := v.closeFile(); err != nil {
			t.Fatal(err)
		}
	}
	kept := func(servers ...string) (have []bool) {
		v, err := openVectors(dir, "m")
		if err != nil {
			t.Fatal(err)
		}
		defer v.closeFile()
		for _, s := range servers {
			have = append(have, cmp.Equal(v.getVector(keyOf(s, "p")), []float32{0.6, 0.8}))
		}
		return have
	}
	write("a")
	write("b")
	path, _ := filepath.Glob(filepath.Join(dir, "*.bin"))
	data, err := os.ReadFile(path[0])
	if err != nil {
		t.Fatal(err)
	}
	for cut := range len(data) / 2 { // half a record at the end, then more records
		if err := os.WriteFile(path[0], data[:len(data)-1-cut], 0o600); err != nil {
			t.Fatal(err)
		}
		write("c")
		if diff := cmp.Diff([]bool{true, false, true}, kept("a", "b", "c")); diff != "" {
			t.Fatalf("cut %d: %s", cut, diff)
		}
	}
	flipped := append([]byte(nil), data...)
	flipped[len(data)-1] ^= 1
	if err := os.WriteFile(path[0], flipped, 0o600); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]bool{true, false}, kept("a", "b")); diff != "" {
		t.Error(diff)
	}
	if other, err := openVectors(dir, "another model"); err != nil || other.getVector(keyOf("a", "p")) != nil {
		t.Errorf("vectors of another model: %v", err)
	}
}

func TestUnneededVectorsAreForgotten(t *testing.T) {
	v, err := openVectors(t.TempDir(), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer v.closeFile()
	numbers := make([]float32, 1024)
	numbers[0] = 1
	wanted := map[vectorKey]bool{keyOf("s", "0"): true}
	for i := range 1 + maxGarbage/(4*len(numbers)) {
		if err := v.putVectors([]vectorKey{keyOf("s", fmt.Sprint(i))}, [][]float32{numbers}); err != nil {
			t.Fatal(err)
		}
	}
	if err := v.retainWanted(wanted); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(v.path)
	if err != nil || info.Size() > int64(recordHead+4*len(numbers)) || v.getVector(keyOf("s", "0")) == nil || v.getVector(keyOf("s", "1")) != nil {
		t.Errorf("%v bytes, %v", info.Size(), err)
	}
	if err := v.putVectors([]vectorKey{keyOf("s", "new")}, [][]float32{numbers}); err != nil {
		t.Fatal(err)
	}
	again, err := openVectors(filepath.Dir(v.path), "m")
	if err != nil || again.getVector(keyOf("s", "new")) == nil || again.getVector(keyOf("s", "0")) == nil {
		t.Errorf("the rewritten file lacks vectors: %v", err)
	}
	again.closeFile()
}

func FuzzRecords(f *testing.F) {
	whole := appendRecord(nil, keyOf("s", "p"), []float32{1, 2})
	f.Add(whole)
	f.Add(append([]byte("RTV1RTV1"), whole...))
	f.Add(whole[:20])
	f.Fuzz(func(t *testing.T, data []byte) {
		readRecords(data, func(_ vectorKey, numbers []float32) {
			if len(numbers) == 0 || len(numbers) > maxDimensions || 4*len(numbers) > len(data) {
				t.Fatalf("%d numbers", len(numbers))
			}
		})
		found := false
		readRecords(append(data, whole...), func(k vectorKey, _ []float32) { found = found || k == keyOf("s", "p") })
		if !found && len(data) < 1<<10 {
			t.Fatal("a whole record at the end is not found")
		}
	})
}

func TestBreaker(t *testing.T) {
	now := time.Unix(0, 0)
	b := newCircuitBreaker(func() time.Time { return now })
	failed := errors.New("failed")
	try := func(want bool) {
		t.Helper()
		if ok, err := b.allowAttempt(); ok != want || !ok && err != failed {
			t.Fatalf("allow %v, %v", ok, err)
		}
	}
	try(true)
	b.finishAttempt(failed)
	try(true)
	b.finishAttempt(failed)
	try(false)
	now = now.Add(firstPause)
	try(true)
	try(false) // one attempt at a time
	b.finishAttempt(failed)
	now = now.Add(firstPause)
	try(false) // the pause has doubled
	now = now.Add(firstPause)
	try(true)
	b.finishAttempt(nil)
	try(true)
	try(true)
	for range 100 {
		b.finishAttempt(failed)
	}
	if b.remainingPause() != lastPause {
		t.Errorf("pause %v", b.remainingPause())
	}
}

func TestFuse(t *testing.T) {
	tools := server("s", "", "a", "b", "c", "d").Tools
	words := []index.SearchHit{{Tool: tools[0], Score: 9, Exact: true}, {Tool: tools[1], Score: 5}, {Tool: tools[2], Score: 4}}
	for _, c := range []struct {
		name    string
		words   []index.SearchHit
		meaning []*core.Tool
		want    string
	}{
		{"both agree on b", words, []*core.Tool{tools[1], tools[3], tools[2]}, "a b c d"},
		{"found by both comes before found by one", words, []*core.Tool{tools[3], tools[2]}, "a c d b"},
		{"meaning only", nil, []*core.Tool{tools[1], tools[0]}, "b a"},
		{"words only", words, nil, "a b c"},
		{"only exact", words[:1], []*core.Tool{tools[1]}, "a b"},
	} {
		var got []string
		for _, h := range fuseRankings(c.words, c.meaning) {
			got = append(got, h.Tool.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}
