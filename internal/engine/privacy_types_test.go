package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/engine"
)

const staffTool = `{"name":"list_staff","description":"Lists staff","inputSchema":{"type":"object","properties":{"email":{"type":"string"}}},"annotations":{"readOnlyHint":true},
	"outputSchema":{"type":"object","properties":{"staff":{"type":"array","items":{"type":"object","required":["name","email","phone","badge"],
		"properties":{"name":{"type":"string"},"email":{"type":"string"},"phone":{"type":"string"},"badge":{"type":"string"}}}}},"required":["staff"]}}`

func staff(t *testing.T) *engine.Engine {
	t.Helper()
	hr := &scriptedServer{tools: listing(strings.Join(strings.Fields(staffTool), " ")), answer: func(string, json.RawMessage) string {
		const rows = `{"staff":[{"name":"Ann Holstad","email":"ann@corp.example","phone":"+47 2200 0001","badge":"EMP-000001"},{"name":"Bo Vingstad","email":"bo@corp.example","phone":"+47 2200 0002","badge":"EMP-000002"}]}`
		return `{"content":[],"structuredContent":` + rows + `}`
	}}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(),
		Settings: "pii: {types: {employee_id: {pattern: 'EMP-[0-9]{6}'}}, keys: {badge: employee_id}}", Servers: []engine.Server{{Name: "hr", Dial: hr.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e
}

// TestSealedTypesInPrograms checks that generated types show which strings are tokens, that these can be used as
// strings, and that values which the model wrote itself are not hidden.
func TestSealedTypesInPrograms(t *testing.T) {
	e := staff(t)
	found, err := e.Describe(t.Context(), []string{"hr.listStaff"}, core.TypeScript)
	if err != nil || len(found) != 1 || !strings.Contains(found[0].Definition, "email: pii.Email") || !strings.Contains(found[0].Definition, `badge: pii.Sealed<"employee_id">`) || !strings.Contains(found[0].Definition, "name: string") {
		t.Fatalf("%v %v", found, err)
	}
	o := e.Execute(t.Context(), engine.Request{Code: `
		const { staff } = await hr.listStaff();
		const count: Record<string, number> = {};
		const seen = new Map<string, pii.Email>(), plain: string[] = [];
		let last: pii.Email = 'nobody';
		for (const s of staff) {
			count[s.email] = (count[s.email] ?? 0) + 1;
			seen.set(s.phone, s.email);
			plain.push(s.email, s.badge);
			last = s.email;
			if (s.email === 'ann@corp.example') await hr.listStaff({ email: s.email });
		}
		const sorted = await pii.sortBy(staff, s => s.email);
		return { count, plain, last: seen.get(staff[0].phone), n: sorted.length, domain: await pii.domain(staff[1].email) };`})
	if o.Status != core.StatusOK || len(o.Warnings) > 0 || o.Stats.ToolCalls != 2 {
		t.Fatalf("%+v %v %v", o, o.Error, o.Warnings)
	}
	if want := `{"count":{"ann@corp.example":1,"[EMAIL_2]":1},"plain":["ann@corp.example","[EMPLOYEE_ID_1]","[EMAIL_2]","[EMPLOYEE_ID_2]"],"last":"ann@corp.example","n":2,"domain":"corp.example"}`; string(o.Result) != want {
		t.Errorf("%s", o.Result)
	}
	mixed := e.Execute(t.Context(), engine.Request{Code: `const { staff } = await hr.listStaff(); const to: pii.Email = staff[0].phone; return to;`})
	if mixed.Status != core.StatusOK || len(mixed.Warnings) != 1 || !strings.Contains(mixed.Warnings[0], "not assignable") {
		t.Errorf("a phone number for an address: %+v", mixed)
	}
}
