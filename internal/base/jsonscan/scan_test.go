package jsonscan

import (
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

var documents = []string{
	`{"a":[1,-0.5e+10,true,false,null,"x\"\u00e9\ud83d\ude00\\"],"b":{}}`, ` [ ] `, `{}`, `"x"`, `12`, `-`, `01`, `1.`, `1e`, `[1,]`, `{"a":1,}`, `{"a"}`,
	`{1:2}`, `[1 2]`, `]`, `}`, `[}`, `{]`, `tru`, `truex`, `nul`, "\"\n\"", `"\x"`, `"\u12g4"`, `{} {}`, `1 2`, ``, ` `, `[[[[]]]]`, `{"a":{"b":[{"c":[]}]}}`, `"\ud800"`, `[1.5E-3,"a"]`, `-0`, `+1`, `0x1`, "\xff", "\"\xff\"",
}

// whole scans data in pieces of at most n bytes. It reports whether data is valid JSON, and returns the greatest
// nesting depth.
func whole(data []byte, n int) (ok bool, depth int) {
	var s Scanner
	for len(data) > 0 {
		part := data[:min(n, len(data))]
		data = data[len(part):]
		for len(part) > 0 {
			_, n, err := s.Next(part)
			if err != nil {
				return false, depth
			}
			depth = max(depth, s.NestingDepth())
			part = part[n:]
		}
	}
	return s.CheckEnd() == nil, depth
}

// FuzzScanner checks that Scanner accepts exactly the documents that encoding/json accepts, however they are split
// into pieces.
func FuzzScanner(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d), 3)
	}
	f.Fuzz(func(t *testing.T, data []byte, n int) {
		if bytes.Count(data, []byte("["))+bytes.Count(data, []byte("{")) > MaxDepth {
			return
		}
		want := json.Valid(data)
		for _, n := range []int{1, 2, max(1, n), len(data) + 1} {
			if got, _ := whole(data, n); got != want {
				t.Fatalf("%q in pieces of %d: %v, want %v", data, n, got, want)
			}
		}
	})
}

func TestScannerBoundsDepth(t *testing.T) {
	if ok, depth := whole([]byte(strings.Repeat("[", MaxDepth+1)+strings.Repeat("]", MaxDepth+1)), 7); ok || depth > MaxDepth {
		t.Errorf("%v, depth %d", ok, depth)
	}
	if ok, _ := whole([]byte(strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth)), 7); !ok {
		t.Error("refused at the bound")
	}
}

func TestTrailing(t *testing.T) {
	for doc, want := range map[string]bool{`{} {}`: true, `[1}`: false, `1 x`: true, `x`: false} {
		var s Scanner
		var err error
		for p := []byte(doc); len(p) > 0 && err == nil; {
			var n int
			_, n, err = s.Next(p)
			p = p[n:]
		}
		if e, ok := err.(*Error); !ok || e.Trailing != want {
			t.Errorf("%s: %v", doc, err)
		}
	}
}

// FuzzText checks that DecodeText decodes strings as encoding/json does, however the input is split.
func FuzzText(f *testing.F) {
	for _, s := range []string{`a\"b`, `\u00e9\ud83d\ude00`, `\ud800x`, `\ud800\u0041`, `\\\\n`, `\n\t\r\b\f\/`, `x\udc00\ud83d\ude00`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		var want string
		if json.Unmarshal([]byte(`"`+raw+`"`), &want) != nil || strings.ToValidUTF8(raw, "") != raw {
			return
		}
		for _, r := range []io.Reader{strings.NewReader(raw), iotest.OneByteReader(strings.NewReader(raw)), iotest.DataErrReader(strings.NewReader(raw))} {
			got, err := io.ReadAll(DecodeText(r))
			if err != nil || string(got) != want {
				t.Fatalf("%q: %q %v, want %q", raw, got, err, want)
			}
		}
	})
}

func TestTextAcrossBuffers(t *testing.T) {
	raw := strings.Repeat(`abc\u00e9\n`, 50_000)
	got, err := io.ReadAll(DecodeText(strings.NewReader(raw)))
	if want := strings.Repeat("abcé\n", 50_000); err != nil || string(got) != want {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

func BenchmarkScanner(b *testing.B) {
	doc := []byte("[" + strings.Repeat(`{"id":123456,"name":"Hanne Halvorsen","email":"hanne@example.com","ok":true},`, 10_000) + "1]")
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		whole(doc, 64<<10)
	}
}
