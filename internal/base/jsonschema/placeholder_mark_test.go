package jsonschema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestPlaceholderMark checks which values of a placeholder are marked, and that IsIn finds the marks.
func TestPlaceholderMark(t *testing.T) {
	mark := NewPlaceholderMark(1<<63 + 12345)
	value := mark.PlaceholderFor([]byte(`{"type":"object","properties":{
		"name":{"type":"string"},"mail":{"type":"string","format":"email"},"at":{"type":"string","format":"date-time"},
		"link":{"type":"string","format":"uri"},"state":{"enum":["open","closed"]},"count":{"type":"integer"},"kind":{"const":"order"},"code":{"type":"string","maxLength":3},
		"id":{"type":"integer"},"orderId":{"type":"integer"},"identity":{"type":"integer"},"paid":{"type":"integer"}}}`))
	var made map[string]json.RawMessage
	if err := json.Unmarshal(value, &made); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"name", "mail", "link", "id", "orderId", "code"} {
		if !mark.IsIn(made[name]) {
			t.Errorf("%s is %s, which is not marked", name, made[name])
		}
	}
	for _, name := range []string{"at", "state", "count", "identity", "paid"} {
		if made[name] != nil {
			t.Errorf("%s is %s, which looks like a real value", name, made[name])
		}
	}
	if string(made["kind"]) != `"order"` {
		t.Errorf("the only possible value was left out: %s", made["kind"])
	}
	var id int64
	if err := json.Unmarshal(made["id"], &id); err != nil || id >= 1<<53 {
		t.Errorf("the id %s is not a number that JavaScript has exactly: %v", made["id"], err)
	}
	for _, schema := range []string{"", "{}"} {
		if v := mark.PlaceholderFor([]byte(schema)); !json.Valid(v) || !mark.IsIn(v) {
			t.Errorf("without a schema (%q) the placeholder %s is not marked", schema, v)
		}
	}
	if other := NewPlaceholderMark(1<<62 + 54321); other.IsIn(value) {
		t.Error("two marks are equal")
	}
	text, _ := json.Marshal(map[string]string{"text": "See <" + strings.Trim(string(made["name"]), `"`) + "> & more"})
	if !mark.IsIn(text) {
		t.Errorf("%s: a text that was made from a marked value is not found", text)
	}
}
