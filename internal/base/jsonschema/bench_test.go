package jsonschema

import (
	"bytes"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	flatSchema = `{"type":"object","properties":{"owner":{"type":"string"},"repo":{"type":"string"},
		"state":{"enum":["open","closed","all"]},"page":{"type":"integer","minimum":1,"maximum":100},
		"draft":{"type":"boolean"}},"required":["owner","repo"],"additionalProperties":false}`
	flatValue    = `{"owner":"o","repo":"r","state":"open","page":7,"draft":true}`
	nestedSchema = `{"type":"object","$defs":{"cell":{"anyOf":[{"type":"string","maxLength":100},{"type":"number"},{"type":"null"}]}},
		"properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer"},"cells":{"type":"array","items":{"$ref":"#/$defs/cell"}}},
		"required":["id"],"additionalProperties":false}}}}`
)

func nestedValue() string {
	row := `{"id":1,"cells":["a",2.5,null,"d"]}`
	return `{"rows":[` + row + string(bytes.Repeat([]byte(","+row), 49)) + `]}`
}

// TestValidateAllocatesNothing checks that validating a flat object allocates no memory, because every tool call is
// validated.
func TestValidateAllocatesNothing(t *testing.T) {
	s, err := Compile([]byte(flatSchema))
	if err != nil {
		t.Fatal(err)
	}
	v, _ := Decode([]byte(flatValue))
	if n := testing.AllocsPerRun(100, func() {
		if s.Validate(v) != nil {
			t.Error("not valid")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkValidate(b *testing.B) {
	for _, x := range []struct{ name, schema, value string }{
		{"flat", flatSchema, flatValue}, {"wrong", flatSchema, `{"owner":"o","stat":"x","page":0}`}, {"nested", nestedSchema, nestedValue()},
	} {
		value, _ := Decode([]byte(x.value))
		b.Run(x.name, func(b *testing.B) {
			s, err := Compile([]byte(x.schema))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Validate(value)
			}
		})
		b.Run(x.name+"/library", func(b *testing.B) {
			s, _, err := oracle([]byte(x.schema))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				_ = s.Validate(value)
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	b.Run("flat", func(b *testing.B) {
		for b.Loop() {
			_, _ = Decode([]byte(flatValue))
		}
	})
	b.Run("flat/library", func(b *testing.B) {
		for b.Loop() {
			_, _ = jsonschema.UnmarshalJSON(bytes.NewReader([]byte(flatValue)))
		}
	})
}

// BenchmarkCompile measures compiling the input schemas of all tools in the test catalogues.
func BenchmarkCompile(b *testing.B) {
	schemas := inputSchemas(b)
	b.Run("all", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, raw := range schemas {
				_, _ = Compile(raw)
			}
		}
	})
	b.Run("all/library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			for _, raw := range schemas {
				_, _, _ = oracle(raw)
			}
		}
	})
}
