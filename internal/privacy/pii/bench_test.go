package pii

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// tokens is a TokenMinter that creates one token for each spelling of a value and can restore the spellings.
type tokens struct {
	byRaw map[FoundValue]string
	raw   map[string]FoundValue
	all   []FoundValue
}

func newTokens() *tokens {
	return &tokens{byRaw: map[FoundValue]string{}, raw: map[string]FoundValue{}}
}

func (v *tokens) Mint(x FoundValue) (string, bool) {
	v.all = append(v.all, x)
	if t, ok := v.byRaw[x]; ok {
		return t, true
	}
	t := fmt.Sprintf("[%s_%d]", strings.ToUpper(string(x.Type)), 9000+len(v.byRaw))
	v.byRaw[x], v.raw[t] = t, x
	return t, true
}

func (v *tokens) Foreign(string) (string, bool) { return "", false }

// counting is a TokenMinter that only counts, so that benchmarks do not measure the storage of tokens.
type counting int

func (c *counting) Mint(v FoundValue) (string, bool) {
	*c++
	return "[EMAIL_1]", true
}
func (c *counting) Foreign(string) (string, bool) { return "", false }

func prose(r *rand.Rand, n int) []byte {
	words := strings.Fields("the quick report says that revenue of the second quarter was higher than expected and the team will meet on Tuesday to discuss what to do next with " +
		"customers in Berlin, Madrid and New York (see page 12). A total of 1,204 units were shipped in 2024 for $12.50 each; version 2.3.1 is out since 2024-05-17 and works. Please call back")
	var b bytes.Buffer
	for b.Len() < n {
		if r.IntN(60) == 0 {
			fmt.Fprintf(&b, "anna.%d@example.com ", r.IntN(1000))
		}
		b.WriteString(words[r.IntN(len(words))])
		b.WriteByte(" \n"[r.IntN(12)/11])
	}
	return b.Bytes()[:n]
}

func crm(r *rand.Rand, n int) []byte {
	first, last := strings.Fields("Hanne Jürgen Olivia Priya Łukasz Camille João Denise"), strings.Fields("Halvorsen Müller Rivera Mehta Wójcik Girard Carvalho Okafor")
	var b bytes.Buffer
	b.WriteString(`{"total":1,"contacts":[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		f, l := first[r.IntN(8)], last[r.IntN(8)]+fmt.Sprint(r.IntN(3))[:0]
		fmt.Fprintf(&b, `{"id":"0035f00000%08d","firstName":%q,"lastName":%q,"email":"%s.%d@example.com","phone":"+1 212 555 %04d","title":"Head of Procurement","accountId":"0015f0000%07d","status":"open","score":%d,"createdDate":"2025-0%d-1%dT08:1%d:00.000Z","lastActivityMs":17%011d,"city":"Oslo","notes":"Met at the trade fair, wants an offer for %d units until the end of the month. Please send the data sheet and the price list to the office."}`,
			i, f, l, strings.ToLower(f), i, r.IntN(10000), r.IntN(1e7), r.IntN(100), 1+r.IntN(9), r.IntN(9), r.IntN(9), r.Int64N(1e11), r.IntN(500))
	}
	b.WriteString("]}")
	return b.Bytes()
}

func cleanJSON(r *rand.Rand, n int) []byte {
	var b bytes.Buffer
	b.WriteString(`[`)
	for i := 0; b.Len() < n; i++ {
		if i > 0 {
			b.WriteString(",\n")
		}
		fmt.Fprintf(&b, `{"time":17%011d,"level":"info","service":"ingest-%d","trace_id":"%016x%016x","duration_ms":%.3f,"status":%d,"path":"/v1/items/%d?limit=50","version":"1.%d.%d","sha256":"%016x%016x%016x%016x","bytes":%d,"message":"request completed in %d ms"}`,
			r.Int64N(1e11), r.IntN(9), r.Uint64(), r.Uint64(), r.Float64()*100, 200+r.IntN(300), r.Int64(), r.IntN(99), r.IntN(99), r.Uint64(), r.Uint64(), r.Uint64(), r.Uint64(), r.Int64(), r.IntN(1000))
	}
	b.WriteString("]")
	return b.Bytes()
}

func seeded() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

func BenchmarkText(b *testing.B) {
	text := prose(seeded(), 1<<20)
	s := New(Options{})
	var found []TypedSpan
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		found = s.FindText(found[:0], text)
	}
}

// BenchmarkBaseline measures how fast the machine can look up every byte of a text in a table. Other benchmarks are
// compared with it.
func BenchmarkBaseline(b *testing.B) {
	text := prose(seeded(), 1<<20)
	n := 0
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for _, c := range text {
			if class[c]&isTrigger != 0 {
				n++
			}
		}
	}
	_ = n
}

func benchmarkReplace(b *testing.B, raw []byte) {
	s := New(Options{})
	var c counting
	s.ReplaceValues(raw, nil, &c)
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		s.ReplaceValues(raw, nil, &c)
	}
}

func BenchmarkReplaceCRM10MB(b *testing.B)   { benchmarkReplace(b, crm(seeded(), 10<<20)) }
func BenchmarkReplaceClean10MB(b *testing.B) { benchmarkReplace(b, cleanJSON(seeded(), 10<<20)) }
func BenchmarkReplaceCRM10KB(b *testing.B)   { benchmarkReplace(b, crm(seeded(), 10<<10)) }
func BenchmarkReplaceText1MB(b *testing.B)   { benchmarkReplace(b, prose(seeded(), 1<<20)) }

// BenchmarkReplaceNested1MB measures ReplaceValues on JSON inside a JSON string, as tools return it in text content.
func BenchmarkReplaceNested1MB(b *testing.B) {
	inner, err := json.Marshal(string(crm(seeded(), 1<<20)))
	if err != nil {
		b.Fatal(err)
	}
	benchmarkReplace(b, []byte(`{"content":[{"type":"text","text":`+string(inner)+`}]}`))
}

// BenchmarkReplaceKnown measures ReplaceValues with a thousand known names, numbers and dates that do not occur in the
// document.
func BenchmarkReplaceKnown(b *testing.B) {
	r := seeded()
	known := &KnownValues{}
	for i := range 1000 {
		known.AddExact(Name, fmt.Sprintf("Given%c%c Family%c%d", 'a'+i%26, 'a'+i/26%26, 'a'+i%7, i))
		known.AddExact(Phone, fmt.Sprintf("+1 305 555 %04d", i))
		known.AddExact(DateOfBirth, fmt.Sprintf("19%02d-%02d-%02d", 50+i%40, 1+i%12, 1+i%28))
	}
	data := make([]byte, 1<<20)
	for i := range data {
		data[i] = byte(r.Uint32())
	}
	for name, document := range map[string][]byte{
		"contacts": crm(r, 1<<20), "log": cleanJSON(r, 1<<20), "prose": prose(r, 1<<20),
		"base64": []byte(base64.StdEncoding.EncodeToString(data)),
	} {
		b.Run(name, func(b *testing.B) {
			s := New(Options{})
			var c counting
			b.SetBytes(int64(len(document)))
			for b.Loop() {
				s.ReplaceValues(document, known, &c)
			}
		})
	}
}
