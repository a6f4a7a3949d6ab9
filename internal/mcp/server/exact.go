package server

import (
	"bytes"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// exactResult represents a result that is sent exactly as an upstream server sent it, with its order of keys, its
// digits of numbers and kinds of content that the SDK does not know.
type exactResult struct {
	mcp.ResultBase
	raw    json.RawMessage
	modern bool // the result must have the member resultType, as protocol version 2026-07-28 requires
}

// MarshalJSON returns the result as the server sent it. It adds two members if the result lacks them: resultType,
// which every result must have since protocol version 2026-07-28, and _meta with the content of Meta.
func (e *exactResult) MarshalJSON() ([]byte, error) {
	raw := e.raw
	if e.modern {
		raw = orMember(raw, "resultType", "complete")
	}
	if len(e.Meta) > 0 {
		raw = orMember(raw, "_meta", e.Meta)
	}
	return raw, nil
}

func isModern(req mcp.Request) bool {
	r, ok := req.(interface{ ProtocolVersion() string })
	return ok && r.ProtocolVersion() >= multiRoundTrip
}

// findMember returns the start and end offsets of a member's value in a JSON object, or 0, 0 if there is no such
// member.
func findMember(object []byte, name string) (from, to int) {
	dec := json.NewDecoder(bytes.NewReader(object))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return 0, 0
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return 0, 0
		}
		var value json.RawMessage
		if dec.Decode(&value) != nil {
			return 0, 0
		}
		if key == name {
			to = int(dec.InputOffset())
			return to - len(value), to
		}
	}
	return 0, 0
}

// withMember returns a JSON object with the value of one member replaced.
func withMember(object json.RawMessage, name string, value any) json.RawMessage {
	text, err := marshalPlain(value)
	if err != nil {
		return object
	}
	from, to := findMember(object, name)
	if to == 0 {
		return orMember(object, name, value)
	}
	out := append(make([]byte, 0, len(object)+len(text)), object[:from]...)
	return append(append(out, text...), object[to:]...)
}

// orMember adds a member at the beginning of a JSON object, unless the object already has a member with this name. It
// returns a text that is not an object unchanged.
func orMember(object json.RawMessage, name string, value any) json.RawMessage {
	text, err := marshalPlain(map[string]any{name: value})
	rest := bytes.TrimSpace(object)
	if _, to := findMember(object, name); to != 0 || err != nil || len(rest) < len("{}") || rest[0] != '{' {
		return object
	}
	rest = bytes.TrimSpace(rest[1:]) // past the brace
	out := text[:len(text)-1]
	if rest[0] != '}' {
		out = append(out, ',')
	}
	return append(out, rest...)
}
