package infer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// words lists JSON Schema's type names in the order in which a schema lists them.
var words = []struct {
	kind kind
	name string
}{{object, "object"}, {array, "array"}, {text, "string"}, {number, "number"}, {integer, "integer"}, {boolean, "boolean"}, {null, "null"}}

// Special is the pattern for the other keys of an object if all of them match it.
const Special = `[^0-9A-Za-z_$]`

// Schema returns the shape as a JSON Schema. Every document that was examined completely is valid against it. Equal
// shapes give equal bytes.
func (s *Shape) Schema() json.RawMessage {
	var b bytes.Buffer
	folded(s).write(&b)
	return b.Bytes()
}

func (s *Shape) write(b *bytes.Buffer) {
	switch {
	case s == nil || s.kinds == 0:
		b.WriteString("{}")
		return
	case s.kinds == null:
		b.WriteString(`{"description":"null so far"}`) // which says nothing of what else it can be
		return
	}
	s.writeTypes(b)
	if s.kinds&text != 0 && s.formats != 0 && s.formats != formats {
		name := "date-time"
		if s.formats == date {
			name = "date"
		}
		fmt.Fprintf(b, `,"format":%q`, name)
	}
	if s.kinds&array != 0 && s.items != nil {
		b.WriteString(`,"items":`)
		s.items.write(b)
	}
	if s.kinds&object != 0 {
		s.writeObject(b)
	}
	b.WriteByte('}')
}

func (s *Shape) writeTypes(b *bytes.Buffer) {
	var types []string
	for _, w := range words {
		if s.kinds&w.kind != 0 && (w.kind != integer || s.kinds&number == 0) {
			types = append(types, `"`+w.name+`"`)
		}
	}
	b.WriteString(`{"type":`)
	if len(types) == 1 {
		b.WriteString(types[0])
		return
	}
	b.WriteString("[" + strings.Join(types, ",") + "]")
}

func (s *Shape) writeObject(b *bytes.Buffer) {
	var required []string
	for i, f := range s.fields {
		b.WriteString([]string{`,"properties":{`, ","}[min(i, 1)])
		fmt.Fprintf(b, "%q:", f.name)
		f.of.write(b)
		if f.always {
			required = append(required, `"`+f.name+`"`)
		}
	}
	if len(s.fields) > 0 {
		b.WriteByte('}')
	}
	if len(required) > 0 {
		b.WriteString(`,"required":[` + strings.Join(required, ",") + "]")
	}
	switch {
	case s.cut && (len(s.fields) > 0 || s.others != nil):
		b.WriteString(`,"additionalProperties":true`)
	case s.others != nil && len(s.fields) > 0 && !s.plain:
		fmt.Fprintf(b, `,"patternProperties":{%q:`, Special)
		s.others.write(b)
		b.WriteByte('}')
	case s.others != nil:
		b.WriteString(`,"additionalProperties":`)
		s.others.write(b)
	}
}

// stored holds a shape in its stored form: kinds by letter, then fields that were always present, then the others,
// and so on.
type stored struct {
	Kinds   string             `json:"k"`
	Formats format             `json:"t,omitempty"`
	Always  map[string]*stored `json:"f,omitempty"`
	Some    map[string]*stored `json:"o,omitempty"`
	Others  *stored            `json:"m,omitempty"`
	Plain   bool               `json:"p,omitempty"`
	Items   *stored            `json:"i,omitempty"`
	Cut     bool               `json:"c,omitempty"`
}

const letters = "zbinsao" // in the order of the kinds

// MarshalJSON encodes a shape without the keys of its tables.
func (s *Shape) MarshalJSON() ([]byte, error) { return json.Marshal(folded(s).stored()) }

func (s *Shape) stored() *stored {
	if s == nil {
		return nil
	}
	out := &stored{Formats: s.formats, Others: s.others.stored(), Items: s.items.stored(), Plain: s.plain, Cut: s.cut}
	for i := range letters {
		if s.kinds&(1<<i) != 0 {
			out.Kinds += letters[i : i+1]
		}
	}
	for _, f := range s.fields {
		fields := &out.Some
		if f.always {
			fields = &out.Always
		}
		if *fields == nil {
			*fields = map[string]*stored{}
		}
		(*fields)[f.name] = f.of.stored()
	}
	return out
}

// UnmarshalJSON parses what MarshalJSON wrote. It leaves out what exceeds the bounds.
func (s *Shape) UnmarshalJSON(data []byte) error {
	var kept stored
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	*s = *bounded(kept.shape(0))
	return nil
}

func (k *stored) shape(depth int) *Shape {
	if k == nil {
		return nil
	}
	s := &Shape{formats: k.Formats & formats, plain: k.Plain, cut: k.Cut}
	for i := range letters {
		if strings.Contains(k.Kinds, letters[i:i+1]) {
			s.kinds |= 1 << i
		}
	}
	if depth >= MaxDepth {
		s.cut = s.cut || k.Items != nil || k.Others != nil || len(k.Always)+len(k.Some) > 0
		return s
	}
	s.items, s.others = k.Items.shape(depth+1), k.Others.shape(depth+1)
	for i, fields := range []map[string]*stored{k.Always, k.Some} {
		for name, of := range fields {
			if of != nil && IsName(name) {
				s.fields = append(s.fields, field{name, i == 0, of.shape(depth + 1)})
			}
		}
	}
	slices.SortFunc(s.fields, func(f, g field) int { return strings.Compare(f.name, g.name) })
	s.fields = slices.CompactFunc(s.fields, func(f, g field) bool { return f.name == g.name })
	return s
}
