package cel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
)

// maxDepth bounds how deeply the objects and arrays of a value may be nested.
const maxDepth = 500

// DecodeJSON decodes a JSON value for use in expressions. Integers that fit into 64 bits become int64, other numbers
// float64. It returns an error if two keys of an object differ only in case, because different programs would choose
// different ones.
func DecodeJSON(raw json.RawMessage) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is unexpected text after the value")
	}
	return v, nil
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, errors.New("the value is nested too deeply")
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('['):
		return decodeItems(d, depth)
	case json.Delim('{'):
		return decodeEntries(d, depth)
	}
	if n, ok := t.(json.Number); ok {
		return decodeNumber(n)
	}
	return t, nil
}

func decodeItems(d *json.Decoder, depth int) (any, error) {
	list := []any{}
	for d.More() {
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	_, err := d.Token()
	return list, err
}

func decodeEntries(d *json.Decoder, depth int) (any, error) {
	object, folded := map[string]any{}, map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, ok := t.(string)
		if !ok {
			return nil, fmt.Errorf("a key is %v", t)
		}
		if f := FoldCase(key); folded[f] {
			return nil, fmt.Errorf("the key %q occurs twice", key)
		} else {
			folded[f] = true
		}
		if object[key], err = decodeValue(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return object, err
}

func decodeNumber(n json.Number) (any, error) {
	if i, err := n.Int64(); err == nil {
		return i, nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil, errors.New("a number is too large")
	}
	return f, nil
}

// FoldCase returns a form of s that is the same for all names that differ only in case, in any script.
func FoldCase(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r > unicode.MaxASCII }) {
		return strings.ToUpper(s) // in each set of letters, the least is the capital
	}
	return strings.Map(func(r rune) rune {
		least := r
		for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
			least = min(least, f)
		}
		return least
	}, s)
}
