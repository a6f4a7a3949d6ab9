// Package canonjson converts JSON to a canonical form. The engine compares canonical forms to decide whether two calls
// have equal arguments. The package does no I/O.
package canonjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"
)

var errAmbiguous = errors.New("the JSON can be read in more than one way")

// MarshalOrKeep returns the canonical form of raw, or raw itself if raw is not JSON. Unlike MarshalCanonical it
// accepts an object with a repeated key, and keeps the last value of that key. It must be used only where the result
// replaces raw, so that all later readers see the same value.
func MarshalOrKeep(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return raw
	}
	text, err := encodeJSON(v)
	if err != nil {
		return raw
	}
	return text
}

// MarshalCanonical returns raw with sorted keys and without white space between tokens. Numbers keep their digits, and
// <, > and & are not escaped. It returns an error if raw is not exactly one JSON value, or if servers could read raw
// in different ways. Such JSON contains invalid UTF-8, an unpaired surrogate, or an object that contains a key twice.
func MarshalCanonical(raw json.RawMessage) (json.RawMessage, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, errAmbiguous
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := decodeValue(d)
	if err != nil {
		return nil, err
	}
	return encodeJSON(v)
}

// encodeJSON writes v with sorted keys and without HTML escapes.
func encodeJSON(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// OrRaw returns the canonical form of raw, or raw itself if MarshalCanonical fails. Two texts without a canonical form
// therefore count as equal only if their bytes are equal.
func OrRaw(raw json.RawMessage) json.RawMessage {
	if c, err := MarshalCanonical(raw); err == nil {
		return c
	}
	return raw
}

// decodeValue reads the next value of valid JSON. It returns an error for JSON that servers could read in different
// ways.
func decodeValue(d *json.Decoder) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if t == '{' {
			return decodeObject(d)
		}
		return decodeArray(d)
	case string:
		return t, checkString(t)
	}
	return token, nil
}

func decodeObject(d *json.Decoder) (any, error) {
	members := map[string]any{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := token.(string)
		if _, twice := members[key]; twice {
			return nil, errAmbiguous
		}
		if err := checkString(key); err != nil {
			return nil, err
		}
		if members[key], err = decodeValue(d); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return members, err
}

func decodeArray(d *json.Decoder) (any, error) {
	items := []any{}
	for d.More() {
		item, err := decodeValue(d)
		if err != nil {
			return nil, err
		}
		items = append(items, item)
	}
	_, err := d.Token()
	return items, err
}

// checkString returns an error if a string contains U+FFFD, because the decoder replaces invalid input with that
// character.
func checkString(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errAmbiguous
	}
	return nil
}
