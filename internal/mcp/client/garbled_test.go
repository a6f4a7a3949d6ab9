//go:build unix

package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf16"

	"retort/internal/core"
)

// utf16LE encodes a text in little-endian UTF-16.
func utf16LE(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		b.WriteByte(byte(u))
		b.WriteByte(byte(u >> 8))
	}
	return b.String()
}

// TestGarbledAnswer checks that an answer that is not a valid message fails its call immediately with an error that
// blames the server. Other lines that contain the same id fail no call.
func TestGarbledAnswer(t *testing.T) {
	for name, answer := range map[string]string{
		"error is a string":  `{"jsonrpc":"2.0","id":%s,"error":"no"}`,
		"too deep":           `{"jsonrpc":"2.0","id":%s,"result":{"a":` + strings.Repeat("[", 1001) + strings.Repeat("]", 1001) + `}}`,
		"id is a string":     `{"jsonrpc":"2.0","id":"%s","result":{}}`,
		"other case":         `{"JSONRPC":"2.0","ID":%s,"RESULT":{}}`,
		"another version":    `{"jsonrpc":"1.0","id":%s,"result":{}}`,
		"no version":         `{"id":%s,"result":{}}`,
		"error of bad types": `{"jsonrpc":"2.0","id":%s,"error":{"code":"x","message":7}}`,
		"not JSON":           `{"jsonrpc":"2.0","id":%s,"result":{"a":}}`,
		"cut":                `{"jsonrpc":"2.0","id":%s,"result":{"a":1}`,
		"in a batch":         `[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":%s,"error":"no"}]`,
		"UTF-16":             "UTF-16",
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
				s.on["tools/call"] = func(s *scripted, r request) bool {
					line := fmt.Sprintf(strings.ReplaceAll(answer, "UTF-16", `{"jsonrpc":"2.0","id":%s,"result":{}}`), r.ID)
					if answer == "UTF-16" {
						line = utf16LE(line)
					}
					s.line("%s", line)
					return true
				}
			})})
			_, err := p.Call(t.Context(), "s", "t", nil)
			wantError(t, err, core.KindToolError, "the server's answer to the call cannot be read")
			if !errors.Is(err, ErrOutcomeUnknown) {
				t.Error("it is not said that the call may have taken effect")
			}
		})
	}
	for name, line := range map[string]string{
		"log":         `{"level":"info","id":%s,"msg":"working","error":"none"}`,
		"request":     `{"jsonrpc":"2.0","id":%s,"method":7}`,
		"another id":  `{"jsonrpc":"2.0","id":99%s,"error":"no"}`,
		"deeper":      `{"jsonrpc":"1.0","params":{"id":%s},"result":{}}`,
		"in a string": `{"jsonrpc":"1.0","text":"\"id\":%s","result":{}}`,
	} {
		t.Run(name, func(t *testing.T) {
			p := newPool(t, Options{}, ServerSpec{Name: "s", Dial: dialScripted(func(s *scripted) {
				s.on["tools/call"] = func(s *scripted, r request) bool {
					s.line(line, r.ID)
					return false
				}
			})})
			if _, err := p.Call(t.Context(), "s", "t", nil); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestMembersOfAnswersAreExact checks that the names of members in a server's answer are matched case-sensitively.
func TestMembersOfAnswersAreExact(t *testing.T) {
	var v struct {
		Inner struct {
			Name string `json:"name"`
		} `json:"inner"`
		Name string `json:"name"`
	}
	if err := unmarshalExact([]byte(`{"name":"a","Name":"B","inner":{"name":"c","NAME":"D"}} `), &v); err != nil || v.Name != "a" || v.Inner.Name != "c" {
		t.Errorf("%+v, %v", v, err)
	}
	if unmarshalExact([]byte(`{} {}`), &v) == nil {
		t.Error("a second value is taken")
	}
	if task := taskAnswered(json.RawMessage(`{"Task":{"taskId":"1","status":"working"}}`), protocolEra{protocol: protocolLegacy}); task != nil {
		t.Errorf("%+v", task)
	}
}
