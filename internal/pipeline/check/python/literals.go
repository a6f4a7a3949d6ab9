package python

import (
	"encoding/json"
	"math"
	"strconv"
)

// Bounds within which the values of literal arguments are examined.
const (
	deepestLiteral = 40
	longestLiteral = 100  // items
	longestText    = 1000 // code points
	maxArguments   = 100
	maxKeywords    = 500
	exactInteger   = 1 << 53
)

// readArguments collects the known values of a call's arguments.
func (v *factVisitor) readArguments(id nodeID) *callFact {
	c := &callFact{node: id, sourcePlace: v.nodePlace(id)}
	args := v.s.fieldList(id, fieldArgs)
	for i, item := range args {
		arg := nodeOf(item)
		if v.s.classOf(arg) == classStarred {
			c.Star = true
		} else if i < maxArguments {
			if i == 0 {
				c.first = arg
			}
			c.Args = append(c.Args, v.readArgument(arg))
		}
	}
	for _, item := range v.s.fieldList(id, fieldKeywords) {
		k := nodeOf(item)
		name := v.s.fieldValue(k, fieldArg)
		if name.sort != sortText {
			c.DoubleStar = true
			continue
		}
		if len(c.Keywords) < maxKeywords {
			at := sourcePlace{
				v.lineNumber(v.s.nodes[k].line), v.columnNumber(v.s.nodes[k].line, v.s.nodes[k].column),
				countRunes(v.s.texts[name.at]),
			}
			c.Keywords = append(c.Keywords, keywordFact{
				Name: v.s.texts[name.at], Value: v.readArgument(v.s.childNode(k, fieldValue)), sourcePlace: at,
			})
		}
	}
	return c
}

// readArgument determines what can be known about an argument's value: its kind, its JSON if it is a literal, and the
// keys of a dict.
func (v *factVisitor) readArgument(id nodeID) argumentFact {
	a := v.readPlain(id)
	if v.s.classOf(id) != classDict {
		return a
	}
	keys, values := v.s.fieldList(id, fieldKeys), v.s.fieldList(id, fieldValues)
	for i, item := range keys {
		key := nodeOf(item)
		if !v.s.isText(key) {
			a.Open = true
		} else if i < len(values) && len(a.Keys) < maxKeywords {
			a.Keys = append(a.Keys, keywordFact{
				Name: v.s.fieldString(key, fieldValue), Value: v.readPlain(nodeOf(values[i])), sourcePlace: v.nodePlace(key),
			})
		}
	}
	return a
}

// readPlain works like readArgument, but without the keys of a dict.
func (v *factVisitor) readPlain(id nodeID) argumentFact {
	a := argumentFact{Kind: v.s.argumentKind(id), sourcePlace: v.nodePlace(id)}
	if literal, ok := v.s.appendLiteral(nil, id, 0); ok {
		a.JSON = literal
	}
	return a
}

// argumentKind returns the kind of an argument, or "" if it is unknown.
func (s *syntaxTree) argumentKind(id nodeID) string {
	for s.classOf(id) == classUnaryOp && s.fieldSymbol(id, fieldOp) == classUSub {
		id = s.childNode(id, fieldOperand)
	}
	switch s.classOf(id) {
	case classJoinedStr:
		return "str"
	case classList, classListComp:
		return "list"
	case classDict, classDictComp:
		return "dict"
	case classConstant:
		return constantKinds[s.fieldValue(id, fieldValue).sort]
	}
	return ""
}

var constantKinds = map[valueSort]string{
	sortNone: "none", sortText: "str", sortBytes: "bytes", sortTrue: "bool", sortFalse: "bool", sortInteger: "int",
	sortLong: "int", sortHuge: "int", sortFloat: "float",
}

// appendLiteral appends a literal as JSON to b. It returns false if JSON cannot express the literal.
func (s *syntaxTree) appendLiteral(b []byte, id nodeID, depth int) (json.RawMessage, bool) {
	if depth > deepestLiteral {
		return nil, false
	}
	switch s.classOf(id) {
	case classConstant:
		return s.appendConstant(b, s.fieldValue(id, fieldValue), false)
	case classUnaryOp:
		return s.appendNegative(b, id, depth)
	case classList:
		return s.literalList(b, s.fieldList(id, fieldElements), depth)
	case classDict:
		return s.literalDict(b, s.fieldList(id, fieldKeys), s.fieldList(id, fieldValues), depth)
	}
	return nil, false
}

