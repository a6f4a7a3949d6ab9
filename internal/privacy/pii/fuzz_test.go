package pii

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// builtin is a Scanner that finds only the built-in types.
var builtin = New(Options{})

// restore replaces each token by the spelling of its value, so that the result must equal the original byte for byte.
func (v *tokens) restore(text []byte) []byte {
	for _, f := range reversed(builtin.FindTokens(nil, text)) {
		x, ok := v.raw[string(text[f.Start:f.End])]
		if !ok {
			continue
		}
		start, end := f.Start, f.End
		if x.Number { // with its quotes, and the backslashes before them
			for start--; start > 0 && text[start-1] == '\\'; start-- {
			}
			end += f.Start - start
		}
		text = append(append(append([]byte{}, text[:start]...), x.Raw...), text[end:]...)
	}
	return text
}

func reversed(fs []TypedSpan) []TypedSpan {
	for i, j := 0, len(fs)-1; i < j; i, j = i+1, j-1 {
		fs[i], fs[j] = fs[j], fs[i]
	}
	return fs
}

// roundTrip replaces the values of a document and restores them. The test fails if the result differs or if valid
// JSON became invalid.
func roundTrip(t *testing.T, s *Scanner, raw []byte) []byte {
	t.Helper()
	v := newTokens()
	in := bytes.Clone(raw)
	out := s.ReplaceValues(in, nil, v)
	if !bytes.Equal(in, raw) {
		t.Fatalf("the input was changed: %q", raw)
	}
	if back := v.restore(bytes.Clone(out)); !bytes.Equal(back, raw) {
		t.Fatalf("\n in  %q\n out %q\nback %q", raw, out, back)
	}
	if bytes.ContainsAny(raw[:min(1, len(raw))], "{[\"") && json.Valid(raw) && !json.Valid(out) {
		t.Fatalf("no JSON any more:\n in %q\nout %q", raw, out)
	}
	return out
}

const everything = `{"contacts":[{"id":12345678901,"first_name":"Hanne","lastName":"M\u00fcller","phone":2125550123,"notes":"Hanne M\u00fcller called;\nx\u0040y.com john%40x.com &#106;oe&#64;x.com","card":"5555555555554444","ip":"10.1.2.3"},
{"id":4539578763621486,"name":"repo","a@b.com":{"ssn":"536-90-4399"}}],"inner":"{\"email\":\"a@b.com\",\"phone\":12125550123,\"in\":\"{\\\"phone\\\":12125550123}\"}","csv":"name,email\nZoe Quux,z@q.com\n\"Ray, Al\",r@q.com\n"}
Dear Anna, +49 30 23125 123 [EMAIL_1] DE89 3704 0044 0532 0130 00 2001:db8::1 password: hun` + `ter2!
| name | email |
|---|---|
| Zoë Quux | z@q.com |
`

// TestCutAtEveryByte checks that a document which is cut at any byte is restored unchanged after its values were
// replaced.
func TestCutAtEveryByte(t *testing.T) {
	s := New(Options{})
	for i := range len(everything) + 1 {
		roundTrip(t, s, []byte(everything[:i]))
		roundTrip(t, s, []byte(everything[i:]))
	}
}

func FuzzText(f *testing.F) {
	f.Add([]byte(everything))
	for _, p := range published {
		f.Add([]byte(p.words + p.text))
	}
	s := New(Options{})
	f.Fuzz(func(t *testing.T, text []byte) {
		end := 0
		for _, x := range s.FindText(nil, text) {
			if x.Start < end || x.End <= x.Start || x.End > len(text) || x.Type == "" {
				t.Fatalf("%v in %d bytes, behind %d", x, len(text), end)
			}
			end = x.End
		}
	})
}

func FuzzReplace(f *testing.F) {
	f.Add([]byte(everything))
	for i := 0; i < len(everything); i += 37 {
		f.Add([]byte(everything[i:]))
	}
	f.Add([]byte(`[["name","email"],["Bob","b@x.com"]]`))
	f.Add([]byte(`{"phone":"\"[PHONE_1]\""}`))
	s := New(Options{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		if !bytes.Contains(raw, []byte("_9")) { // what the test's own vault mints
			roundTrip(t, s, raw)
		}
	})
}

