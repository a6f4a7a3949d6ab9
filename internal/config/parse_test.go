package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

type jsonText = json.RawMessage

func TestParseJSON(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{`{}`, `{}`},
		{"\ufeff {\"a\": [1, 2.50, -0, 1e99,],} // end", `{"a":[1,2.50,-0,1e99]}`},
		{`/* a */ [ /**/ true , false, null, // x` + "\n]", `[true,false,null]`},
		{`{"b": 9007199254740993, "a": "\u00fc\ud83d\ude00\n\/", "b": 2}`, `{"b":9007199254740993,"a":"ü😀\n/","b":2}`},
		{`"\ud800"`, `"` + "\ufffd" + `"`},
		{`"\ud800\u0041"`, `"` + "\ufffd" + `A"`},
		{`["// no comment", "/* none */"]`, `["// no comment","/* none */"]`},
	} {
		n, err := parseJSON([]byte(tt.src))
		if err != nil {
			t.Errorf("%s: %v", tt.src, err)
			continue
		}
		if got := string(n.appendJSON(nil)); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.src, got, tt.want)
		}
	}
}

func TestParseJSONErrors(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"", "1:1: the file is empty; it must contain at least {}"},
		{"{\n  'a': 1}", `2:3: expected a value, found '\''; strings need double quotes`},
		{"{\"a\" 1}", `1:6: expected : after the key, found '1'`},
		{"{\"a\": 1\n \"b\": 2}", `2:2: expected a comma or }, found '"'`},
		{"{\"ü\": [1, 2}", `1:12: expected a comma or ], found '}'`},
		{"{\"a\": {\n", "1:7: the bracket that opens here lacks its }"},
		{`{"a": }`, `1:7: expected a value, found '}'`},
		{`{"a":`, "1:1: the bracket that opens here lacks its }"},
		{`[yes]`, "1:2: expected a value, found yes; strings need double quotes"},
		{`[01]`, "1:2: 01 is not a number"},
		{`[1.]`, "1:2: 1. is not a number"},
		{`[,]`, `1:2: expected a value, found ','`},
		{`[1,,]`, `1:4: expected a value, found ','`},
		{"[\"a\nb\"]", `1:4: the line ends inside a string; write \n for a line break`},
		{"[\"a\tb\"]", `1:4: control character '\t' inside a string; write it as an escape`},
		{`["C:\Users"]`, `1:5: unknown escape in a string; a backslash itself is written \\`},
		{`["\u12g4"]`, `1:3: unknown escape in a string; a backslash itself is written \\`},
		{`["abc]`, "1:2: the string that begins here lacks its closing quote"},
		{"[1] /* x", "1:5: the comment that begins here is not closed"},
		{"{} {}", "1:4: unexpected text after the end of the value: '{'"},
		{"[\"\xff\"]", "1:3: the file is not UTF-8"},
		{"{1: 2}", "1:2: expected a key in double quotes or }, found '1'"},
		{"// only\n", "1:1: the file is empty; it must contain at least {}"},
		{"[1, // \u2028\n2]", `1:8: invalid character '\u2028' in line comment`},
		{"\"x\" /", "1:5: unexpected text after the end of the value: '/'"},
		{"[" + strings.Repeat("1,", maxNodes) + "1]", "1:2097151: the file has more than 1048576 values"},
		{strings.Repeat("[", 500), "1:202: values are nested more than 200 deep"},
	} {
		_, err := parseJSON([]byte(tt.src))
		if err == nil || err.Error() != tt.want {
			t.Errorf("%.40q: got %v, want %s", tt.src, err, tt.want)
		}
	}
}

