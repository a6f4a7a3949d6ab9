package infer_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"retort/internal/base/jsonschema"
	"retort/internal/catalog/infer"
	"retort/internal/devel/testenv"
)

func observe(t testing.TB, document string) *infer.AnswerShape {
	t.Helper()
	s := infer.ObserveDocument([]byte(document), nil)
	if s == nil {
		t.Fatalf("nothing is learned of %.200s", document)
	}
	return s
}

func TestSchemaOfDocuments(t *testing.T) {
	for name, tt := range map[string]struct {
		documents []string
		want      string
	}{
		"a record":       {[]string{`{"id":1,"title":"x","open":true,"at":null}`}, `{"type":"object","properties":{"at":{"description":"null so far"},"id":{"type":"integer"},"open":{"type":"boolean"},"title":{"type":"string"}},"required":["at","id","open","title"]}`},
		"optional":       {[]string{`[{"a":1,"b":"x"},{"a":2.5}]`}, `{"type":"array","items":{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"string"}},"required":["a"]}}`},
		"over answers":   {[]string{`{"a":1}`, `{"b":null}`, `{"b":"x"}`}, `{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":["string","null"]}}}`},
		"a union":        {[]string{`"x"`, `[]`, `{"a":1}`, `7`}, `{"type":["object","array","string","integer"],"properties":{"a":{"type":"integer"}},"required":["a"]}`},
		"empty":          {[]string{`{}`, `{}`}, `{"type":"object"}`},
		"empty lists":    {[]string{`{"rows":[]}`}, `{"type":"object","properties":{"rows":{"type":"array"}},"required":["rows"]}`},
		"dates":          {[]string{`{"day":"2026-01-31","at":"2026-01-31T10:00:00Z","free":"2026-01-31"}`, `{"day":"","at":"2026-01-31T10:00:00.123+02:00","free":"soon"}`}, `{"type":"object","properties":{"at":{"type":"string","format":"date-time"},"day":{"type":"string","format":"date"},"free":{"type":"string"}},"required":["at","day","free"]}`},
		"ids":            {[]string{`{"u-4711":{"n":1},"u-4712":{"n":2,"m":3}}`}, `{"type":"object","additionalProperties":{"type":"object","properties":{"m":{"type":"integer"},"n":{"type":"integer"}},"required":["n"]}}`},
		"ids and a name": {[]string{`{"total":2,"u4711":{"n":1}}`}, `{"type":"object","properties":{"total":{"type":"integer"}},"required":["total"],"additionalProperties":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`},
		"titles":         {[]string{`[{"Amount":2,"Unit Price":1}]`}, `{"type":"array","items":{"type":"object","properties":{"Amount":{"type":"integer"}},"required":["Amount"],"patternProperties":{"[^0-9A-Za-z_$]":{"type":"integer"}}}}`},
		"rows":           {[]string{`{"alice":{"age":3,"city":"x"},"bob":{"age":4,"city":"y"}}`}, `{"type":"object","additionalProperties":{"type":"object","properties":{"age":{"type":"integer"},"city":{"type":"string"}},"required":["age","city"]}}`},
		"rows later":     {[]string{`{"alice":{"age":3,"city":"x"}}`, `{"bob":{"age":4,"city":"y"}}`}, `{"type":"object","additionalProperties":{"type":"object","properties":{"age":{"type":"integer"},"city":{"type":"string"}},"required":["age","city"]}}`},
		"not rows":       {[]string{`{"width":3,"height":4}`}, `{"type":"object","properties":{"height":{"type":"integer"},"width":{"type":"integer"}},"required":["height","width"]}`},
	} {
		var s *infer.AnswerShape
		for _, d := range tt.documents {
			s = infer.JoinShapes(s, observe(t, d))
		}
		if got := string(s.JSONSchema()); got != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, tt.want)
		}
	}
}

func TestNames(t *testing.T) {
	for _, name := range []string{"id", "created_at", "htmlUrl", "InstanceId", "_links", "$ref", "@type", "content-type", "sha256", "file_sha256", "address2", "line_2", "x", "isOAuth2", "ETag", "URL", "diff_url", "q1", "p95", "dns", "ACCESS_LEVEL"} {
		if !infer.IsName(name) {
			t.Errorf("%q is no name", name)
		}
	}
	for _, value := range []string{"", "7", "2026-01-31", "u4711", "user_12", "PROJ-123", "jane@example.com", "Jane Doe", "Jürgen", "a/b.go", "example.com", "[EMAIL_1]", "deadbeef",
		"0b1e7c6a-9f1d-4a80-9a4e-3f2a5d0f6c11", "AKIAIOSFODNN7EXAMPLE", "sk_live_51H8abcdEFGH", "aXbYcZdWeV", "+49 170 1234567", strings.Repeat("word_", 9), "abcdefghijklmnopqrstuvwxyz", "a b", "-x", "12ab", "v1.2"} {
		if infer.IsName(value) {
			t.Errorf("%q is a name", value)
		}
	}
}

