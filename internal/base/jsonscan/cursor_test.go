package jsonscan

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzCursor checks that a Cursor finds the same values in valid JSON as encoding/json. In text that is not valid
// JSON, it must never read outside of the text.
func FuzzCursor(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	for _, d := range []string{`{"a":1,"b":[2,{"c":"]"}],"a":"\\\""}`, `[1,"\",",[],{},null,"x\\"]`, `{"a`, `[`, `["\`, `{"a":}`, `[,]`, `{"a":1 "b":2}`} {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c := Cursor{Text: text}
		ended := c.SkipValue()
		if c.At > len(text) {
			t.Fatalf("the offset %d is outside of %q", c.At, text)
		}
		for range Items(text) { // it must not panic
		}
		for range Members(text) { // nor must this
		}
		if !json.Valid(text) {
			return
		}
		if c.Next(); !ended || c.At != len(text) {
			t.Fatalf("%q: a value ends at %d", text, c.At)
		}
		sameItems(t, text)
		sameMembers(t, text)
	})
}

func sameItems(t *testing.T, text []byte) {
	var want []json.RawMessage
	if json.Unmarshal(text, &want) != nil || bytes.TrimSpace(text)[0] != '[' {
		return
	}
	i := 0
	for item := range Items(text) {
		if i >= len(want) || !bytes.Equal(item, bytes.TrimSpace(want[i])) {
			t.Fatalf("%q: item %d is %q", text, i, item)
		}
		i++
	}
	if i != len(want) {
		t.Fatalf("%q: %d items", text, i)
	}
}

func sameMembers(t *testing.T, text []byte) {
	var want map[string]json.RawMessage
	if json.Unmarshal(text, &want) != nil || bytes.TrimSpace(text)[0] != '{' {
		return
	}
	got := map[string][]byte{}
	for key, value := range Members(text) {
		name, ok := Unquote(string(key))
		if !ok {
			t.Fatalf("%q: key %q", text, key)
		}
		got[name] = value
	}
	for name, value := range want {
		if !bytes.Equal(got[name], bytes.TrimSpace(value)) {
			t.Fatalf("%q: %q is %q", text, name, got[name])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%q: %d members", text, len(got))
	}
}

// FuzzUnquote checks that Unquote accepts the same strings as encoding/json and decodes them to the same text.
func FuzzUnquote(f *testing.F) {
	for _, s := range []string{
		``, `a`, `a\"b`, `\u00e9\ud83d\ude00`, `\ud800x`, `\ud800\u0041`, `\ud800\`, `\ud800\ud800\udc00`, `\\\\n`, `\n\t\r\b\f\/`, `x\udc00`,
		`\x`, `\u12`, `\u12g4`, "\x01", "\xff", `\u00e9` + "\xe2\x82", "\xc3" + `\u00a9`, `a"b`, `\`, "é\u2028",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		quoted := `"` + s + `"`
		var want string
		err := json.Unmarshal([]byte(quoted), &want)
		if got, ok := Unquote(quoted); ok != (err == nil) || got != want {
			t.Fatalf("%q: %q %v, want %q %v", quoted, got, ok, want, err)
		}
	})
}

func FuzzIsNumber(f *testing.F) {
	for _, s := range []string{"", "-", "0", "01", "-0.5e+10", "1.", "1e", "1E-3", " 1", "1 ", "+1", "0x1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var n json.Number
		want := len(s) > 0 && (s[0] == '-' || '0' <= s[0] && s[0] <= '9') && !bytes.ContainsAny([]byte(s), " \t\r\n") &&
			json.Unmarshal([]byte(s), &n) == nil
		if got := IsNumber(s); got != want {
			t.Fatalf("%q: %v, want %v", s, got, want)
		}
	})
}

func TestStringEnd(t *testing.T) {
	for text, want := range map[string]struct {
		end     int
		escaped bool
	}{
		`abc"`: {3, false}, `abcdefghijkl"x`: {12, false}, `a\"b"`: {4, true}, `abcdefg\"hijklmnop\\"`: {20, true}, `abc`: {3, false}, `ab\`: {3, true}, ``: {0, false},
	} {
		if end, escaped := StringEnd([]byte(text), 0); end != want.end || escaped != want.escaped {
			t.Errorf("%q: %d %v", text, end, escaped)
		}
	}
}
