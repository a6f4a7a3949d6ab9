package relay

import (
	"strings"
	"testing"

	"retort/internal/core"
)

// TestResultMembersAreExact checks that members of a tool result must be spelled exactly, and that a result in which
// a member occurs twice is an error.
func TestResultMembersAreExact(t *testing.T) {
	for result, want := range map[string]string{
		`{"content":[{"type":"text","text":"lower"}],"Content":[{"type":"text","text":"UPPER"}],"IsError":true}`: `"lower"`,
		`{"content":[{"type":"text","text":"lower","Text":"UPPER"}]}`:                                            `"lower"`,
		`{"CONTENT":[{"type":"text","text":"UPPER"}]}`:                                                           `null`,
		`{"content":[],"structuredContent":{"a":1,"A":2}}`:                                                       `{"a":1,"A":2}`,
		`{"content":[],"structuredContent":{"content":1,"isError":true},"isError":false}`:                        `{"content":1,"isError":true}`,
		`{"content":[{"type":"text","text":"the \"text\" and \"type\" of \"content\""}]}`:                        `"the \"text\" and \"type\" of \"content\""`,
		`{"content":[{"type":"text","text":"a\u0041"}]}`:                                                         `"aA"`,
		`{"content":[],"content":[{"type":"text","text":"b"}]}`:                                                  `error: the member "content" occurs twice`,
		`{"isError":true,"isError":false,"content":[]}`:                                                          `error: the member "isError" occurs twice`,
		`{"content":[{"type":"text","text":"a","text":"b","type":"text"}]}`:                                      `error: the member "text" occurs twice`,
		`{"content":[{"type":"text","text":"a","t\u0065xt":"b"}]}`:                                               `error: the member "text" occurs twice`,
		`{"content":[{"type":"text","text":"a"}],"structuredContent":{]}`:                                        `error: it is not valid JSON`,
	} {
		value, err := toValue(t.Context(), []byte(result), ExecutionContext{})
		got := string(value)
		if err != nil {
			got = "error: " + err.Error()
		}
		if text, refused := strings.CutPrefix(want, "error: "); got != want && (!refused || err == nil || !strings.Contains(got, text) || core.AsError(err).Kind != core.KindToolError) {
			t.Errorf("%s\ngot  %s\nwant %s", result, got, want)
		}
	}
}
