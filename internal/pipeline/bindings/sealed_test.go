package bindings

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/privacy/pii"
)

// TestSealed checks that strings which programs get as tokens have a type in namespace pii when they occur in
// results, but not when they occur in arguments.
func TestSealed(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"email":{"type":"string"},"emails":{"type":"array","items":{"type":"string"}},
		"badge":{"type":["string","null"]},"name":{"type":"string"},"people":{"$ref":"#/$defs/people"}},
		"$defs":{"people":{"type":"array","items":{"type":"object","properties":{"card":{"type":"string"},"count":{"type":"number"}}}}}}`)
	types := map[string]string{"email": "email", "emails": "email", "badge": "badge", "card": "credit_card", "count": "phone"}
	tool := &core.Tool{Server: "crm", Name: "find", TypeScript: "find", InputSchema: schema, OutputSchema: schema, Sealed: func(p string) string { return types[p] }}
	in, out, _ := strings.Cut(ToolDeclaration(tool), "interface FindOutput")
	if strings.Contains(in, "pii.") {
		t.Errorf("arguments: %s", in)
	}
	for _, want := range []string{"email?: pii.Email;", "emails?: pii.Email[];", `badge?: pii.Sealed<"badge"> | null;`, "name?: string;", "card?: pii.CreditCard;", "count?: number }"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
	if !strings.Contains(wrapperSource(tool), "type pii") {
		t.Error("the file does not import the types")
	}
	if tool.Sealed = nil; strings.Contains(wrapperSource(tool), "pii") {
		t.Error("nothing is sealed")
	}
}

// TestSealedTypes checks that namespace pii has an alias for each built-in type of personal data, and that sealedName
// uses this alias.
func TestSealedTypes(t *testing.T) {
	for _, want := range []string{`type Email = Sealed<"email">;`, `type NationalId = Sealed<"national_id">;`} {
		if !strings.Contains(sealedNames(), want) {
			t.Errorf("no %s in %s", want, sealedNames())
		}
	}
	for _, typ := range pii.AllTypes() {
		name := strings.TrimPrefix(sealedName(string(typ)), "pii.")
		if !strings.Contains(sealedNames(), "  type "+name+` = Sealed<"`+string(typ)+`">;`) {
			t.Errorf("there is no %s", name)
		}
	}
}
