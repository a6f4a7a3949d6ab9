package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"retort/internal/core"
)

// output returns a batchWriter and the buffer that it writes to.
func output(size int, hide func([]byte) ([]byte, error)) (batchWriter, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return batchWriter{out: out, hide: hide, preview: new(string), size: size}, out
}

// FuzzPieces checks that every batch of a JSON document is valid JSON, and that the written text is the document
// without white space, with one line for each item of a top-level array.
func FuzzPieces(f *testing.F) {
	for _, d := range []string{`[1, {"a": [1,2 ,3], "b,\n":"c,\\n\\",",":{}} ,"x"]`, `{"k":{"l":[[1,2],[3,{"m":[4,5,6,7,8,9]}]]},"n":1}`, `[]`, `[[],[[]],{}]`, `{"a":1}`, `[[[1,2],3,"]"],4]`} {
		f.Add(d, 1)
	}
	f.Fuzz(func(t *testing.T, doc string, size int) {
		if !json.Valid([]byte(doc)) || strings.ToValidUTF8(doc, "") != doc {
			return
		}
		shape, err := surveyJSON(iotest.OneByteReader(strings.NewReader(doc)))
		if err != nil {
			if first := strings.TrimSpace(doc)[:1]; first == "[" || first == "{" {
				t.Fatalf("%s: %v", doc, err)
			}
			return
		}
		var compact bytes.Buffer
		_ = json.Compact(&compact, []byte(doc))
		lines := doc[len(doc)-len(strings.TrimLeft(doc, " \t\r\n"))] == '['
		if lines != shape.rows {
			t.Fatalf("%s: %+v", doc, shape)
		}
		batches, out := output(max(0, size%50), func(p []byte) ([]byte, error) {
			if !json.Valid(p) {
				t.Fatalf("%s: a batch is %s", doc, p)
			}
			return bytes.Clone(p), nil
		})
		w := &pieceWriter{out: batches, lines: lines}
		if err := w.copyFrom(strings.NewReader(doc)); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if !lines {
			if out.String() != compact.String() {
				t.Fatalf("%s: %s", doc, out)
			}
			return
		}
		var elements []json.RawMessage
		_ = json.Unmarshal(compact.Bytes(), &elements)
		var want strings.Builder
		for _, e := range elements {
			want.Write(e)
			want.WriteByte('\n')
		}
		if out.String() != want.String() || w.rows != int64(len(elements)) {
			t.Fatalf("%s: %d rows\n%swant\n%s", doc, w.rows, out, want.String())
		}
	})
}

// TestBatchesHaveTheirKeys checks that each batch contains the keys of the objects around it, because they help to
// recognise personal data.
func TestBatchesHaveTheirKeys(t *testing.T) {
	var seen []string
	batches, out := output(1, func(p []byte) ([]byte, error) {
		seen = append(seen, string(p))
		return bytes.ReplaceAll(p, []byte("7"), []byte("[N]")), nil
	})
	w := &pieceWriter{out: batches}
	if err := w.copyFrom(strings.NewReader(`{"a": 1, "phones": {"of": [17, 27, 37, 47]}, "z": 2}`)); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != `{"a":1,"phones":{"of":[1[N],2[N],3[N],4[N]]},"z":2}` {
		t.Error(got)
	}
	if got := strings.Join(seen, "\n"); got != "{\"a\":1}\n{\"phones\":{\"of\":[17]}}\n{\"phones\":{\"of\":[27,37]}}\n{\"phones\":{\"of\":[47]}}\n{\"z\":2}" {
		t.Error(got)
	}
}

func TestSurvey(t *testing.T) {
	rows := "[" + strings.Repeat("1,", maxSurrounding) + "1]"
	for doc, want := range map[string]string{
		`{"total": 3, "rows": ` + rows + ` , "next":null}`: `{"total":3,"next":null} rows true`,
		`{"rows":` + rows + `}`:                            ` rows true`,
		`{"a":` + rows + `,"b":` + rows + `}`:              `  false`,
		`{"a":` + rows + `,"b":"` + rows + `"}`:            `  false`,
		`{"a":[1]}`:                                        `  false`,
		`{"a":{"b":` + rows + `}}`:                         `  false`,
		rows:                                               `  true`,
	} {
		s, err := surveyJSON(strings.NewReader(doc))
		if !s.rows {
			s.others = nil
		}
		if got := fmt.Sprintf("%s %s %v", s.others, s.member, s.rows); err != nil || got != want {
			t.Errorf("%.40s: %s, want %s (%v)", doc, got, want, err)
		}
		if s.rows && strings.TrimSpace(doc[s.from:s.to]) != rows {
			t.Errorf("%.40s: %d to %d", doc, s.from, s.to)
		}
	}
}

