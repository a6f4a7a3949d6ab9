package infer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// typeNames lists JSON Schema's type names in the order in which a schema lists them.
var typeNames = []struct {
	kind kindSet
	name string
}{{object, "object"}, {array, "array"}, {text, "string"}, {number, "number"}, {integer, "integer"}, {boolean, "boolean"}, {null, "null"}}

// Special is a pattern for keys that cannot be identifiers. A generated schema uses it as the property pattern for
// the additional keys of an object if all of these keys match it.
const Special = `[^0-9A-Za-z_$]`

// JSONSchema returns the inferred type as a JSON Schema. Every document that was examined completely is valid against
// it. Equal shapes give equal bytes.
func (s *AnswerShape) JSONSchema() json.RawMessage {
	var b bytes.Buffer
	foldTables(s).writeSchema(&b)
	return b.Bytes()
}

func (s *AnswerShape) writeSchema(b *bytes.Buffer) {
	switch {
	case s == nil || s.kinds == 0:
		b.WriteString("{}")
		return
	case s.kinds == null:
		b.WriteString(`{"description":"null so far"}`) // which says nothing of what else it can be
		return
	}
	s.writeTypes(b)
	if s.kinds&text != 0 && s.formats != 0 && s.formats != allFormats {
		name := "date-time"
		if s.formats == date {
			name = "date"
		}
		fmt.Fprintf(b, `,"format":%q`, name)
	}
	if s.kinds&array != 0 && s.items != nil {
		b.WriteString(`,"items":`)
		s.items.writeSchema(b)
	}
	if s.kinds&object != 0 {
		s.writeObject(b)
	}
	b.WriteByte('}')
}

func (s *AnswerShape) writeTypes(b *bytes.Buffer) {
	var types []string
	for _, w := range typeNames {
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

func (s *AnswerShape) writeObject(b *bytes.Buffer) {
	var required []string
	for i, f := range s.fields {
		b.WriteString([]string{`,"properties":{`, ","}[min(i, 1)])
		fmt.Fprintf(b, "%q:", f.name)
		f.of.writeSchema(b)
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
		s.others.writeSchema(b)
		b.WriteByte('}')
	case s.others != nil:
		b.WriteString(`,"additionalProperties":`)
		s.others.writeSchema(b)
	}
}

// storedShape is the JSON form of an AnswerShape: its types by letter, the fields that were always present, the other
// fields, and so on.
type storedShape struct {
	Kinds   string                  `json:"k"`
	Formats formatSet               `json:"t,omitempty"`
	Always  map[string]*storedShape `json:"f,omitempty"`
	Some    map[string]*storedShape `json:"o,omitempty"`
	Others  *storedShape            `json:"m,omitempty"`
	Plain   bool                    `json:"p,omitempty"`
	Items   *storedShape            `json:"i,omitempty"`
	Cut     bool                    `json:"c,omitempty"`
}

const kindLetters = "zbinsao" // one letter for each type, in the order of the constants of kindSet

// MarshalJSON encodes a shape. It omits the keys of objects that are tables.
func (s *AnswerShape) MarshalJSON() ([]byte, error) { return json.Marshal(foldTables(s).toStored()) }

func (s *AnswerShape) toStored() *storedShape {
	if s == nil {
		return nil
	}
	out := &storedShape{Formats: s.formats, Others: s.others.toStored(), Items: s.items.toStored(), Plain: s.plain, Cut: s.cut}
	for i := range kindLetters {
		if s.kinds&(1<<i) != 0 {
			out.Kinds += kindLetters[i : i+1]
		}
	}
	for _, f := range s.fields {
		fields := &out.Some
		if f.always {
			fields = &out.Always
		}
		if *fields == nil {
			*fields = map[string]*storedShape{}
		}
		(*fields)[f.name] = f.of.toStored()
	}
	return out
}

// UnmarshalJSON decodes a shape. It drops types that are nested too deeply or exceed MaxNodes.
func (s *AnswerShape) UnmarshalJSON(data []byte) error {
	var kept storedShape
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	*s = *boundNodes(kept.toShape(0))
	return nil
}

func (k *storedShape) toShape(depth int) *AnswerShape {
	if k == nil {
		return nil
	}
	s := &AnswerShape{formats: k.Formats & allFormats, plain: k.Plain, cut: k.Cut}
	for i := range kindLetters {
		if strings.Contains(k.Kinds, kindLetters[i:i+1]) {
			s.kinds |= 1 << i
		}
	}
	if depth >= MaxDepth {
		s.cut = s.cut || k.Items != nil || k.Others != nil || len(k.Always)+len(k.Some) > 0
		return s
	}
	s.items, s.others = k.Items.toShape(depth+1), k.Others.toShape(depth+1)
	for i, fields := range []map[string]*storedShape{k.Always, k.Some} {
		for name, of := range fields {
			if of != nil && IsName(name) {
				s.fields = append(s.fields, shapeField{name, i == 0, of.toShape(depth + 1)})
			}
		}
	}
	slices.SortFunc(s.fields, func(f, g shapeField) int { return strings.Compare(f.name, g.name) })
	s.fields = slices.CompactFunc(s.fields, func(f, g shapeField) bool { return f.name == g.name })
	return s
}
