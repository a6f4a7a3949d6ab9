package report

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
)

const personal = "Quirinus Wachtmeister"

// hides replaces the test's personal value in a text. Like a real filter, it does not recognise parts of the value.
func hides(text string) string { return strings.ReplaceAll(text, personal, "[NAME_1]") }

// seen fails the test if an Outcome contains the personal value or a part of it.
func seen(t *testing.T, o core.Outcome, what string) {
	t.Helper()
	told, _ := json.Marshal(o)
	for n := 4; n <= len(personal); n++ {
		for i := 0; i+n <= len(personal); i += len(personal) - n {
			if part := personal[i : i+n]; strings.Contains(string(told), part) {
				at := strings.Index(string(told), part)
				t.Fatalf("%s: the model sees %q in …%s…", what, part, told[max(0, at-40):min(len(told), at+40)])
			}
			if n == len(personal) {
				break
			}
		}
	}
}

// TestNothingPersonalIsCut checks that no part of a personal value remains where a value, output or error is cut.
func TestNothingPersonalIsCut(t *testing.T) {
	for shift := range 64 {
		pad := strings.Repeat("x", shift)
		long := pad + strings.Repeat(" of "+personal, 4000)
		text, _ := json.Marshal(long)
		row := fmt.Sprintf(`{"pad":%q,"name":%q,"note":%q}`, pad, personal, strings.Repeat(personal+". ", 40))
		array := "[" + strings.Repeat(row+",", 400) + row + "]"
		for name, r := range map[string]sandbox.RunReport{
			"text":   {Value: text},
			"array":  {Value: json.RawMessage(array)},
			"object": {Value: json.RawMessage(`{"name":"` + personal + `","rows":` + array + `,"` + pad + personal + `":1}`)},
			"wide":   {Value: json.RawMessage("[{\"a\":" + string(text) + "}," + strings.TrimSuffix(strings.Repeat("1,", 4000), ",") + "]")},
			"output": {Output: []byte(long)},
			"error":  {Status: core.StatusError, Error: &core.Error{Kind: core.KindRuntime, Message: long, Stack: long}},
		} {
			o := MakeOutcome(r, Options{ID: "x1", MaxTokens: 400 + shift, Files: shelf{}, Hide: hides})
			o.Output, o.Result = hides(o.Output), json.RawMessage(hides(string(o.Result)))
			if len(o.Result) == 0 {
				o.Result = nil
			}
			if o.Error != nil {
				o.Error.Message, o.Error.Stack = hides(o.Error.Message), hides(o.Error.Stack)
			}
			for i := range o.Artifacts {
				o.Artifacts[i].Preview = hides(o.Artifacts[i].Preview)
			}
			seen(t, o, name)
		}
	}
}

// TestStoppedOutput checks that the output of a stopped program contains its complete lines, but no part of a
// personal value at its end.
func TestStoppedOutput(t *testing.T) {
	line := "one\nof " + personal
	for cut := range len(line) + 1 {
		o := MakeOutcome(sandbox.RunReport{Status: core.StatusOutputLimit, Output: []byte(line[:cut])}, Options{MaxTokens: 2000, Hide: hides})
		o.Output = hides(o.Output)
		seen(t, o, line[:cut])
		if cut >= 4 && !strings.HasPrefix(o.Output, "one\n") {
			t.Errorf("lines that had ended are gone: %q", o.Output)
		}
	}
	if o := MakeOutcome(sandbox.RunReport{Status: core.StatusTimeout, Output: []byte("no line")}, Options{MaxTokens: 2000}); o.Output != "no line" {
		t.Errorf("nothing is hidden, and something is held back: %q", o.Output)
	}
}

func TestColumns(t *testing.T) {
	var rows []string
	for i := range 40 {
		optional := ""
		if i%4 == 0 {
			optional = `,"tags":["a","b"],"at":null`
		}
		rows = append(rows, fmt.Sprintf(`{"id":%d.5, "state":%q, "day":"2026-01-%02dT10:00:00Z", "owner":"%s", "long":%q, "mixed":%v%s}`,
			i, []string{"open", "closed", "open"}[i%3], i%28+1, personal, strings.Repeat("é", 50+i), []any{1, true}[i%2], optional))
	}
	got := previewMaker{hides}.previewValue([]byte("["+strings.Join(rows, " ,\n")+"]"), 4000)
	want := `array of 40 objects, one per line
id (number, 0.5 to 39.5, 40 distinct)
state (string, "open" × 27, "closed" × 13)
day (string, "2026-01-01T10:00:00Z" to "2026-01-28T10:00:00Z", 28 distinct)
owner (string, "[NAME_1]" × 40)
long (string, 40 distinct, up to 89 characters)
mixed (boolean | number, 1 × 20, true × 20)
tags? (array, up to 2 items, in 10)
at? (null, in 10)
first: `
	if !strings.HasPrefix(got, want) {
		t.Errorf("%s", got)
	}
}

// TestObjectAroundAnArray checks that the preview of an object which consists mainly of an array describes the array.
func TestObjectAroundAnArray(t *testing.T) {
	got := plain.previewValue([]byte(`{"total":3000,"rows":`+rows(3000)+`,"more":[1,2]}`), 400)
	for _, want := range []string{"object with 3 keys\n", "total: 3000\n", "more (array of 2 numbers)\n", "rows is an array of 3000 objects\nid (number, 0 to 2999", "\nlast: {\"id\":2999"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
