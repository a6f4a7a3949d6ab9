package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MessageRefusal is the error answer to a text that is not a valid JSON-RPC message.
type MessageRefusal struct {
	ID    json.RawMessage // id of the request that the refusal answers; nil if the id is unknown
	Error *jsonrpc.Error
}

// ToJSON returns the refusal as a JSON-RPC message.
func (r *MessageRefusal) ToJSON() []byte {
	id := r.ID
	if id == nil {
		id = json.RawMessage("null")
	}
	text, _ := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   *jsonrpc.Error  `json:"error"`
	}{"2.0", id, r.Error}) // valid JSON and an error without data that cannot be encoded
	return text
}

func newRefusal(id json.RawMessage, code int64, format string, args ...any) *MessageRefusal {
	return &MessageRefusal{ID: id, Error: &jsonrpc.Error{Code: code, Message: fmt.Sprintf(format, args...)}}
}

// ParseMessage parses one JSON-RPC 2.0 message from a client. Keys must be spelled exactly; if a key occurs twice,
// the last one counts. A malformed response is converted to an error response for the same request. Both results are
// nil for a malformed response that names no request, because JSON-RPC does not answer responses.
func ParseMessage(text []byte) (jsonrpc.Message, *MessageRefusal) {
	if !json.Valid(text) {
		return nil, newRefusal(nil, jsonrpc.CodeParseError, "the message is not JSON")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || members == nil {
		return nil, newRefusal(nil, jsonrpc.CodeInvalidRequest, "the message is JSON, but not an object")
	}
	if _, ok := members["method"]; ok {
		return parseRequest(members)
	}
	_, result := members["result"]
	_, failed := members["error"]
	if !result && !failed {
		return nil, newRefusal(nil, jsonrpc.CodeInvalidRequest, "the message has neither method nor result nor error")
	}
	return parseResponse(members), nil
}

func parseRequest(members map[string]json.RawMessage) (jsonrpc.Message, *MessageRefusal) {
	id, err := parseID(members["id"])
	if err != nil {
		return nil, newRefusal(nil, jsonrpc.CodeInvalidRequest, "id %v", err)
	}
	r := &jsonrpc.Request{ID: id, Params: members["params"]}
	switch {
	case !isVersion2(members):
		return nil, newRefusal(members["id"], jsonrpc.CodeInvalidRequest, `jsonrpc is not "2.0"`)
	case json.Unmarshal(members["method"], &r.Method) != nil || string(members["method"]) == "null":
		return nil, newRefusal(members["id"], jsonrpc.CodeInvalidRequest, "method is not a string")
	}
	return r, nil
}

func isVersion2(members map[string]json.RawMessage) bool {
	var version string
	return json.Unmarshal(members["jsonrpc"], &version) == nil && version == "2.0"
}

// parseResponse parses a response. It returns nil if the response names no request.
func parseResponse(members map[string]json.RawMessage) jsonrpc.Message {
	id, err := parseID(members["id"])
	if err != nil || !id.IsValid() {
		return nil
	}
	r := &jsonrpc.Response{ID: id, Result: members["result"]}
	failure, failed := members["error"]
	var told *jsonrpc.Error
	switch {
	case !isVersion2(members), failed && (json.Unmarshal(failure, &told) != nil || told == nil && r.Result == nil):
		told = &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the client's answer is not a JSON-RPC response"}
	}
	if told != nil {
		r.Error, r.Result = told, nil
	}
	return r
}

// maxID bounds ids that are numbers: up to it, a float64 represents every integer exactly.
const maxID = 1 << 53

// parseID parses the id of a message. A message without an id gets the zero ID. The error text is worded to follow
// the word "id" in a sentence.
func parseID(raw json.RawMessage) (jsonrpc.ID, error) {
	if raw == nil {
		return jsonrpc.ID{}, nil
	}
	var value any
	if err := json.Unmarshal(raw, &value); err != nil {
		return jsonrpc.ID{}, fmt.Errorf("is a number that is too large")
	}
	switch v := value.(type) {
	case string:
	case float64:
		if v != math.Trunc(v) || math.Abs(v) > maxID {
			return jsonrpc.ID{}, fmt.Errorf("is not an integer between -2^53 and 2^53")
		}
	default:
		return jsonrpc.ID{}, fmt.Errorf("is neither a string nor an integer")
	}
	return jsonrpc.MakeID(value)
}

// isBatch reports whether a text is a JSON-RPC batch, or begins like one.
func isBatch(text []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("["))
}

