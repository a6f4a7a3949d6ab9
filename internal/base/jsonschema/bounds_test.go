package jsonschema

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

type attack struct{ name, schema, value string }

// hostile returns schemas and values with which a naive validator would run out of time, memory or stack.
func hostile() []attack {
	doubling := func(keyword string) string {
		var b strings.Builder
		b.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
		for i := range 40 {
			fmt.Fprintf(&b, `"a%d":{%q:[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, keyword, i+1, i+1)
		}
		return b.String() + `"a40":{"type":"string"}}}`
	}
	deep := strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)
	return []attack{
		{"a circle", `{"$ref":"#"}`, `1`},
		{"a circle of three", `{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}`, `1`},
		{"a dynamic circle", `{"$dynamicRef":"#a","$dynamicAnchor":"a"}`, `1`},
		{"doubling anyOf", doubling("anyOf"), `1`},
		{"doubling allOf", doubling("allOf"), `"x"`},
		{"doubling oneOf", doubling("oneOf"), `1`},
		{"doubling and unevaluated", strings.Replace(doubling("anyOf"), "{", `{"unevaluatedProperties":false,`, 1), `{"a":1}`},
		{"a deep value", `{"items":{"$ref":"#"}}`, deep},
		{"a deep constant", `{"const":` + deep + `}`, deep},
		{"a deep schema", strings.Repeat(`{"not":`, 9_000) + "{}" + strings.Repeat("}", 9_000), `1`},
		{"a deep unknown keyword", `{"x":` + strings.Repeat(`{"x":`, 5_000) + "{}" + strings.Repeat("}", 5_000) + `,"$ref":"#/x/x"}`, `1`},
		{"large numbers", `{"multipleOf":7,"minimum":1e-2147483647,"maximum":1e999999999999}`, `1e2147483647`},
		{"a long number", `{"multipleOf":7,"minimum":1}`, strings.Repeat("7", 1<<20)},
		{"large patterns", `{"allOf":[` + strings.Repeat(`{"pattern":"((a{30}){30}){1}b{900}"},`, 20_000) + `true]}`, `"` + strings.Repeat("a", 1<<16) + `"`},
		{"many patterns of names", `{"patternProperties":{"(a{30}){30}$":{},"(a{31}){30}$":{}}}`, `{"` + strings.Repeat("a", 1<<20) + `":1}`},
		{"many equal items", `{"uniqueItems":true}`, `[` + strings.Repeat(`[1],`, 20) + strings.Repeat(`{"a":[1.0,2]},`, 100_000) + `1]`},
		{"many wrong items", `{"items":{"type":"string","minLength":2}}`, `[` + strings.Repeat(`1,`, 500_000) + `1]`},
		{"a large enum of many", `{"items":{"enum":[` + strings.Repeat(`{"a":1},`, 50_000) + `1]}}`, `[` + strings.Repeat(`{"a":2},`, 50_000) + `1]`},
		{"many subschemas", `{"anyOf":[` + strings.Repeat(`{"not":true},`, 300_000) + `false]}`, `1`},
		{"10 MB", `{"description":"` + strings.Repeat("x", 10<<20) + `"}`, `1`},
		{"many properties", `{"properties":{` + manyProperties(100_000) + `"z":{}},"additionalProperties":false}`, `{` + manyProperties(100_000) + `"y":1}`},
	}
}

func manyProperties(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"p%d":{"a":1},`, i)
	}
	return b.String()
}

// TestHostileSchemas checks that validating a hostile schema or value does not crash, and that it takes a bounded
// number of steps and amount of memory.
func TestHostileSchemas(t *testing.T) {
	for _, a := range hostile() {
		t.Run(a.name, func(t *testing.T) {
			v, err := Decode([]byte(a.value))
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s, err := Compile([]byte(a.schema))
			var found *Violation
			if err == nil {
				found = s.Validate(v)
			}
			runtime.ReadMemStats(&after)
			allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
			t.Logf("%d MB, %v, violation %.200v", allocated, err, found)
			if allocated > 500 {
				t.Errorf("%d MB were allocated, want at most 500", allocated)
			}
		})
	}
}

// TestExhaustedChecksPass checks that a value is accepted if its check exceeds a bound such as maxSteps, because the
// server checks the value again.
func TestExhaustedChecksPass(t *testing.T) {
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"not":{"$ref":"#/$defs/a"},"$defs":{"a":{"$ref":"#/$defs/a"}}}`,
		`{"oneOf":[{"$ref":"#"},{"$ref":"#"}]}`,
	} {
		s, err := Compile([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		if v := s.Validate("x"); v != nil {
			t.Errorf("%s: %+v", schema, v)
		}
	}
}

func TestNothingIsLoaded(t *testing.T) {
	for schema, want := range map[string]string{
		`{"$ref":"http://192.0.2.1/schema.json"}`:               "http://192.0.2.1/schema.json is not loaded",
		`{"properties":{"a":{"$ref":"file:///etc/passwd#/x"}}}`: "file:///etc/passwd is not loaded",
		`{"$id":"http://192.0.2.1/a/b.json","$ref":"c.json"}`:   "http://192.0.2.1/a/c.json is not loaded",
		`{"$ref":"#/$defs/a"}`:                                  "the reference '#/$defs/a': there is no '$defs'",
		`{"$ref":"#a"}`:                                         "the reference '#a': there is no such anchor",
		`{"$ref":"%zz"}`:                                        `the reference '%zz': parse "%zz": invalid URL escape "%zz"`,
		`[1]`:                                                   "a schema must be an object or a boolean",
		`{"$defs":{"unused":{"$ref":"http://192.0.2.1/"}},"type":"object"} {}`: "there is unexpected text after the value",
		`{"$defs":{"unused":{"$ref":"http://192.0.2.1/"}},"type":"object"}`:    "<nil>",
	} {
		if _, err := Compile([]byte(schema)); fmt.Sprint(err) != want {
			t.Errorf("%s:\n got %v\nwant %s", schema, err, want)
		}
	}
}
