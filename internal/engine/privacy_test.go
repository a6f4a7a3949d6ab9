package engine_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
)

func textResult(text string) string {
	quoted, _ := json.Marshal(text)
	return `{"content":[{"type":"text","text":` + string(quoted) + `}]}`
}

func listing(tools string) func() string { return func() string { return tools } }

func tool(name, properties string, reads bool) string {
	return fmt.Sprintf(`{"name":%q,"description":"%s","inputSchema":{"type":"object","properties":{%s}},"annotations":{"readOnlyHint":%v}}`, name, name, properties, reads)
}

const contacts = 10_000

// contactRows returns rows with personal data, as a drive returns them, and some of the personal values in them.
func contactRows() (rows string, personal []string) {
	var b strings.Builder
	for i := range contacts {
		first, last := []string{"Ingrid", "Matteo", "Aisha", "Pavel"}[i%4], fmt.Sprintf("%sstad%s", []string{"Hol", "Ving", "Bjer", "Skar"}[i/4%4], string(rune('a'+i%26)))
		mail, phone := fmt.Sprintf("%s.%s%d@customer%d.example", strings.ToLower(first), last, i, i%97), fmt.Sprintf("+47 2%03d %04d", i%1000, i)
		fmt.Fprintf(&b, `%s{"first_name":%q,"last_name":%q,"email":%q,"phone":%q,"score":%d}`, map[bool]string{true: ",", false: ""}[i > 0], first, last, mail, phone, i%100)
		if i%500 == 0 {
			personal = append(personal, mail, phone, last)
		}
	}
	return "[" + b.String() + "]", personal
}

// openContacts opens an engine with a drive that has contacts, and a CRM to copy them to.
func openContacts(t *testing.T, settings string) (e *engine.Engine, drive, crm *scriptedServer, personal []string) {
	t.Helper()
	rows, personal := contactRows()
	drive = &scriptedServer{tools: listing(tool("get_rows", `"sheet":{"type":"string"}`, true)), answer: func(string, json.RawMessage) string { return textResult(rows) }}
	crm = &scriptedServer{
		tools: listing(tool("create_contacts", `"contacts":{"type":"array","items":{"type":"object","properties":{"email":{"type":"string","format":"email"},"phone":{"type":"string"},"name":{"type":"string"}}}}`, false) + "," +
			tool("find_contact", `"email":{"type":"string"}`, true)),
		answer: func(name string, arguments json.RawMessage) string {
			if name == "find_contact" {
				return `{"isError":true,` + textResult("404: there is nobody with " + string(arguments) + " but kari@leak.example")[1:]
			}
			return textResult(`{"created": true}`)
		},
	}
	drive.answer = func(string, json.RawMessage) string { return textResult(rows) }
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Settings: settings,
		Servers: []engine.Server{{Name: "drive", Dial: drive.dial}, {Name: "crm", Dial: crm.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e, drive, crm, personal
}

const copies = `
	const rows: any[] = await drive.getRows({sheet: 'contacts'}) as any;
	const contacts = rows.map(r => ({name: r.first_name + ' ' + r.last_name, email: r.email, phone: r.phone}));
	console.log('first:', contacts[0].name, contacts[0].email);
	for (let i = 0; i < contacts.length; i += 1000) await crm.createContacts({contacts: contacts.slice(i, i + 1000)});
	return {copied: contacts.length, same: new Set(contacts.map(c => c.email)).size, sample: contacts.slice(0, 2)};`

// TestContactsFromDriveToCRM checks that a program copies contacts from a drive to a CRM, which gets the real values,
// while the model sees none of them.
func TestContactsFromDriveToCRM(t *testing.T) {
	e, _, crm, personal := openContacts(t, "servers: {crm: {pii: {reveal: [email, phone, name]}}}")
	o := e.Execute(t.Context(), engine.Request{Code: copies})
	told, _ := json.Marshal(o)
	if o.Status != core.StatusOK || !strings.Contains(string(o.Result), fmt.Sprintf(`"copied":%d,"same":%d`, contacts, contacts)) {
		t.Fatalf("%+v %+v %s", o.Status, o.Error, o.Result)
	}
	got := crm.got()
	for _, value := range personal {
		if strings.Contains(string(told), value) {
			t.Errorf("the model sees %s in %s", value, told)
		}
		if !strings.Contains(got, value) {
			t.Errorf("the crm did not get %s", value)
		}
	}
	if strings.Contains(got, "EMAIL_") || !strings.Contains(o.Output, "[EMAIL_1]") {
		t.Errorf("the crm got tokens, or the model none: %s", o.Output)
	}
}

// TestCrossingIsAsked checks that a person is asked before personal values of one server are sent to another server,
// unless a rule allows it. A model that reads the question must see tokens instead of the values.
func TestCrossingIsAsked(t *testing.T) {
	e, _, crm, personal := openContacts(t, "permissionLevel: execute_full\napproval: {autoApproveHigh: true}")
	o := e.Execute(t.Context(), engine.Request{Code: copies})
	told, _ := json.Marshal(o)
	if o.Status != core.StatusPendingApproval || len(o.Approvals) != 1 || !strings.Contains(o.Approvals[0].Rule, "personal data is sent to crm: email from drive; name from drive; phone from drive") || crm.got() != "" {
		t.Fatalf("%.1000s", told)
	}
	for _, value := range personal {
		if strings.Contains(string(told), value) {
			t.Errorf("the model sees %s", value)
		}
	}
	waiting := e.Waiting(o.ExecutionID)
	if !strings.Contains(waiting[0].RenderText(), personal[0]) || strings.Contains(waiting[0].ForModel().RenderText(), personal[0]) {
		t.Error("a person is to see the values, and a model is not")
	}
	if err := e.Decide(waiting[0].ID, waiting[0].Digest, core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}); err != nil {
		t.Fatal(err)
	}
	done := e.Resume(t.Context(), o.ExecutionID, 20*time.Second)
	if done.Status != core.StatusOK || !strings.Contains(crm.got(), personal[0]) {
		t.Errorf("%+v %+v", done.Status, done.Error)
	}
	var asked atomic.Int64
	no := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{}, &asked))
	if o := e.Execute(no, engine.Request{Code: `const r: any = await drive.getRows({}); return await crm.findContact({email: r[3].email})`}); o.Status != core.StatusDenied || asked.Load() != 1 {
		t.Errorf("a call that reads takes it there unasked: %+v", o)
	}
}

