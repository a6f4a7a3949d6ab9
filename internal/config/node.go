package config

import (
	"encoding/json"
	"strconv"
)

// Place describes a position in a file. Line and Column are 1-based and count characters. Line is 0 if only the file
// is known.
type Place struct {
	File   string // as shown to people: relative to the working directory if it lies below it
	Line   int
	Column int
}

func (p Place) String() string {
	if p.Line == 0 {
		return p.File
	}
	return p.File + ":" + strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Column)
}

type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	listKind
	objectKind
)

// node holds one value of a configuration file. JSON and YAML are both parsed into nodes, so that everything after
// parsing is written once. YAML aliases share nodes.
type node struct {
	kind    kind
	line    int
	column  int
	text    string // of a text; otherwise the scalar as JSON writes it
	items   []*node
	entries []entry
}

// entry holds one key of an object and its value. A key that a file repeats has several entries.
type entry struct {
	key   *node // a text
	value *node
}

// find returns the first entry with this key, or nil.
func (n *node) find(key string) *entry {
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

// describe describes a value for an error message.
func (n *node) describe() string {
	switch n.kind {
	case nullKind:
		return "nothing"
	case listKind:
		return "a list"
	case objectKind:
		return "an object"
	case textKind:
		return strconv.Quote(shorten(n.text))
	}
	return shorten(n.text)
}

func shorten(s string) string {
	const most = 60
	if runes := []rune(s); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// appendJSON appends n as strict JSON. It drops comments, and keeps the order of keys and the digits of numbers.
func (n *node) appendJSON(b []byte) []byte {
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
