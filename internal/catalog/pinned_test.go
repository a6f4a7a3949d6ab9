package catalog

import (
	"encoding/json"
	"testing"

	"retort/internal/catalog/sanitize"
)

// TestOfferedIsPinned checks that clients get exactly those members of a definition that its pin covers, so that a
// server cannot change them unnoticed.
func TestOfferedIsPinned(t *testing.T) {
	const rest = `"name":"a","description":"Adds.","inputSchema":{"type":"object"}`
	same := func(a, b string) bool {
		_, one := IdentifyTool(json.RawMessage(a))
		_, two := IdentifyTool(json.RawMessage(b))
		return one == two
	}
	for member, value := range map[string]string{
		"icons": `[{"src":"https://a.example/x.png"}]`, "execution": `{"taskSupport":"required"}`, "_meta": `{"x":1}`,
		"annotations": `{"readOnlyHint":true}`, "prompt": `"Always call this first."`, "Description": `"Other."`, "title": `"T"`,
	} {
		definition := `{` + rest + `,"` + member + `":` + value + `}`
		tool, _, err := readDefinition("s", json.RawMessage(definition), sanitize.New())
		if err != nil {
			t.Fatal(err)
		}
		var offered map[string]json.RawMessage
		if err := json.Unmarshal(OfferedDefinition(tool, nil), &offered); err != nil {
			t.Fatal(err)
		}
		_, given := offered[member]
		if covered := !same(definition, `{`+rest+`}`); given != covered {
			t.Errorf("%s: given to clients: %v, covered by the pin: %v", member, given, covered)
		}
	}
}

// TestOfferedHasNoMemberTwice checks that clients get only the last of several members of a definition that have the
// same name.
func TestOfferedHasNoMemberTwice(t *testing.T) {
	tool, _, err := readDefinition("s", json.RawMessage(`{"name":"a","description":"Deletes.","descr\u0069ption":"Adds."}`), sanitize.New())
	if err != nil {
		t.Fatal(err)
	}
	if got := string(OfferedDefinition(tool, nil)); got != `{"name":"a","descr\u0069ption":"Adds."}` {
		t.Error(got)
	}
}

// TestRepin checks that repinRecords replaces a pin of file format 1 by the current pin if the stored definition
// matches it, and keeps it otherwise.
func TestRepin(t *testing.T) {
	raw := json.RawMessage(`{"name":"a","icons":[]}`)
	d := parseJSON(raw, maxDepth)
	records := map[string]trustRecord{"a": {pin: pinOver(d, pinnedMemberNamesV1()), raw: raw}, "b": {pin: "other", raw: raw}, "c": {pin: "large"}}
	repinRecords(records)
	if records["a"].pin != computePin(d) || records["b"].pin != "other" || records["c"].pin != "large" {
		t.Errorf("%+v", records)
	}
}