func TestPositions(t *testing.T) {
	j, err := parseJSON([]byte("{\n  // c\n  \"ü\": {\"b\": [1,\n    true]}\n}"))
	if err != nil {
		t.Fatal(err)
	}
	y, err := parseYAML([]byte("# c\n\"ü\":\n  b:\n    - 1\n    - true\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		root *valueNode
		want [4][2]int // key, inner key, first item, second item
	}{
		{j, [4][2]int{{3, 3}, {3, 9}, {3, 15}, {4, 5}}},
		{y, [4][2]int{{2, 1}, {3, 3}, {4, 7}, {5, 7}}},
	} {
		inner := tt.root.findEntry("ü").value.findEntry("b")
		got := [4][2]int{}
		for i, n := range []*valueNode{tt.root.findEntry("ü").key, inner.key, inner.value.items[0], inner.value.items[1]} {
			got[i] = [2]int{n.line, n.column}
		}
		if got != tt.want {
			t.Errorf("got %v, want %v", got, tt.want)
		}
	}
}

func TestParseYAML(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"", `null`},
		{"# nothing\n---\n", `null`},
		{"a: 1\nb: {c: [x, 'y', 0.5, 0x10, 1_000], d: null}\ne:\n", `{"a":1,"b":{"c":["x","y",0.5,16,1000],"d":null},"e":null}`},
		{"a: |\n  two\n  lines\nb: >-\n  one\n  line\n", `{"a":"two\nlines\n","b":"one line"}`},
		{"a: &x [1]\nb: *x\n", `{"a":[1],"b":[1]}`},
		{"1: on\ntrue: yes", `{"1":"on","true":"yes"}`},
		{"- 512MB\n- 1 core\n- 10.0.0.0/8\n- 100/minute\n- 10m", `["512MB","1 core","10.0.0.0/8","100/minute","10m"]`},
	} {
		n, err := parseYAML([]byte(tt.src))
		if err != nil {
			t.Errorf("%q: %v", tt.src, err)
			continue
		}
		if got := string(n.appendJSON(nil)); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.src, got, tt.want)
		}
	}
}

func TestParseYAMLErrors(t *testing.T) {
	for _, tt := range []struct{ src, want string }{
		{"a: &x {b: 1}\nc:\n  <<: *x\n", "3:3: merge keys are not supported; write out the keys"},
		{"a: *nope\n", "1:4: there is no anchor &nope earlier in the file"},
		{"a: &x [*x]\n", "1:8: there is no anchor &x earlier in the file"},
		{"a: !!set {}\n", "1:4: tags are not supported; write the plain value"},
		{"a: .inf\n", "1:4: infinity and NaN are not supported"},
		{"a: 1\n---\nb: 2\n", "3:1: a second YAML document begins here; settings must be one document"},
		{"a: [1, 2\n", ""},
		{"a: 'x\n", ""},
		{"a: 1\n b: 2\n", ""},
	} {
		_, err := parseYAML([]byte(tt.src))
		var e *syntaxError
		if !errors.As(err, &e) || e.line < 1 || tt.want != "" && err.Error() != tt.want {
			t.Errorf("%q: got %v, want %s", tt.src, err, tt.want)
		}
	}
}

// TestAliasesShare checks that YAML aliases share nodes instead of copying them, so that nested aliases ("billion
// laughs") need little memory.
func TestAliasesShare(t *testing.T) {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := 1; i < 30; i++ {
		ref := "*a" + string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
		if i == 1 {
			ref = "*a0"
		}
		name := "a" + string(rune('0'+i/10)) + string(rune('0'+i%10))
		b.WriteString(name + ": &" + name + " [" + strings.Repeat(ref+", ", 9) + ref + "]\n")
	}
	if _, err := parseYAML([]byte(b.String())); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseSettings("x", "", []byte(b.String()), nil); err == nil || len(err.Error()) > 10_000 {
		t.Errorf("got %v", err)
	}
}

