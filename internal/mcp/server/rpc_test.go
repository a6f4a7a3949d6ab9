package server

import (
	"reflect"
	"strings"
	"testing"
)

// TestExamine checks that ExamineMessage counts messages and calls by exactly spelled keys, as the server does, and
// refuses texts that are not valid messages.
func TestExamine(t *testing.T) {
	for body, want := range map[string]MessageContent{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`:                                                                                           {Messages: 1, Calls: 1},
		`{"jsonrpc":"2.0","id":1,"method":"tools\/call","Method":"ping"}`:                                                                          {Messages: 1, Calls: 1},
		`[{"jsonrpc":"2.0","id":1,"method":"tools/call"},{"jsonrpc":"2.0","id":2,"method":"tools/call"},{"jsonrpc":"2.0","id":3,"method":"ping"}]`: {Messages: 3, Calls: 2},
		`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"_meta":7}}`:                                                                    {Messages: 1, Begins: true},
		`{"jsonrpc":"2.0","method":"x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":null}}}`:                                       {Messages: 1, Modern: true},
		`{"jsonrpc":"2.0","id":7,"result":{}}`:                                                                                                     {Messages: 1},
	} {
		got, refused := ExamineMessage([]byte(body))
		if len(got.Parts) != got.Messages {
			t.Errorf("%s: %d parts", body, len(got.Parts))
		}
		if got.Parts = nil; refused != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v", body, got, refused)
		}
	}
	for body, want := range map[string]int64{
		"": -32700, "[": -32700, `{"a":1}{"b":2}`: -32700, "7": -32600, "null": -32600, "[]": -32600, "[7]": -32600, "[[]]": -32600, "{}": -32600,
		`{"jsonrpc":"1.0","id":1,"method":"tools/call"}`: -32600, `{"jsonrpc":"2.0","id":true,"method":"tools/call"}`: -32600,
		`{"jsonrpc":"2.0","id":1,"method":7}`: -32600, "[" + strings.Repeat(`{"jsonrpc":"2.0","method":"x"},`, 64) + `{"jsonrpc":"2.0","method":"x"}]`: -32600,
	} {
		if _, refused := ExamineMessage([]byte(body)); refused == nil || refused.Error.Code != want {
			t.Errorf("%s: %v, want %d", body, refused, want)
		}
	}
}
