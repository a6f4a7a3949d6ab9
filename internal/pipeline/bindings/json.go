package bindings

import (
	"errors"

	"retort/internal/base/jsonscan"
)

// jsonKind is the type of a JSON value.
type jsonKind uint8

const (
	jsonNull jsonKind = iota
	jsonBool
	jsonNumber
	jsonString
	jsonArray
	jsonObject
	jsonDeep // nested deeper than maxDepth; its contents are unknown
)

// jsonValue holds a JSON value and keeps the order of an object's members and the digits of a number.
type jsonValue struct {
	kind  jsonKind
	text  string   // of a string; as written: true, false, a number
	raw   string   // as written
	keys  []string // of an object; items are the members' values
	items []*jsonValue
	index map[string]int // from key to item, for large objects
}

// get returns a member of an object, or nil. v may be nil.
func (v *jsonValue) get(key string) *jsonValue {
	if v == nil || v.kind != jsonObject {
		return nil
	}
	if v.index != nil {
		if i, ok := v.index[key]; ok {
			return v.items[i]
		}
		return nil
	}
	for i, k := range v.keys {
		if k == key {
			return v.items[i]
		}
	}
	return nil
}

func (v *jsonValue) hasKind(kind jsonKind) bool { return v != nil && v.kind == kind }

func (v *jsonValue) isTrue() bool  { return v.hasKind(jsonBool) && v.text == "true" }
func (v *jsonValue) isFalse() bool { return v.hasKind(jsonBool) && v.text == "false" }

// stringText returns the text of a string, or "".
func (v *jsonValue) stringText() string {
	if v.hasKind(jsonString) {
		return v.text
	}
	return ""
}

// setMember adds a member. A repeated name replaces the earlier value in its place, as in JSON.parse.
func (v *jsonValue) setMember(key string, item *jsonValue) {
	if i, ok := v.findMember(key); ok {
		v.items[i] = item
		return
	}
	if v.keys == nil {
		const usual = 4
		v.keys, v.items = make([]string, 0, usual), make([]*jsonValue, 0, usual)
	}
	v.keys = append(v.keys, key)
	v.items = append(v.items, item)
	if v.index != nil {
		v.index[key] = len(v.keys) - 1
	} else if len(v.keys) > 16 {
		v.index = make(map[string]int, 64)
		for i, k := range v.keys {
			v.index[k] = i
		}
	}
}

func (v *jsonValue) findMember(key string) (int, bool) {
	if v.index != nil {
		i, ok := v.index[key]
		return i, ok
	}
	for i, k := range v.keys {
		if k == key {
			return i, true
		}
	}
	return 0, false
}

// Bounds on the JSON of one schema: its nesting, its number of values, and its size in bytes.
const (
	maxDepth  = 200
	maxValues = 200_000
	maxBytes  = 16 << 20
)

var (
	errJSON    = errors.New("not valid JSON")
	errTooLong = errors.New("too large")
)

// parseJSON parses raw, which must be exactly one JSON value.
func parseJSON(raw []byte) (*jsonValue, error) {
	if len(raw) > maxBytes {
		return nil, errTooLong
	}
	p := jsonParser{text: string(raw), at: jsonscan.Cursor{Text: raw}}
	v, err := p.parseValue(0)
	if err != nil {
		return nil, err
	}
	if p.at.Next(); p.at.At < len(raw) {
		return nil, errJSON
	}
	return v, nil
}

type jsonParser struct {
	text   string // of which the values have parts
	at     jsonscan.Cursor
	values int
	slab   []jsonValue // allocated together, not yet used
}

func (p *jsonParser) newValue() *jsonValue {
	const most = 64
	if len(p.slab) == 0 {
		p.slab = make([]jsonValue, min(most, 1+(len(p.text)-p.at.At)/24))
	}
	v := &p.slab[0]
	p.slab = p.slab[1:]
	return v
}

func (p *jsonParser) parseValue(depth int) (*jsonValue, error) {
	c := p.at.Next()
	start := p.at.At
	if p.values++; p.values > maxValues {
		return nil, errTooLong
	}
	v := p.newValue()
	var err error
	switch {
	case (c == '{' || c == '[') && depth >= maxDepth:
		v.kind, err = jsonDeep, p.skipNested()
	case c == '{':
		v.kind, err = jsonObject, p.parseMembers(v, depth)
	case c == '[':
		v.kind, err = jsonArray, p.parseElements(v, depth)
	case c == '"':
		v.kind = jsonString
		v.text, err = p.parseString()
	default:
		err = p.parseWord(v)
	}
	v.raw = p.text[start:p.at.At]
	return v, err
}

// parseWord parses a JSON value that is a number or one of the words true, false and null.
func (p *jsonParser) parseWord(v *jsonValue) error {
	start := p.at.At
	p.at.ReadWord()
	v.text = p.text[start:p.at.At]
	switch {
	case v.text == "null":
		v.kind = jsonNull
	case v.text == "true", v.text == "false":
		v.kind = jsonBool
	case jsonscan.IsNumber(v.text):
		v.kind = jsonNumber
	default:
		return errJSON
	}
	return nil
}

func (p *jsonParser) parseMembers(v *jsonValue, depth int) error {
	p.at.At++
	if p.at.Accept('}') {
		return nil
	}
	for {
		p.at.Next()
		key, err := p.parseString()
		if err != nil {
			return err
		}
		if !p.at.Accept(':') {
			return errJSON
		}
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.setMember(key, item)
		if done, err := p.parseSeparator('}'); done || err != nil {
			return err
		}
	}
}

func (p *jsonParser) parseElements(v *jsonValue, depth int) error {
	p.at.At++
	if p.at.Accept(']') {
		return nil
	}
	for {
		item, err := p.parseValue(depth + 1)
		if err != nil {
			return err
		}
		v.items = append(v.items, item)
		if done, err := p.parseSeparator(']'); done || err != nil {
			return err
		}
	}
}

// parseSeparator reads what follows an item of an array or object: a comma, or the closing bracket. done is true
// after the closing bracket.
func (p *jsonParser) parseSeparator(closing byte) (done bool, err error) {
	switch {
	case p.at.Accept(','):
		return false, nil
	case p.at.Accept(closing):
		return true, nil
	}
	return false, errJSON
}

// skipNested skips an object or array without recursion. It checks only the strings in it.
func (p *jsonParser) skipNested() error {
	start := p.at.At
	if !p.at.SkipValue() {
		return errJSON
	}
	inside := jsonscan.Cursor{Text: p.at.Text[:p.at.At], At: start}
	for inside.At < len(inside.Text) {
		begin := inside.At
		if _, _, ok := inside.ReadString(); !ok {
			inside.At++
		} else if _, ok := jsonscan.Unquote(p.text[begin:inside.At]); !ok {
			return errJSON
		}
	}
	return nil
}

// parseString parses a string. Lone surrogates and invalid UTF-8 become U+FFFD.
func (p *jsonParser) parseString() (string, error) {
	start := p.at.At
	if _, _, ok := p.at.ReadString(); !ok {
		return "", errJSON
	}
	text, ok := jsonscan.Unquote(p.text[start:p.at.At])
	if !ok {
		return "", errJSON
	}
	return text, nil
}
