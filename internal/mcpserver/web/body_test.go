package web

import "testing"

// Keys count as they are spelled: what counts here is what is done.
func TestLook(t *testing.T) {
	for body, want := range map[string]asked{
		`{"method":"tools/call"}`:                              {messages: 1, calls: 1},
		`{"method":"tools\/call","Method":"ping"}`:             {messages: 1, calls: 1},
		`[{"method":"tools/call"},{"method":"tools/call"},{}]`: {messages: 3, calls: 2},
		`{"method":"initialize","params":{"_meta":7}}`:         {messages: 1, begins: true},
		`{"params":{"_meta":{"` + versionKey + `":null}}}`:     {messages: 1, modern: true},
	} {
		if got, ok := look([]byte(body)); !ok || got != want {
			t.Errorf("%s: %+v, %v", body, got, ok)
		}
	}
	for _, body := range []string{"", "7", "null", "[]", "[7]", `{"a":1}{"b":2}`, "[[]]", "["} {
		if _, ok := look([]byte(body)); ok {
			t.Errorf("%s is taken for a message", body)
		}
	}
}