// appendNegative appends a number with one or more minus signs before it, such as --1, as JSON to b.
func (s *syntaxTree) appendNegative(b []byte, id nodeID, depth int) (json.RawMessage, bool) {
	minus := false
	for ; s.classOf(id) == classUnaryOp; depth++ {
		if s.fieldSymbol(id, fieldOp) != classUSub {
			return nil, false
		}
		minus = !minus
		id = s.childNode(id, fieldOperand)
	}
	value := s.fieldValue(id, fieldValue)
	if depth > deepestLiteral || s.classOf(id) != classConstant ||
		value.sort != sortFloat && value.sort != sortInteger && value.sort != sortLong {
		return nil, false
	}
	return s.appendConstant(b, value, minus)
}

// appendConstant appends a constant as JSON to b, and a number with the opposite sign if minus is set. It returns
// false if JSON cannot express the constant.
func (s *syntaxTree) appendConstant(b []byte, value attrValue, minus bool) (json.RawMessage, bool) {
	switch value.sort {
	case sortNone:
		return append(b, "null"...), true
	case sortTrue:
		return append(b, "true"...), true
	case sortFalse:
		return append(b, "false"...), true
	case sortText:
		text := s.texts[value.at]
		return appendText(b, text), countRunes(text) <= longestText
	case sortFloat:
		f := s.floats[value.at]
		if minus {
			f = -f
		}
		return append(b, floatText(f)...), !math.IsInf(f, 0) && !math.IsNaN(f)
	case sortInteger, sortLong:
		n := s.integerValue(value)
		if minus {
			n = -n
		}
		return strconv.AppendInt(b, n, 10), -exactInteger < n && n < exactInteger
	}
	return nil, false
}

func (s *syntaxTree) integerValue(v attrValue) int64 {
	if v.sort == sortLong {
		return s.integers[v.at]
	}
	return int64(v.at)
}

func (s *syntaxTree) literalList(b []byte, items []attrValue, depth int) (json.RawMessage, bool) {
	if len(items) > longestLiteral {
		return nil, false
	}
	b = append(b, '[')
	for i, item := range items {
		if i > 0 {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = s.appendLiteral(b, nodeOf(item), depth+1); !ok {
			return nil, false
		}
	}
	return append(b, ']'), true
}

// literalDict appends a dict literal with string keys as JSON. If a key occurs twice, the later value counts.
func (s *syntaxTree) literalDict(b []byte, keys, values []attrValue, depth int) (json.RawMessage, bool) {
	if len(keys) > longestLiteral || len(keys) != len(values) || depth == deepestLiteral && len(keys) > 0 {
		return nil, false
	}
	last := map[textID]json.RawMessage{}
	var order []textID
	for i, item := range keys {
		key := nodeOf(item)
		literal, ok := s.appendLiteral(nil, nodeOf(values[i]), depth+1)
		if !ok || !s.isText(key) || countRunes(s.fieldString(key, fieldValue)) > longestText {
			return nil, false
		}
		text := s.fieldText(key, fieldValue)
		if last[text] == nil {
			order = append(order, text)
		}
		last[text] = literal
	}
	b = append(b, '{')
	for i, text := range order {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(appendText(b, s.texts[text]), ':'), last[text]...)
	}
	return append(b, '}'), true
}

// appendText appends a text to b as a JSON string with as few escapes as possible.
func appendText(b []byte, text string) []byte {
	const digits = "0123456789abcdef"
	b = append(b, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c == '\n':
			b = append(b, '\\', 'n')
		case c == '\t':
			b = append(b, '\\', 't')
		case c == '\r':
			b = append(b, '\\', 'r')
		case c == '\b':
			b = append(b, '\\', 'b')
		case c == '\f':
			b = append(b, '\\', 'f')
		case c < ' ':
			b = append(b, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// floatText formats a float as Python prints it.
func floatText(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case f == 0 || 1e-4 <= math.Abs(f) && math.Abs(f) < 1e16:
		text := strconv.FormatFloat(f, 'f', -1, 64)
		if f == math.Trunc(f) {
			text += ".0"
		}
		return text
	}
	return strconv.FormatFloat(f, 'e', -1, 64)
}
