package jsonschema

import (
	"strings"
	"testing"
)

// TestViolations checks the message for each violated keyword, and which violation Validate chooses if there are
// several.
func TestViolations(t *testing.T) {
	for _, c := range []struct{ schema, value, want string }{
		{`{"type":["string","null"]}`, `1`, "type: got number, want null or string"},
		{`{"enum":["a",1]}`, `2`, "enum: value must be one of 'a', 1"},
		{`{"enum":[["a"]]}`, `2`, "enum: 'enum' failed"},
		{`{"const":"it's"}`, `2`, `const: value must be 'it\'s'`},
		{`{"minimum":1.50}`, `1`, "minimum: minimum: got 1, want 1.5"},
		{`{"maximum":10000}`, `1234567`, "maximum: maximum: got 1,234,567, want 10,000"},
		{`{"exclusiveMinimum":9007199254740993}`, `9007199254740993`, "exclusiveMinimum: exclusiveMinimum: got 9,007,199,254,740,993, want 9,007,199,254,740,993"},
		{`{"maximum":1,"exclusiveMaximum":true}`, `1`, "exclusiveMaximum: exclusiveMaximum: got 1, want 1"},
		{`{"multipleOf":0.1}`, `0.25`, "multipleOf: multipleOf: got 0.25, want 0.1"},
		{`{"minLength":2}`, `"é"`, "minLength: minLength: got 1, want 2"},
		{`{"pattern":"^a"}`, `"b"`, "pattern: 'b' does not match pattern '^a'"},
		{`{"uniqueItems":true}`, `[1,2,1.0]`, "uniqueItems: items at 0 and 2 are equal"},
		{`{"items":[true],"additionalItems":false}`, `[1,2,3]`, "additionalItems: last 2 additionalItem(s) not allowed"},
		{`{"contains":{"const":1}}`, `[2]`, "contains: no items match contains schema"},
		{`{"contains":{"const":1},"minContains":2}`, `[1]`, "minContains: min 2 items required to match contains schema, but matched 1 items"},
		{`{"required":["a","b"]}`, `{}`, "required: missing properties 'a', 'b'"},
		{`{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, "dependentRequired: properties 'b' required, if 'a' exists"},
		{`{"additionalProperties":false}`, `{"b":1,"a":1}`, "additionalProperties: additional properties 'a', 'b' not allowed"},
		{`{"propertyNames":{"maxLength":1}}`, `{"ab":1}`, "propertyNames: invalid propertyName 'ab'"},
		{`{"not":{}}`, `1`, "not: 'not' failed"},
		{`{"oneOf":[{},{"type":"number"}]}`, `1`, "oneOf: 'oneOf' failed, subschemas 0, 1 matched"},
		{`{"properties":{"a":{"items":false}}}`, `{"a":[1]}`, "a.0 false: false schema"},
		{`{"properties":{"a":{"items":{"type":"string"}}},"required":["b"]}`, `{"a":["x",1]}`, "a.1 type: got number, want string"},
		{`{"anyOf":[{"type":"string"},{"properties":{"a":{"type":"string"}}}]}`, `{"a":1}`, "a type: got number, want string"},
		{`{"allOf":[{"anyOf":[{"type":"string"},{}]},{"type":"boolean"}]}`, `1`, "type: got number, want boolean"},
		{`{"patternProperties":{"(?!a)":{"type":"string"}},"additionalProperties":false}`, `{"x":1}`, ""},
		{`{"properties":{"a":{"type":"string","nullable":true,"minLength":-1,"required":true}}}`, `{"a":""}`, ""},
		{`{"type":"integer"}`, `1.0e1`, ""},
		{`{"format":"email"}`, `"x"`, ""},
	} {
		s, err := Compile([]byte(c.schema))
		if err != nil {
			t.Fatalf("%s: %v", c.schema, err)
		}
		value, _ := Decode([]byte(c.value))
		got := ""
		if v := s.Validate(value); v != nil {
			got = strings.TrimSpace(strings.Join(v.Path, ".") + " " + string(v.Keyword) + ": " + v.String())
		}
		if got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.schema, c.value, got, c.want)
		}
	}
}

func TestViolationsInOrder(t *testing.T) {
	s, err := Compile([]byte(`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"z":{"type":"string"},"b":{"type":"null"}},"required":["c"]}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value, _ := Decode([]byte(`{"z":1,"b":2}`))
	var got []string
	for _, v := range s.ListViolations(value, 2) {
		got = append(got, strings.Join(v.Path, ".")+": "+v.String())
	}
	if want := ": missing property 'c'|b: got number, want null"; strings.Join(got, "|") != want {
		t.Errorf("got %q", got)
	}
	if names := s.PropertyNames(); strings.Join(names, " ") != "b z" {
		t.Errorf("properties %q", names)
	}
}

func TestFormats(t *testing.T) {
	s, err := FormatCheckers{"a": func(string) error { return strings.NewReader("").UnreadByte() }}.Compile([]byte(`{"format":"a"}`))
	if err != nil {
		t.Fatal(err)
	}
	if v := s.Validate("x"); v == nil || v.Keyword != Format || v.Err == nil || !strings.HasPrefix(v.String(), "'x' is not valid a: ") {
		t.Errorf("%+v", v)
	}
	if v := s.Validate(nil); v != nil {
		t.Errorf("%+v", v)
	}
}
