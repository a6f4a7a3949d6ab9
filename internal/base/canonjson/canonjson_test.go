package canonjson

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestMarshal(t *testing.T) {
	for in, want := range map[string]string{
		`{"b": 1, "a": [1, 2 ]}`:                `{"a":[1,2],"b":1}`,
		` {"a":{"d":null,"c":true}} `:           `{"a":{"c":true,"d":null}}`,
		`{"n":12345678901234567890.10,"m":1e2}`: `{"m":1e2,"n":12345678901234567890.10}`,
		`"\u003cb\u003e & \u0061\/"`:            `"<b> & a/"`,
		`[]`:                                    `[]`,
		`{}`:                                    `{}`,
		"\"\u2028\"":                            `"\u2028"`,
		`"\ud83d\ude00"`:                        `"😀"`,
		`{"a":1,"A":2}`:                         `{"A":2,"a":1}`,
		strings.Repeat("[", 900) + strings.Repeat("]", 900): strings.Repeat("[", 900) + strings.Repeat("]", 900),
	} {
		if got, err := MarshalCanonical(json.RawMessage(in)); err != nil || string(got) != want {
			t.Errorf("%s: %s, %v, want %s", in, got, err, want)
		}
	}
}

// TestAmbiguous checks that MarshalCanonical rejects JSON that servers could interpret in different ways.
func TestAmbiguous(t *testing.T) {
	for _, in := range []string{
		``, `{`, `{} {}`, `1 2`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[{"x":{"a":1,"a":1}}]`, `"\ud800"`, `{"\udc00":1}`,
		"\"\xff\"", "{\"\xc3\x28\":1}",
	} {
		if got, err := MarshalCanonical(json.RawMessage(in)); err == nil {
			t.Errorf("%q: %s", in, got)
		}
		if got := OrRaw(json.RawMessage(in)); string(got) != in {
			t.Errorf("%q became %s", in, got)
		}
	}
}

// TestNormalize checks that MarshalOrKeep makes ambiguous JSON unambiguous and leaves text that is not JSON
// unchanged.
func TestNormalize(t *testing.T) {
	for in, want := range map[string]string{
		`{"b":1, "a":2, "b":3}`: `{"a":2,"b":3}`, `nonsense`: `nonsense`, `{ "a": [1.50, "<"] }`: `{"a":[1.50,"<"]}`,
	} {
		if got := string(MarshalOrKeep(json.RawMessage(in))); got != want {
			t.Errorf("%s became %s, want %s", in, got, want)
		}
	}
}

func FuzzMarshal(f *testing.F) {
	for _, s := range []string{`{"b":1,"a":"<"}`, `[1.0,"é"]`, `{"a":1,"a":2}`, `"\ud800"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		c, err := MarshalCanonical(json.RawMessage(s))
		if err != nil {
			return
		}
		again, err := MarshalCanonical(c)
		if err != nil || string(again) != string(c) {
			t.Errorf("%q: %s, then %s, %v", s, c, again, err)
		}
		var a, b any
		if json.Unmarshal([]byte(s), &a) != nil || json.Unmarshal(c, &b) != nil {
			return // a number that a float64 cannot hold
		}
		x, _ := json.Marshal(a)
		y, _ := json.Marshal(b)
		if string(x) != string(y) {
			t.Errorf("%q changed its value: %s", s, c)
		}
	})
}