func TestExpand(t *testing.T) {
	env := map[string]string{"A": "1", "EMPTY": "", "DOLLAR": "${A}", "userHome": "mine"}
	v := variableLookup{
		getenv:  func(name string) (string, bool) { s, ok := env[name]; return s, ok },
		builtin: map[string]string{"workspaceFolder": "/w", "userHome": "/h"},
	}
	for _, tt := range []struct{ in, want, err string }{
		{in: "plain $A $ {x} }", want: "plain $A $ {x} }"},
		{in: "<${A}${A}>", want: "<11>"},
		{in: "${env:A}", want: "1"},
		{in: "${EMPTY}", want: ""},
		{in: "${EMPTY:-d}", want: "d"},
		{in: "${NO:-}", want: ""},
		{in: "${NO:-a:-b}", want: "a:-b"},
		{in: "${NO:-${A}x}", want: "1x"},
		{in: "${NO:-${NO2:-deep}}!", want: "deep!"},
		{in: "${DOLLAR}", want: "${A}"},
		{in: "$${A} $$${A}", want: "${A} $${A}"},
		{in: "${workspaceFolder}/${userHome}", want: "/w/mine"},
		{in: "${NO}", err: "the variable NO is not set"},
		{in: "${A", err: "${A has no closing }"},
		{in: "${NO:-${A}", err: "${NO:-${A} has no closing }"},
		{in: "${}", err: "${} does not name a variable; a plain ${ is written $${"},
		{in: "${a b}", err: "${a b} does not name a variable; a plain ${ is written $${"},
		{in: "${1A}", err: "${1A} does not name a variable; a plain ${ is written $${"},
		{in: "${input:key}", err: "${input:key} asks a person, which only an editor can do; use ${VAR} and an environment variable"},
		{in: strings.Repeat("${N:-", 40) + strings.Repeat("}", 40), err: "defaults of variables are nested too deeply"},
	} {
		got, err := v.expandText(tt.in)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if got != tt.want || said != tt.err {
			t.Errorf("%s: got %q, %q", tt.in, got, said)
		}
	}
}

func TestUnits(t *testing.T) {
	for s, want := range map[string]int64{
		"0": 0, "1": 1, "4096 bytes": 4096, "1k": 1 << 10, "512MB": 512 << 20, " 512 mb ": 512 << 20, "1GiB": 1 << 30, "1.5g": 3 << 29, "2T": 2 << 40,
		"": -1, "MB": -1, "-1": -1, "1e3": -1, "1 pb": -1, "1..5MB": -1, ".": -1, "0x10": -1, "NaN": -1, "1MB 2MB": -1, "9223372036854775808": -1, "99999999TB": -1,
	} {
		got, ok := parseSize(s)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("parseSize(%q) = %d, %v", s, got, ok)
		}
	}
	for s, want := range map[string]time.Duration{
		"30000": 30 * time.Second, "10m": 10 * time.Minute, "1h30m": 90 * time.Minute, "1.5 hours": 90 * time.Minute, " 1 min 5 s ": 65 * time.Second, "2d": 48 * time.Hour, "250ms": 250 * time.Millisecond,
		"": -1, "m": -1, "1h 30": -1, "5 5": -1, "-5s": -1, "1y": -1, "10m!": -1, "999999999d": -1, "1e9": -1,
	} {
		got, ok := parseDuration(s)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("parseDuration(%q) = %v, %v", s, got, ok)
		}
	}
	for s, want := range map[string]float64{"1 core": 1, "2 cores": 2, "0.5": 0.5, "4": 4, "one": -1, "1 GB": -1, "-1": -1} {
		got, ok := parseCores(s)
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("parseCores(%q) = %v, %v", s, got, ok)
		}
	}
	for s, want := range map[string]Rate{
		"100/minute": {100, time.Minute}, "5 / s": {5, time.Second}, "1/Hour": {1, time.Hour}, "7/day": {7, 24 * time.Hour},
		"100": {}, "100/": {}, "/s": {}, "1.5/s": {}, "1/week": {}, "99999999999999999999/s": {},
	} {
		got, ok := parseRate(s)
		if ok != (want != Rate{}) || ok && got != want {
			t.Errorf("parseRate(%q) = %v, %v", s, got, ok)
		}
		if again, _ := parseRate(got.String()); ok && again != want {
			t.Errorf("Rate %q reads back as %v", got, again)
		}
	}
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a": [1, "x\u00fc", {"b": null}], "a": 1}`, "// c\n{\"a\": 1, /* d */ }", `["\ud800"]`, "\ufeff[]", `{"a":`, "\"\xff\""} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		n, err := parseJSON(src)
		if err != nil {
			var e *syntaxError
			if !errors.As(err, &e) || e.line < 1 || e.column < 1 {
				t.Fatalf("error without a position: %v", err)
			}
			// What the standard library reads must be read, but for bounds and UTF-8.
			if json.Valid(src) && !strings.Contains(err.Error(), "UTF-8") && !strings.Contains(err.Error(), "more than") {
				t.Fatalf("refused valid JSON: %v", err)
			}
			return
		}
		out := n.appendJSON(nil)
		if !json.Valid(out) {
			t.Fatalf("wrote invalid JSON %s", out)
		}
		if json.Valid(src) && !same(t, src, out) {
			t.Fatalf("read %s as %s", src, out)
		}
	})
}