// TestErrorsAreHidden checks that personal values are hidden in errors of servers and in errors of the engine about
// arguments.
func TestErrorsAreHidden(t *testing.T) {
	e, _, crm, _ := openContacts(t, "servers: {crm: {pii: {reveal: [email]}}}")
	o := e.Execute(t.Context(), engine.Request{Code: `
		const r: any = await drive.getRows({});
		try { await crm.findContact({email: r[0].email}) } catch (e: any) { console.log(e.message) }
		try { await crm.findContact({email: r[0].email, other: 1} as any) } catch (e: any) { console.log(e.message) }
		await crm.createContacts({contacts: r[0].email});`})
	told, _ := json.Marshal(o)
	if strings.Contains(string(told), "customer0.example") || strings.Contains(string(told), "leak.example") || !strings.Contains(o.Output, "there is nobody with") {
		t.Errorf("%s", told)
	}
	if !strings.Contains(crm.got(), "customer0.example") {
		t.Errorf("the crm got %s", crm.got())
	}
}

// TestTokensOfSessions checks that tokens are valid only in the session in which they were created, also after a
// restart.
func TestTokensOfSessions(t *testing.T) {
	e, _, crm, personal := openContacts(t, "servers: {crm: {pii: {reveal: [email]}}}")
	o := e.Execute(t.Context(), engine.Request{Session: "a", Code: `const r: any = await drive.getRows({}); return r[0].email`})
	var token string
	if json.Unmarshal(o.Result, &token) != nil || !strings.HasPrefix(token, "[EMAIL_") {
		t.Fatalf("%s %+v", o.Result, o.Error)
	}
	send := func(session string) core.Outcome {
		return e.Execute(t.Context(), engine.Request{Session: session, Code: `try { await crm.findContact({email: '` + token + `'}) } catch (e: any) { if (e.kind === 'policy') throw e }`})
	}
	if o := send("a"); o.Status != core.StatusOK || !strings.Contains(crm.got(), personal[0]) {
		t.Errorf("%+v %+v %s", o.Status, o.Error, crm.got())
	}
	before := crm.got()
	if o := send("b"); o.Status != core.StatusDenied || !strings.Contains(o.Error.Message, "cannot be used in this session") || crm.got() != before {
		t.Errorf("%+v %+v", o, o.Error)
	}
}