// TestPersonalKeys checks that no key of an object is stored if one key of the object is personal. The type of the
// object is then a map.
func TestPersonalKeys(t *testing.T) {
	private := func(key string) bool { return key == "Hanne" || key == "Halvorsen" }
	for _, document := range []string{
		`{"by": {"Hanne": {"n": 1}, "Kwame": {"n": 2}}, "total": 2}`, `[{"Halvorsen": 1, "total": 2}, {"Kwame": 1, "total": 2}]`,
		`{"data": {"Hanne": [1], "Kwame": [2]}, "more": {"count": "x"}}`,
	} {
		schema := string(infer.ObserveDocument([]byte(document), private).JSONSchema())
		if strings.Contains(schema, "Hanne") || strings.Contains(schema, "Halvorsen") || strings.Contains(schema, `"Kwame"`) || schema == "" {
			t.Errorf("%s: %s", document, schema)
		}
	}
	if schema := string(infer.ObserveDocument([]byte(`{"total": 1, "by": {"Hanne": 1}}`), private).JSONSchema()); !strings.Contains(schema, "total") {
		t.Error(schema)
	}
}

// randomDocument returns a random document. Two such documents often have the same names, IDs and tables.
func randomDocument(r *rand.Rand, depth int) any {
	names := []string{"id", "title", "state", "items", "user", "labels", "total", "next", "alice", "bob", "carol"}
	switch n := r.IntN(12); {
	case n < 4 && depth > 0:
		o := map[string]any{}
		for range r.IntN(6) {
			key := names[r.IntN(len(names))]
			if r.IntN(8) == 0 {
				key = fmt.Sprintf("u-%d", r.IntN(1e6))
			}
			o[key] = randomDocument(r, depth-1)
		}
		return o
	case n < 6 && depth > 0:
		a := make([]any, r.IntN(4))
		for i := range a {
			a[i] = randomDocument(r, depth-1)
		}
		return a
	}
	return []any{nil, true, 7, 1.5, "x", "", "2026-01-31", "2026-01-31T10:00:00Z"}[r.IntN(8)]
}

// wideDocument returns a random document with so many names that the shape of several documents exceeds its
// bounds.
func wideDocument(r *rand.Rand) any {
	word := func() string { return string(rune('a'+r.IntN(26))) + string(rune('a'+r.IntN(26))) }
	o := map[string]any{}
	for range 1 + r.IntN(50) {
		inner := map[string]any{}
		for range 4 {
			inner[word()] = map[string]any{word(): 1, word(): []any{map[string]any{word(): "x"}}}
		}
		o[word()] = []any{inner, 1}
	}
	return o
}

// TestJoinInAnyOrder checks that the joined shape of documents depends neither on their order nor on how they are
// grouped.
func TestJoinInAnyOrder(t *testing.T) {
	seeds := uint64(100)
	if testenv.Full() {
		seeds = 400
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 1))
		var shapes []*infer.AnswerShape
		for range 2 + r.IntN(8) {
			doc := randomDocument(r, 5)
			if seed%4 == 0 {
				doc = wideDocument(r)
			}
			text, _ := json.Marshal(doc)
			shapes = append(shapes, observe(t, string(text)))
		}
		want := joined(shapes)
		for range 10 {
			r.Shuffle(len(shapes), func(i, j int) { shapes[i], shapes[j] = shapes[j], shapes[i] })
			if got := grouped(r, shapes); !infer.EqualShapes(got, want) || !bytes.Equal(got.JSONSchema(), want.JSONSchema()) || kept(t, got) != kept(t, want) {
				t.Fatalf("seed %d:\n%s\n%s", seed, got.JSONSchema(), want.JSONSchema())
			}
		}
		if again := infer.JoinShapes(want, shapes[0]); !infer.EqualShapes(again, want) {
			t.Fatalf("seed %d: what was seen before changes %s to %s", seed, want.JSONSchema(), again.JSONSchema())
		}
	}
}

func joined(shapes []*infer.AnswerShape) (all *infer.AnswerShape) {
	for _, s := range shapes {
		all = infer.JoinShapes(all, s)
	}
	return all
}

func grouped(r *rand.Rand, shapes []*infer.AnswerShape) *infer.AnswerShape {
	if len(shapes) == 1 {
		return shapes[0]
	}
	at := 1 + r.IntN(len(shapes)-1)
	return infer.JoinShapes(grouped(r, shapes[:at]), grouped(r, shapes[at:]))
}