// MaxBatch is the maximum number of messages in a batch.
const MaxBatch = 64

// SplitBatch returns the messages of a batch, or a single message as a list.
func SplitBatch(text []byte) ([]json.RawMessage, *MessageRefusal) {
	if !isBatch(text) {
		return []json.RawMessage{text}, nil
	}
	var messages []json.RawMessage
	if json.Unmarshal(text, &messages) != nil {
		return nil, newRefusal(nil, jsonrpc.CodeParseError, "the message is not JSON")
	}
	if len(messages) == 0 || len(messages) > MaxBatch {
		return nil, newRefusal(nil, jsonrpc.CodeInvalidRequest, "a batch must have 1 to %d messages", MaxBatch)
	}
	return messages, nil
}

// MessageContent counts and classifies the messages in a request body, for routing.
type MessageContent struct {
	Messages int
	Calls    int  // number of tool calls
	Begins   bool // a message begins a session
	Modern   bool // a message declares its protocol version, as clients do since version 2026-07-28
	Parts    []MessagePart
}

// MessagePart is one message of a request body. Request identifies it if it is a request, and is empty otherwise.
// Cancels identifies the request that it cancels, if it is a cancellation.
type MessagePart struct {
	Text             json.RawMessage
	Request, Cancels string
}

// keyOf returns a text that identifies a request within its session. It is empty for an invalid id. The ids 7 and "7"
// differ.
func keyOf(id jsonrpc.ID) string {
	if !id.IsValid() {
		return ""
	}
	return fmt.Sprintf("%T %v", id.Raw(), id.Raw())
}

// ExamineMessage parses a message or a batch to find out how to route it. It refuses only texts that every later
// reader would refuse, too.
func ExamineMessage(text []byte) (c MessageContent, refused *MessageRefusal) {
	messages, refused := SplitBatch(text)
	if refused != nil {
		return c, refused
	}
	for _, text := range messages {
		m, refused := ParseMessage(text)
		if refused != nil {
			return c, refused
		}
		c.Messages++
		part := MessagePart{Text: text}
		if r, ok := m.(*jsonrpc.Request); ok {
			c.addRequest(r)
			part.Request, part.Cancels = keyOf(r.ID), keyOf(cancelledBy(r))
		}
		c.Parts = append(c.Parts, part)
	}
	return c, nil
}

// cancelledBy returns the id of the request that a notification cancels, or an invalid id.
func cancelledBy(r *jsonrpc.Request) jsonrpc.ID {
	var params struct {
		ID json.RawMessage `json:"requestId"`
	}
	if r.Method != "notifications/cancelled" || json.Unmarshal(r.Params, &params) != nil {
		return jsonrpc.ID{}
	}
	id, err := parseID(params.ID)
	if err != nil {
		return jsonrpc.ID{}
	}
	return id
}

func (c *MessageContent) addRequest(r *jsonrpc.Request) {
	var params, meta map[string]json.RawMessage
	_ = json.Unmarshal(r.Params, &params) // what is no object says nothing
	_ = json.Unmarshal(params["_meta"], &meta)
	if r.Method == "tools/call" {
		c.Calls++
	}
	c.Begins = c.Begins || r.Method == "initialize"
	if _, ok := meta[mcp.MetaKeyProtocolVersion]; ok {
		c.Modern = true
	}
}