// TestPrivacyOff checks that the settings can switch the hiding of personal values off.
func TestPrivacyOff(t *testing.T) {
	e, _, _, personal := openContacts(t, "piiTokenization: false")
	o := e.Execute(t.Context(), engine.Request{Code: `const r: any = await drive.getRows({}); return r[0]`})
	if !strings.Contains(string(o.Result), personal[0]) {
		t.Errorf("%s", o.Result)
	}
	e, _, _, personal = openContacts(t, "pii: {modes: {email: off, phone: border}}")
	o = e.Execute(t.Context(), engine.Request{Code: `const r: any = await drive.getRows({}); return [r[0].email, r[0].phone, r[0].phone.length]`})
	if !strings.Contains(string(o.Result), personal[0]) || !strings.Contains(string(o.Result), `"[PHONE_1]",`+fmt.Sprint(len(personal[1]))) {
		t.Errorf("%s", o.Result)
	}
}

// TestHelpers checks the helper functions with which programs can ask about values that they do not see.
func TestHelpers(t *testing.T) {
	e, _, _, _ := openContacts(t, "")
	o := e.Execute(t.Context(), engine.Request{Code: `
		const r: any = await drive.getRows({});
		const some = r.slice(0, 3);
		const sorted: any[] = await pii.sortBy(some, 'email');
		return [await pii.domain(r[0].email), await pii.equals(r[0].email, 'INGRID.holstada0@customer0.example'), await pii.equals(r[0].email, r[1].email),
			await pii.mask(r[0].email), await pii.mask(r[0].phone), sorted.map(x => some.indexOf(x)), await pii.age('2000-01-01') > 20, await pii.country('+49 30 901820')];`})
	if string(o.Result) != `["customer0.example",true,false,"***@customer0.example","+** **** **00",[2,0,1],true,"DE"]` {
		t.Errorf("%s %+v", o.Result, o.Error)
	}
	o = e.Execute(t.Context(), engine.Request{Language: core.Python, Code: "r = drive.get_rows(sheet='x')\nresult = [pii.domain(r[0]['email']), pii.equals(r[0]['email'], r[1]['email']), pii.ranks([r[0]['email'], r[0]['email']]), [r.index(x) for x in pii.sort_by(r[:3], 'email')]]"})
	if o.Status != core.StatusRejected && string(o.Result) != `["customer0.example",false,[0,0],[2,0,1]]` {
		t.Errorf("%s %+v", o.Result, o.Error)
	}
}

// TestResourcesAreHidden checks that personal values in attachments and resources are tokens for programs.
func TestResourcesAreHidden(t *testing.T) {
	const csv = "name,email\nAnn,ann.holstad@corp.example\n"
	drive := &scriptedServer{tools: listing(tool("get_file", `"as":{"type":"string"}`, true)), answer: func(_ string, arguments json.RawMessage) string {
		content := `{"type":"resource","resource":{"uri":"file:///ann.holstad@corp.example.csv","mimeType":"text/csv","text":` + quoted(csv) + `}}`
		switch {
		case strings.Contains(string(arguments), "blob"):
			content = `{"type":"resource","resource":{"uri":"file:///a.csv","mimeType":"text/csv","blob":"` + base64.StdEncoding.EncodeToString([]byte(csv)) + `"}}`
		case strings.Contains(string(arguments), "link"):
			content = `{"type":"resource_link","uri":"file:///x","name":"of ann.holstad@corp.example","description":"ann.holstad@corp.example"}`
		}
		return `{"content":[` + content + `]}`
	}}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Servers: []engine.Server{{Name: "drive", Dial: drive.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	o := e.Execute(t.Context(), engine.Request{Language: core.JavaScript, Code: `import fs from 'node:fs/promises';
		const text = await drive.getFile({as: 'text'}), blob = await drive.getFile({as: 'blob'}), link = await drive.getFile({as: 'link'});
		const seen = [JSON.stringify(text), await fs.readFile(blob.path, 'utf8'), JSON.stringify(link)];
		return seen.map(s => [s.includes('[EMAIL_1]'), s.length, /holstad|corp/.test(s)])`})
	if o.Status != core.StatusOK || strings.Count(string(o.Result), "true") != 3 || strings.Count(string(o.Result), "false") != 3 {
		t.Errorf("%s %v", o.Result, o.Error)
	}
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
