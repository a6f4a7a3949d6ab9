package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/tokens"
)

type shelf map[string]string

func (s shelf) Write(name string, data []byte) error {
	if s == nil {
		return errors.New("the disk is full")
	}
	s[name] = string(data)
	return nil
}

func rows(n int) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(`{"id":%d,"name":"Müller %d","note":null}`, i, i)
	}
	return "[" + strings.Join(items, ",") + "]"
}

func TestSmallResultsComeBackAsTheyAre(t *testing.T) {
	files := shelf{}
	value := `{"z":12345678901234567890,"a":[1.0,"é"]}`
	o := MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(value), Output: []byte("hello\n")}, Options{ID: "x1", MaxTokens: 2000, Files: files})
	if string(o.Result) != value || o.Output != "hello\n" || len(o.Artifacts)+len(o.Warnings)+len(files) != 0 {
		t.Errorf("%+v %v", o, files)
	}
}

func TestLargeResultsGoToFilesWhole(t *testing.T) {
	text, _ := json.Marshal(strings.Repeat("größer 東京\n", 5000))
	for _, c := range []struct {
		name, value, path string
		preview           []string
	}{
		{"array of objects", rows(5000), "results/x1.jsonl", []string{"array of 5000 objects, one per line", "id (number, 0 to 4999, 1000+ distinct)\nname (string, 1000+ distinct)\nnote (null)\n", `first: {"id":0`, `last: {"id":4999`}},
		{"object", `{"total":3,"rows":` + rows(3000) + `,"text":` + string(text) + `}`, "results/x1.json", []string{"object with 3 keys", "total: 3", "rows (array of 3000 objects {id, name, note})", "text (string of"}},
		{"text", string(text), "results/x1.txt", []string{"text of 50000 characters, 5001 lines", "größer 東京", "… of "}},
		{"numbers", "[" + strings.Repeat("12345,", 5000) + "1]", "results/x1.jsonl", []string{"array of 5001 numbers, one per line", "number, 1 to 12345, 12345 × 5000, 1 × 1", "first: 12345", "last: 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			files := shelf{}
			o := MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(c.value)}, Options{ID: "x1", MaxTokens: 2000, Files: files})
			if o.Result != nil || len(o.Artifacts) != 1 || o.Artifacts[0].Path != c.path {
				t.Fatalf("%+v", o)
			}
			if want := whole(c.value); files[c.path] != want || o.Artifacts[0].Bytes != int64(len(want)) {
				t.Error("the file does not hold the whole value")
			}
			for _, want := range c.preview {
				if !strings.Contains(o.Artifacts[0].Preview, want) {
					t.Errorf("the preview lacks %q:\n%s", want, o.Artifacts[0].Preview)
				}
			}
			within(t, o, 2000)
		})
	}
}

func whole(value string) string {
	var text string
	var items []json.RawMessage
	switch {
	case json.Unmarshal([]byte(value), &text) == nil:
		return text
	case json.Unmarshal([]byte(value), &items) == nil:
		for _, item := range items {
			text += string(item) + "\n"
		}
		return text
	}
	return value
}

// within fails the test if an Outcome has more tokens than limit, plus a fixed allowance for everything other than
// result and output.
func within(t *testing.T, o core.Outcome, limit int) {
	t.Helper()
	if n := CountReturned(o); n > limit+400 {
		t.Errorf("the outcome has %d tokens, the limit is %d", n, limit)
	}
	if text, err := json.Marshal(o); err != nil || !utf8.Valid(text) {
		t.Errorf("the outcome is not clean JSON: %v", err)
	}
}

func TestResultAndOutputShareTheLimit(t *testing.T) {
	files := shelf{}
	output := strings.Repeat("line of output\n", 20000)
	o := MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(rows(60)), Output: []byte(output)}, Options{ID: "x1", MaxTokens: 2000, Files: files})
	if o.Result == nil || files["results/x1.output.txt"] != output {
		t.Errorf("the result must stay, the output must be kept whole: %.200s", o.Result)
	}
	within(t, o, 2000)

	o = MakeOutcome(sandbox.RunReport{Status: core.StatusTimeout, Value: json.RawMessage(rows(9000)), Output: []byte(output)}, Options{ID: "x2", MaxTokens: 2000, Files: files})
	if len(o.Artifacts) != 2 || !strings.Contains(o.Output, "… of ") {
		t.Errorf("%+v", o)
	}
	within(t, o, 2000)
}

func TestAFullDiskLosesNoPreview(t *testing.T) {
	o := MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(rows(5000))}, Options{ID: "x1", MaxTokens: 2000, Files: shelf(nil)})
	if len(o.Warnings) != 1 || !strings.Contains(o.Warnings[0], "the disk is full") || !strings.Contains(o.Artifacts[0].Preview, "5000 objects") {
		t.Errorf("%+v", o)
	}
}

func TestHostileReports(t *testing.T) {
	o := MakeOutcome(sandbox.RunReport{Status: core.StatusOK, Value: json.RawMessage(`{"a":`), Output: []byte("a\xff\xfeb")}, Options{ID: "x1", MaxTokens: 2000, Files: shelf{}})
	if o.Status != core.StatusError || o.Error.Kind != core.KindInternal || o.Result != nil || o.Output != "a\uFFFDb" {
		t.Errorf("%+v", o)
	}
	o = MakeOutcome(sandbox.RunReport{Status: core.StatusError, Error: &core.Error{Kind: core.KindRuntime, Message: strings.Repeat("é", 1<<20)}}, Options{ID: "x1", MaxTokens: 2000, Files: shelf{}})
	within(t, o, 4000)
}

var plain = previewMaker{func(s string) string { return s }}

func FuzzPreview(f *testing.F) {
	f.Add(`[{"a":1},{"b":null}]`, 100)
	f.Add(`{"a":[],"b":"x"}`, 3)
	f.Add(`"text"`, 0)
	f.Fuzz(func(t *testing.T, value string, limit int) {
		if !json.Valid([]byte(value)) || limit < 0 || limit > 10000 {
			t.Skip()
		}
		if p := plain.previewValue([]byte(value), limit); tokens.CountTokens(p) > limit+1 {
			t.Errorf("preview of %q has %d tokens, limit %d", value, tokens.CountTokens(p), limit)
		}
	})
}
