package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	fastjson "github.com/segmentio/encoding/json"
)

// decodeMessages decodes a JSON-RPC message or a batch of messages. It accepts an error response without an id.
func decodeMessages(data []byte) ([]jsonrpc.Message, bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 || data[0] != '[' {
		msg, ok := decodeOne(data)
		return []jsonrpc.Message{msg}, ok
	}
	var batch []json.RawMessage
	if json.Unmarshal(data, &batch) != nil || len(batch) == 0 {
		return nil, false
	}
	msgs := make([]jsonrpc.Message, 0, len(batch))
	for _, raw := range batch {
		msg, ok := decodeOne(raw)
		if !ok {
			return nil, false
		}
		msgs = append(msgs, msg)
	}
	return msgs, true
}

func decodeOne(data []byte) (jsonrpc.Message, bool) {
	if msg, ok := decodeMessage(data); ok {
		return msg, true
	}
	var lost struct {
		Version string         `json:"jsonrpc"`
		ID      messageID      `json:"id"`
		Error   *jsonrpc.Error `json:"error"`
	}
	if unmarshalExact(data, &lost) != nil || lost.Version != "2.0" || lost.ID.invalid || lost.ID.IsValid() || lost.Error == nil {
		return nil, false
	}
	return &jsonrpc.Response{Error: lost.Error}, true
}

// unmarshalExact decodes JSON with exact member names, as MCP requires. encoding/json alone would accept "Content"
// for "content". If a member occurs twice, the last one counts. Never pass a value of type any for data from servers: the
// decoder would read nested values again at each level, so 200 KB of nested brackets would take minutes.
func unmarshalExact(data []byte, v any) error {
	if tooDeep(data) {
		return errTooDeep
	}
	rest, err := fastjson.Parse(data, v, fastjson.DontMatchCaseInsensitiveStructFields)
	if err == nil && len(bytes.TrimSpace(rest)) > 0 {
		err = errors.New("text follows the JSON value")
	}
	return err
}

// maxDepth bounds the nesting depth of a message, because the decoder is recursive.
const maxDepth = 1000

var errTooDeep = fmt.Errorf("it is nested more than %d deep", maxDepth)

// messageID is the id of a message, or a progress token: a string, a number or null. For any other value, invalid is true.
// If a message has several ids, the last one counts, as with the SDK's decoder.
type messageID struct {
	jsonrpc.ID
	invalid bool
}

// UnmarshalJSON implements json.Unmarshaler. It does not look into lists and objects.
func (i *messageID) UnmarshalJSON(data []byte) error {
	*i = messageID{invalid: true}
	if c := firstByte(data); c == '{' || c == '[' {
		return nil
	}
	var value any
	if _, err := fastjson.Parse(data, &value, 0); err != nil {
		return err
	}
	id, err := jsonrpc.MakeID(value)
	*i = messageID{ID: id, invalid: err != nil}
	return nil
}

// decodeMessage decodes a message like jsonrpc.DecodeMessage but does not copy it: the result refers to data.
func decodeMessage(data []byte) (jsonrpc.Message, bool) {
	var m struct {
		Version string          `json:"jsonrpc"`
		ID      messageID       `json:"id"`
		Method  json.RawMessage `json:"method"`
		Params  json.RawMessage `json:"params"`
		Result  json.RawMessage `json:"result"`
		Error   *jsonrpc.Error  `json:"error"`
	}
	const flags = fastjson.DontMatchCaseInsensitiveStructFields | fastjson.DontCopyRawMessage
	if tooDeep(data) {
		return nil, false
	}
	if _, err := fastjson.Parse(data, &m, flags); err != nil || m.Version != "2.0" || m.ID.invalid {
		return nil, false
	}
	id := m.ID.ID
	if len(m.Method) > 0 {
		var method string
		_, err := fastjson.Parse(m.Method, &method, flags)
		return &jsonrpc.Request{ID: id, Method: method, Params: m.Params}, err == nil
	}
	resp := &jsonrpc.Response{ID: id, Result: m.Result}
	if m.Error != nil {
		resp.Error = m.Error
	}
	return resp, id.IsValid()
}

// tooDeep reports whether JSON is nested deeper than maxDepth.
func tooDeep(data []byte) bool {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) <= maxDepth {
		return false
	}
	depth := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = stringEnd(data, i+1)
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0)
		}
	}
	return false
}

// stringEnd returns the index of the quote that ends a JSON string. i is the index of the string's first character.
func stringEnd(data []byte, i int) int {
	for i < len(data) {
		i += plainPrefix(data[i:])
		if i < len(data) && data[i] == '"' {
			return i
		}
		i += 2 // an escaped byte
	}
	return i
}
