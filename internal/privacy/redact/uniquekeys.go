package redact

import (
	"bytes"
	"encoding/json"
	"fmt"

	"retort/internal/base/jsonscan"
)

// withUniqueKeys returns a JSON document in which the keys of each object differ. It appends a number to each repeated
// key, for example " (2)". Text that is not JSON stays as it is.
func withUniqueKeys(document []byte) []byte {
	if !json.Valid(document) {
		return document
	}
	var out []byte
	var open []map[string]int // number of occurrences of each key in each object or array that is open
	from := 0
	for i := 0; i < len(document); i++ {
		switch document[i] {
		case '{', '[':
			open = append(open, nil)
		case '}', ']':
			open = open[:len(open)-1]
		case '"':
			start := i + 1
			i, _ = jsonscan.StringEnd(document, start)
			if next := bytes.TrimLeft(document[i+1:], " \t\r\n"); len(next) == 0 || next[0] != ':' {
				continue
			}
			keys := &open[len(open)-1]
			if *keys == nil {
				*keys = map[string]int{}
			}
			key := string(document[start:i])
			if (*keys)[key]++; (*keys)[key] > 1 {
				out = append(append(out, document[from:i]...), fmt.Sprintf(" (%d)", (*keys)[key])...)
				from = i
			}
		}
	}
	return append(out, document[from:]...)
}