// tellTale is a TokenMinter that records every text passed to Foreign.
type tellTale struct {
	tokens
	foreign []string
}

func (v *tellTale) Foreign(text string) (string, bool) {
	v.foreign = append(v.foreign, text)
	return "(" + text[1:len(text)-1] + ")", true
}

func TestForeignTokensAreReported(t *testing.T) {
	for _, in := range []string{"[EMAIL_1]", "a [NAME_2] b", `{"a":"[EMAIL_1]"}`, `{"email":"[EMAIL_1]"}`, `{"first_name":"[NAME_1]"}`, `{"[EMAIL_1]":1}`, `{"a":"\u005bEMAIL_1]"}`, `{"a":"{\"b\":\"[SSN_4]\"}"}`, "a%5BEMAIL_1%5D", "name,email\nx,[EMAIL_1]\n", `{"phone":"call [PHONE_1]"}`} {
		v := &tellTale{tokens: *newTokens()}
		if out := New(Options{}).ReplaceValues([]byte(in), nil, v); len(v.foreign) != 1 || bytes.Contains(out, []byte(v.foreign[0])) {
			t.Errorf("%s: got %s, told of %q", in, out, v.foreign)
		}
	}
	for _, in := range []string{"[x_1]", "[EMAIL_]", "[EMAIL1]", "[FOO_1]", "EMAIL_1", "[EMAIL_1"} {
		v := &tellTale{tokens: *newTokens()}
		if New(Options{}).ReplaceValues([]byte(in), nil, v); len(v.foreign) != 0 {
			t.Errorf("%s: told of %q", in, v.foreign)
		}
	}
}

// hostile lists texts that, when repeated, could make a scanner look far ahead or back for each byte.
var hostile = []string{"@", "a@", "a@a", "a.", "a@a.", "aaaa", "1", "1 ", "1-", "1.1.", "+1", "(1", "((", "::", "a:", "0:", ":a", "://", "://a:", "://a:b", "[", "{", `{"a":`, `["`, `"\`, `\u00`, "%4", "%40", "&#", "&#6", "-----BEGIN PRIVATE KEY", "-----BEGIN RSA PRIVATE KEY-----\n",
	"eyJ", "sk-", "ghp_", "DE89 ", "DE893704", "A ", "Aa ", "Dear ", "Dear A", "Inc ", "A Inc", "van der ", "born ", "born 1", "password:", "password: a", "name,email\n", "|a|\n|-|\n", "a,b\n", "a,\"b\n", "\"", "é", "é@", "\xff", "\xe2", "\xc2", "1111 1111 ", "4111 ", "0x", "bc1", "[EMAIL_", "[EMAIL_1]", `{"name":"Al Bo",`, `{"a":{"a":`, "\n{", "\n[", "[1,\n", "Anna ", "<a@b.co> ", "Anna <"}

// TestRandomDocumentsComeBack checks that random mixes of personal values, JSON fragments and hostile texts are
// restored unchanged after replacement.
func TestRandomDocumentsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := New(Options{})
	pieces := append([]string{`"`, `\"`, `{"email":"`, `"}`, `,`, "\n", " ", `\u0040`, `\\`, `{"phone":`, `}`, `]`}, hostile...)
	for range 3000 {
		var b strings.Builder
		for range r.IntN(30) {
			if r.IntN(3) == 0 {
				b.WriteString(published[r.IntN(len(published))].text)
			} else {
				b.WriteString(pieces[r.IntN(len(pieces))])
			}
		}
		roundTrip(t, s, []byte(b.String()))
	}
}

func TestLockFilesAreClean(t *testing.T) {
	s := New(Options{})
	total := 0
	for _, name := range []string{"npm", "npm22", "npm-runtimes"} {
		raw, err := os.ReadFile("../../../testdata/" + name + "/package-lock.json")
		if err != nil {
			t.Fatal(err)
		}
		total += len(raw)
		v := newTokens()
		s.ReplaceValues(raw, nil, v)
		for _, x := range v.all {
			t.Errorf("%s: %s %q", name, x.Type, x.Text)
		}
	}
	raw, err := os.ReadFile("../../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range s.FindText(nil, raw) {
		t.Errorf("go.sum: %s %q", f.Type, raw[f.Start:f.End])
	}
	t.Logf("%d bytes", total+len(raw))
}