func same(t *testing.T, a, b []byte) bool {
	decode := func(src []byte) (v any) {
		d := json.NewDecoder(bytes.NewReader(src))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatal(err)
		}
		return v
	}
	return reflect.DeepEqual(decode(a), decode(b))
}

func FuzzExpand(f *testing.F) {
	for _, s := range []string{"${A}", "${A:-${B:-c}}", "$${", "${", "}${env:A}", "${input:x}"} {
		f.Add(s, "value")
	}
	f.Fuzz(func(t *testing.T, s, value string) {
		v := variableLookup{getenv: func(name string) (string, bool) { return value, name != "B" }}
		got, err := v.expandText(s)
		if err == nil && !strings.Contains(s, "${") && got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

func FuzzUnits(f *testing.F) {
	for _, s := range []string{"512MB", "1h30m", "0.5", "1 core", "100/minute", "9e99", "..", "١"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := parseSize(s); ok {
			if again, ok := parseSize(showSize(n)); n < 0 || !ok || n <= 1<<53 && again != n {
				t.Fatalf("%q is %d, which reads back as %d", s, n, again)
			}
		}
		if d, ok := parseDuration(s); ok && d < 0 {
			t.Fatalf("%q is %v", s, d)
		}
		if c, ok := parseCores(s); ok && !(c >= 0) {
			t.Fatalf("%q is %v", s, c)
		}
		if r, ok := parseRate(s); ok && r.Per <= 0 {
			t.Fatalf("%q is %v", s, r)
		}
	})
}

func FuzzSettings(f *testing.F) {
	for _, s := range []string{
		"enabled: true\nresourceLimits: {memory: 512MB}\n", "a: &x [*x]", "network: {whitelist: [x, {domain: y}]}", "servers: {a: {allow: [\"*\"]}}",
		"toolDefinitions: [a]\nsearch: {embeddings: {url: 'http://x', model: y}}", "pii: {modes: {email: off}}", "- 1\n-", "? a\n: b", "a: |\n", "%YAML 1.2\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		s, err := ParseSettings("retort.yaml", "/p", src, nil)
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) || len(ps) == 0 || ps[0].File != "retort.yaml" || ps[0].Line < 1 {
				t.Fatalf("error without a position: %v", err)
			}
			return
		}
		l := s.ExecutionLimits()
		if l.Timeout <= 0 || l.Memory <= 0 || l.CPU <= 0 || l.Disk <= 0 || l.Processes <= 0 || l.Output <= 0 || l.Result <= 0 || l.ToolCalls <= 0 || l.Concurrency <= 0 {
			t.Fatalf("a limit is missing: %+v", l)
		}
	})
}

// TestHostileYAML checks that a file that would keep the YAML parser busy for minutes is refused before it is parsed.
func TestHostileYAML(t *testing.T) {
	for name, src := range map[string]string{
		"brackets":      strings.Repeat("[", 1000),
		"braces":        strings.Repeat("{a: ", 1000),
		"dashes":        strings.Repeat("- ", 1000),
		"anchors":       strings.Repeat("&a ", 1000),
		"tags":          strings.Repeat("!a ", 1000),
		"question":      strings.Repeat("? ", 1000),
		"keys":          strings.Repeat("a: b\n", 40_000),
		"many brackets": strings.Repeat("[", maxYAML),
		"large":         "a: " + strings.Repeat("x", maxYAML),
	} {
		_, err := parseYAML([]byte(src))
		if err == nil || !strings.Contains(err.Error(), "the file is ") {
			t.Errorf("%s: got %v", name, err)
		}
	}
	many := strings.Repeat("a: b\n", maxTokens/3)
	if n, err := parseYAML([]byte(many)); err != nil || len(n.entries) != maxTokens/3 {
		t.Errorf("within the bounds: %v", err)
	}
}
