package core

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"
)

// refund returns a waiting question about a call that refunds an amount.
func refund(id, arguments string) Approval {
	q := Question{
		Execution: "x", Code: "for (const r of rows) await billing.refund(r)", Server: "billing", Tool: "refund", Effect: "irreversible",
		Arguments: []byte(arguments), Shown: []byte(strings.ReplaceAll(arguments, "ann@corp.example", "[EMAIL_1]")),
		Impact: &Impact{FilesAffected: []string{id}}, Outlines: []string{"[EMAIL_1] ***@corp.example"},
	}
	return Approval{ID: id, Digest: q.ApprovalDigest(), Expires: time.Unix(int64(100-len(arguments)), 0), Question: q}
}

// TestCallsShareAQuestion checks that calls of one tool become one question with a table of what differs, the exact
// sum of the numbers, and a digest that covers every call.
func TestCallsShareAQuestion(t *testing.T) {
	var waiting []Approval
	for i := range 23 {
		waiting = append(waiting, refund(fmt.Sprint("q", i), fmt.Sprintf(`{"amount":0.1,"invoice_id":%d,"note":"dup","to":"ann@corp.example"}`, 100+i)))
	}
	waiting = append(waiting, refund("other", `{"amount":7,"invoice_id":1,"note":"dup","to":"bob@corp.example"}`))
	list := GroupAlike(waiting)
	if len(list) != 1 || list[0].Count != 24 || len(list[0].Same) != 23 || len(list[0].Rows) != 24 {
		t.Fatalf("%+v", list)
	}
	a := list[0]
	if len(a.Impact.FilesAffected) != 24 || len(waiting[0].Impact.FilesAffected) != 1 || len(a.Outlines) != 1 || !a.Expires.Equal(waiting[0].Expires) {
		t.Errorf("%+v", a)
	}
	text := a.RenderText()
	for _, want := range []string{
		"wants to call billing.refund 24 times (irreversible)", "there are 24 calls, and the answer applies to all 24",
		"arguments of all 24 calls:\n{\n  \"note\": \"dup\"\n}", "       amount  invoice_id  to\n    1  0.1     100         ann@corp.example\n",
		"   24  7       1           bob@corp.example\n", "sum of amount: 9.3\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "sum of invoice_id") {
		t.Error("ids were added up")
	}
	if shown := a.ForModel(); strings.Contains(shown.RenderText(), "ann@") || len(shown.Rows) != 24 {
		t.Error("a model sees personal data")
	}
	changed := append([]Approval{}, waiting...)
	changed[7] = refund("q7", `{"amount":0.2,"invoice_id":107,"note":"dup","to":"ann@corp.example"}`)
	if GroupAlike(changed)[0].Digest == a.Digest {
		t.Error("the digest does not cover the eighth call")
	}
	if GroupAlike(waiting[:23])[0].Digest == a.Digest {
		t.Error("the digest does not cover the last call")
	}
}

// TestAlike checks which fields of two questions about calls may differ if they are decided together.
func TestAlike(t *testing.T) {
	may := map[string]bool{"Arguments": true, "Shown": true, "Outlines": true, "Impact": true, "Discreet": true}
	q := refund("a", `{}`).Question
	for i := range reflect.TypeFor[Question]().NumField() {
		other := q
		name := reflect.TypeFor[Question]().Field(i).Name
		change(reflect.ValueOf(&other).Elem().Field(i))
		if q.IsAlike(other) != (may[name] || name == "Execution") {
			t.Errorf("%s: alike is %v", name, q.IsAlike(other))
		}
	}
	other := q
	if other.Execution, other.Arguments = "y", json.RawMessage(`{"a":1}`); q.IsAlike(other) {
		t.Error("calls of two executions are alike")
	}
	other = q
	if other.Code, other.Arguments = "", json.RawMessage(`{"a":1}`); other.IsAlike(q) {
		t.Error("a call without a program is alike")
	}
}

// TestOddRows checks that arguments that do not fit a table are shown completely.
func TestOddRows(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, c := range map[string]struct {
		calls []string
		want  []string
	}{
		"not objects":     {[]string{`[1]`, `[2]`}, []string{"arguments of call 1:\n[\n  1\n]", "arguments of call 2:"}},
		"twice one name":  {[]string{`{"to":"a","to":"b"}`, `{"to":"c"}`}, []string{`"to": "a"`, `"to": "b"`, `"to": "c"`}},
		"long values":     {[]string{`{"a":1,"text":"` + long + `"}`, `{"a":1,"text":"y"}`}, []string{"arguments of all 2 calls:\n{\n  \"a\": 1\n}", long, "2. {\n  \"text\": \"y\"\n}"}},
		"missing":         {[]string{`{"a":1}`, `{"a":1,"force":true}`}, []string{"     force\n    1  -\n    2  true\n"}},
		"ambiguous":       {[]string{`{"a":"1"}`, `{"a":1}`, `{"a":""}`, `{"a":"-"}`}, []string{`    1  "1"`, "    2  1\n", `    3  ""`, `    4  "-"`}},
		"objects":         {[]string{`{"data":{"Score":1,"kind":"x"}}`, `{"data":{"Score":2,"kind":"x"}}`}, []string{`"data.kind": "x"`, "     data.Score\n    1  1\n    2  2\nsum of data.Score: 3\n"}},
		"names that meet": {[]string{`{"a":{"b":1},"a.b":5}`, `{"a":{"b":2},"a.b":5}`}, []string{`"a.b": 5`, `{"b":1}`, `{"b":2}`}},
		"names over rows": {[]string{`{"a":{"b":1}}`, `{"a":{"c":1},"a.b":9}`}, []string{`{"b":1}`, `{"c":1}`, "9"}},
		"words of JSON":   {[]string{`{"a":"true"}`, `{"a":true}`}, []string{`    1  "true"`, "    2  true\n"}},
		"blank in name":   {[]string{`{"amount  id":"x"}`, `{"amount  id":"y"}`}, []string{`"amount  id"`}},
		"shell":           {[]string{`{"command":"a && b > c","m":1}`, `{"command":"a && b > c","m":2}`}, []string{`"a && b > c"`}},
		"invisible":       {[]string{`{"a":"x\u200b"}`, `{"a":"x"}`}, []string{`    1  "x\u200b"`, "    2  x\n"}},
		"long numbers":    {[]string{`{"n":1e999999999}`, `{"n":2}`}, []string{"1e999999999"}},
		"line breaks":     {[]string{`{"a\nb":"1\n2"}`, `{"a\nb":"x"}`}, []string{`"a\nb"`, `"1\n2"`}},
	} {
		var calls []json.RawMessage
		for _, call := range c.calls {
			calls = append(calls, json.RawMessage(call))
		}
		text := describeRows(calls)
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "sum of n") {
			t.Error("a number that is too long was added up")
		}
	}
}

func FuzzDescribeRows(f *testing.F) {
	f.Add(`{"a":1}`, `{"a":2,"b":"x"}`)
	f.Add(`{"a":-0.10}`, `{"a":1e5}`)
	f.Add(`[`, `{"a":{"a":[1]},"a":2}`)
	f.Fuzz(func(t *testing.T, one, other string) {
		if text := describeRows([]json.RawMessage{json.RawMessage(one), json.RawMessage(other)}); strings.ContainsAny(text, "\u202e\u200b\x1b") {
			t.Errorf("%q", text)
		}
	})
}
