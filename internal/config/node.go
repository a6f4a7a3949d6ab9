package config

import (
	"encoding/json"
	"strconv"
)

// Position describes a position in a file. Line and Column are 1-based and count characters. Line is 0 if only the file
// is known.
type Position struct {
	File   string // path to show to users: relative to the working directory if the file is in it
	Line   int
	Column int
}

func (p Position) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

type nodeKind uint8

const (
	nullKind nodeKind = iota
	boolKind
	numberKind
	textKind
	listKind
	objectKind
)

// valueNode holds one value of a configuration file. JSON and YAML are both parsed into nodes, so that everything
// after parsing is written once. Two aliases of the same YAML value share its node.
type valueNode struct {
	kind    nodeKind
	line    int
	column  int
	text    string // value of a string; for other scalars the JSON text
	items   []*valueNode
	entries []nodeEntry
}

// nodeEntry holds one key of an object and its value. A key that a file repeats has several entries.
type nodeEntry struct {
	key   *valueNode // a string
	value *valueNode
}

// findEntry returns the first entry with this key, or nil.
func (n *valueNode) findEntry(key string) *nodeEntry {
	if n == nil || n.kind != objectKind {
		return nil
	}
	for i := range n.entries {
		if n.entries[i].key.text == key {
			return &n.entries[i]
		}
	}
	return nil
}

// describeValue describes a value for an error message.
func (n *valueNode) describeValue() string {
	switch n.kind {
	case nullKind:
		return "nothing"
	case listKind:
		return "a list"
	case objectKind:
		return "an object"
	case textKind:
		return strconv.Quote(shortenText(n.text))
	}
	return shortenText(n.text)
}

func shortenText(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// appendJSON appends n as strict JSON. It drops comments, and keeps the order of keys and the digits of numbers.
func (n *valueNode) appendJSON(b []byte) []byte {
	switch n.kind {
	case textKind:
		return appendText(b, n.text)
	case listKind:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case objectKind:
		b = append(b, '{')
		for i, e := range n.entries {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendText(b, e.key.text), ':')
			b = e.value.appendJSON(b)
		}
		return append(b, '}')
	}
	return append(b, n.text...)
}

func appendText(b []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil { // strings always marshal
		return append(b, `""`...)
	}
	return append(b, quoted...)
}