// TestLinesKeepTheirHeader checks that text is searched in batches of whole lines, each below the text's first line.
func TestLinesKeepTheirHeader(t *testing.T) {
	text := "id,phone\n" + strings.Repeat("1,555\n", 50_000) + "2,5"
	n := 0
	batches, out := output(100_000, func(p []byte) ([]byte, error) {
		if !bytes.HasPrefix(p, []byte("id,phone\n")) {
			t.Errorf("a batch begins %.20q", p)
		}
		n++
		return bytes.ReplaceAll(p, []byte("555"), []byte("[PHONE_1]")), nil
	})
	if err := copyText(batches, strings.NewReader(text)); err != nil || n < 3 {
		t.Fatalf("%d batches, %v", n, err)
	}
	if want := strings.ReplaceAll(text, "555", "[PHONE_1]"); out.String() != want {
		t.Errorf("%d bytes, want %d", out.Len(), len(want))
	}
	batches, _ = output(batchSize, func(p []byte) ([]byte, error) { return p, nil })
	if err := copyText(batches, io.LimitReader(endless{}, 2*maxValueSize)); err == nil || core.AsError(err).Kind != core.KindLimit {
		t.Errorf("an endless line: %v", err)
	}
	batches, out = output(batchSize, nil)
	if err := copyText(batches, io.LimitReader(endless{}, 2*maxValueSize+1)); err != nil || out.Len() != 2*maxValueSize+1 {
		t.Errorf("an endless line of which nothing is hidden: %d, %v", out.Len(), err)
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'x'
	}
	return len(p), nil
}

// TestLargeIsCancelled checks that a large result leaves no file if the program has ended.
func TestLargeIsCancelled(t *testing.T) {
	x, files := execution(nil)
	up := &spooling{}
	up.spooled = &core.SpooledAnswer{
		Result: json.RawMessage(`{"structuredContent":null}`), Parts: []core.SpooledPart{{Index: -1, Member: core.SpooledStructured, Bytes: 3}},
		ReaderAt: strings.NewReader("[1]"), Closer: up,
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := filedAway(ctx, x, core.ToolCall{Server: "git-hub", Tool: "list_issues"}, up.spooled)
	if e := core.AsError(err); e == nil || e.Kind != core.KindCancelled || len(files) > 0 || !up.closed {
		t.Errorf("%v, %d files, closed %v", err, len(files), up.closed)
	}
}

// spooling implements an upstream that returns a result in a file.
type spooling struct {
	recorder
	spooled *core.SpooledAnswer
	closed  bool
}

func (s *spooling) Fetch(context.Context, string, string, json.RawMessage) (json.RawMessage, *core.SpooledAnswer, error) {
	return nil, s.spooled, nil
}

func (s *spooling) Close() error { s.closed = true; return nil }

func TestLargeParts(t *testing.T) {
	const body = `["a\"b",{"x":1}]` + `[1,\"two\"]` + `QUFB`
	for name, tt := range map[string]struct {
		result, want, file string
		parts              []core.SpooledPart
	}{
		"structured": {`{"content":[],"structuredContent":null}`, `{"path":"files/0.jsonl","mimeType":"application/jsonl","bytes":15,"rows":2,"preview":"\"a\\\"b\"\n{\"x\":1}\n"}`, "\"a\\\"b\"\n{\"x\":1}\n", []core.SpooledPart{{Index: -1, Member: core.SpooledStructured, Offset: 0, Bytes: 16}}},
		"text":       {`{"content":[{"type":"text","text":""},{"type":"text","text":"{\"a\": 1}"}]}`, `[{"path":"files/0.jsonl","mimeType":"application/jsonl","bytes":8,"rows":2,"preview":"1\n\"two\"\n"},{"a":1}]`, "1\n\"two\"\n", []core.SpooledPart{{Index: 0, Member: core.SpooledText, Offset: 16, Bytes: 11}}},
		"bytes":      {`{"content":[{"type":"resource","resource":{"uri":"x:y","mimeType":"image/png","blob":""}}]}`, `{"path":"files/0.png","mimeType":"image/png","bytes":3,"preview":"AAA"}`, "AAA", []core.SpooledPart{{Index: 0, Member: core.SpooledBlob, Offset: 27, Bytes: 4}}},
	} {
		t.Run(name, func(t *testing.T) {
			x, files := execution(nil)
			up := &spooling{}
			up.spooled = &core.SpooledAnswer{Result: json.RawMessage(tt.result), Parts: tt.parts, ReaderAt: strings.NewReader(body), Closer: up}
			var notes []string
			x.Reporter = reports{note: func(text string) { notes = append(notes, text) }}
			host, _ := New(up, nil).Open(x)
			got, err := host.Call(t.Context(), core.ToolCall{Server: "git-hub", Tool: "list_issues", Arguments: json.RawMessage(`{"owner":"a","repo":"b"}`)})
			if err != nil || string(got.Value) != tt.want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got.Value, tt.want)
			}
			for path, data := range files {
				if string(data) != tt.file {
					t.Errorf("%s: %q", path, data)
				}
			}
			if !up.closed || len(files) != 1 || len(notes) != 1 {
				t.Errorf("closed %v, %d files, notes %q", up.closed, len(files), notes)
			}
		})
	}
}