func kept(t *testing.T, s *infer.AnswerShape) string {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back infer.AnswerShape
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.JSONSchema(), s.JSONSchema()) {
		t.Fatalf("kept as %s, it comes back as\n%s, and was\n%s", text, back.JSONSchema(), s.JSONSchema())
	}
	return string(text)
}

func TestBounds(t *testing.T) {
	var s *infer.AnswerShape
	for seed := range uint64(200) {
		text, _ := json.Marshal(wideDocument(rand.New(rand.NewPCG(seed, 2))))
		s = infer.JoinShapes(s, observe(t, string(text)))
	}
	if n := len(s.JSONSchema()); n > 64<<10 {
		t.Errorf("a shape of %d bytes", n)
	}
	if s := observe(t, strings.Repeat(`{"a":[`, 5000)+strings.Repeat("]}", 5000)); len(s.JSONSchema()) > 4<<10 {
		t.Error("a deep document has a deep shape")
	}
	deep, shallow := observe(t, strings.Repeat(`{"a":`, 13)+`{"b":1}`+strings.Repeat("}", 13)), observe(t, strings.Repeat(`{"a":`, 11)+`{"a":1}`+strings.Repeat("}", 11))
	if !infer.EqualShapes(infer.JoinShapes(deep, shallow), infer.JoinShapes(shallow, deep)) {
		t.Error("that something was cut depends on the order")
	}
	many := map[string]any{}
	for i := range 26 * 26 {
		many[string(rune('a'+i/26))+string(rune('a'+i%26))] = []any{1, "x", map[string]any{}}[i%3]
	}
	text, _ := json.Marshal(many)
	if got := string(observe(t, string(text)).JSONSchema()); !strings.HasSuffix(got, `,"additionalProperties":true}`) || strings.Contains(got, `"zz"`) {
		t.Errorf("nothing says that there are more fields: %s", got)
	}
	if infer.ObserveDocument([]byte(`{"a":1} x`), nil) != nil || infer.ObserveDocument([]byte(`{"a"`), nil) != nil || infer.ObserveDocument(nil, nil) != nil {
		t.Error("something is learned of what is no JSON")
	}
}

// TestFieldsBehindLongLists checks that fields after a long list are recorded, although most of the list is skipped.
func TestFieldsBehindLongLists(t *testing.T) {
	row := `{"id":1,"text":"` + strings.Repeat("x", 200) + `"},`
	long := `{"rows":[` + strings.Repeat(row, 5000) + `{"id":2,"late":true}],"next_cursor":"x","page":{"size":1}}`
	got := string(observe(t, long).JSONSchema())
	for _, want := range []string{`"next_cursor":{"type":"string"}`, `"required":["next_cursor","page","rows"]`, `"page":{"type":"object"}`} {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in %s", want, got)
		}
	}
}

// FuzzObserve checks that a document is valid against three schemas: the one inferred from this document alone, the
// one inferred from it and another document, and the latter after it was stored and read back.
func FuzzObserve(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5,"x",null,{"b":true}],"u-12345":{}}`, `[[[]],{}]`, `"x"`, `{"a":{"x":1,"y":2},"b":{"x":1,"y":"z"}}`, `{"a":1,"a":"b"}`, "{\"\\u0061\":1}"} {
		f.Add(s, `{"a":{"q":1}}`)
	}
	f.Fuzz(func(t *testing.T, document, other string) {
		s := infer.ObserveDocument([]byte(document), nil)
		value, err := jsonschema.Decode([]byte(document))
		if err != nil || s == nil {
			return // what is no JSON may teach something, but not end anything
		}
		all := infer.JoinShapes(infer.ObserveDocument([]byte(other), nil), s)
		text, err := json.Marshal(all)
		var back infer.AnswerShape
		if err == nil {
			err = json.Unmarshal(text, &back)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, learned := range []*infer.AnswerShape{s, all, &back} {
			compiled, err := jsonschema.Compile(learned.JSONSchema())
			if err != nil {
				t.Fatalf("%v: %s", err, learned.JSONSchema())
			}
			if v := compiled.Validate(value); v != nil {
				t.Fatalf("%s does not fit %s: %v", document, learned.JSONSchema(), v)
			}
		}
	})
}

func BenchmarkObserve(b *testing.B) {
	row := `{"id":12345,"title":"Something that is broken","state":"open","labels":["bug","ui"],"user":{"login":"someone","id":7},"created_at":"2026-01-31T10:00:00Z","body":null},`
	for _, n := range []int{1, 50, 5800} {
		text := []byte("[" + strings.TrimSuffix(strings.Repeat(row, n), ",") + "]")
		b.Run(fmt.Sprintf("%dkB", len(text)>>10), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if infer.ObserveDocument(text, nil) == nil {
					b.Fatal("nothing")
				}
			}
		})
	}
}
