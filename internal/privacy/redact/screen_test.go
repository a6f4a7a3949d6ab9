package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

func open(t testing.TB, o Options) *Session {
	t.Helper()
	s, err := New(o, vault.Open("", nil, 0)).OpenSession("default")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func incoming(t testing.TB, s *Session, server, document string) string {
	t.Helper()
	out, err := s.RedactIncoming(server, []byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func outgoing(t testing.TB, s *Session, document string) string {
	t.Helper()
	out, err := s.RedactOutgoing([]byte(document))
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

const contact = `{"id": 12345678901234567890, "first_name": "Ann", "last_name": "Halvorsen", "email": "ann@corp.example", "dob": "1980-02-03", "address": "12 Harbour Street, 0250 Oslo"}`

// TestModes checks that programs get tokens for sealed types and see the values of other types, and that the model
// sees no personal value of either.
func TestModes(t *testing.T) {
	s := open(t, Options{})
	seen := incoming(t, s, "crm", contact)
	if want := strings.Replace(contact, "ann@corp.example", "[EMAIL_1]", 1); seen != want {
		t.Errorf("a program sees %s", seen)
	}
	told := outgoing(t, s, seen)
	for _, personal := range []string{"Ann", "Halvorsen", "ann@corp", "1980-02-03", "Harbour"} {
		if strings.Contains(told, personal) {
			t.Errorf("the model sees %s in %s", personal, told)
		}
	}
	if !json.Valid([]byte(told)) || !strings.Contains(told, "12345678901234567890") {
		t.Errorf("%s", told)
	}
	open := open(t, Options{Modes: map[pii.Type]HideMode{pii.Email: Off, pii.Name: Sealed}})
	if got := incoming(t, open, "crm", contact); !strings.Contains(got, "ann@corp.example") || strings.Contains(got, "Halvorsen") {
		t.Errorf("%s", got)
	}
}

// TestBorder checks that values which a program has seen are hidden from the model in every encoding, such as JSON
// escapes, percent-encoding and Base64.
func TestBorder(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", contact)
	for _, value := range []string{"Halvorsen", "1980-02-03", "12 Harbour Street, 0250 Oslo"} {
		quoted, _ := json.Marshal(value)
		var unicode strings.Builder
		for _, r := range value {
			fmt.Fprintf(&unicode, `\u%04x`, r)
		}
		for name, out := range map[string]string{
			"plain": value, "in a sentence": "It is " + value + ", they say.", "JSON": string(quoted), "JSON in JSON": `{"a":` + string(quoted) + `}`,
			"unicode escapes": `"` + unicode.String() + `"`, "percent": strings.ReplaceAll(url.QueryEscape(value), "+", "%20"), "HTML": strings.ReplaceAll(value, "a", "&#97;"),
			"base64": base64.StdEncoding.EncodeToString([]byte(value)), "base64 for URLs": base64.RawURLEncoding.EncodeToString([]byte(value)),
			"base64 in JSON": `{"data":"` + base64.StdEncoding.EncodeToString([]byte("name: "+value)) + `"}`,
		} {
			told := outgoing(t, s, out)
			if told == out || strings.Contains(told, value) {
				t.Errorf("%s, %s: the model sees %s", value, name, told)
			}
		}
	}
	for _, value := range []string{"HALVORSEN ANN", "ann halvorsen", "12 HARBOUR STREET, 0250 OSLO"} {
		incoming(t, s, "crm", `{"name": "Ann Halvorsen", "email": "a@b.example"}`)
		if value == "HALVORSEN ANN" {
			continue // another order is another text
		}
		if told := outgoing(t, s, "so "+value+" said"); strings.Contains(told, value) {
			t.Errorf("the model sees %s", told)
		}
	}
}

func TestRestore(t *testing.T) {
	reveals := func(server string, typ pii.Type) bool { return server == "mail" && typ == pii.Email }
	s := open(t, Options{Reveals: reveals})
	incoming(t, s, "crm", `{"email":"ann@corp.example","phone":4712345678,"card":"4111 1111 1111 1111"}`)
	for _, c := range []struct {
		server, arguments, want string
		crossings               int
		refused                 string
	}{
		{"crm", `{"to":"[EMAIL_1]"}`, `{"to":"ann@corp.example"}`, 0, ""},
		{"crm", `{"n": 12345678901234567890, "to": ["[EMAIL_1]", "x"]}`, `{"n": 12345678901234567890, "to": ["ann@corp.example", "x"]}`, 0, ""},
		{"crm", `{"body":"Dear [EMAIL_1], \u005b hello"}`, `{"body":"Dear ann@corp.example, \u005b hello"}`, 0, ""},
		{"crm", `{"[EMAIL_1]":1}`, `{"ann@corp.example":1}`, 0, ""},
		{"crm", `{"to":"[EMAIL_2]"}`, "", 0, "[EMAIL_2] cannot be used"},
		{"crm", `{"to":"[IBAN_1]"}`, "", 0, "[IBAN_1] cannot be used"},
		{"crm", `{"url":"https://x.example/?q=[EMAIL_1]"}`, "", 0, "could send the value elsewhere"},
		{"crm", `{"callbackUrl":"x[EMAIL_1]"}`, "", 0, "could send the value elsewhere"},
		{"crm", `{"sql":"select '[EMAIL_1]'"}`, "", 0, "could send the value elsewhere"},
		{"crm", `{"sql":"[EMAIL_1]"}`, `{"sql":"ann@corp.example"}`, 0, ""},
		{"mail", `{"to":"[EMAIL_1]"}`, `{"to":"ann@corp.example"}`, 0, ""},
		{"mail", `{"card":"[CREDIT_CARD_1]"}`, `{"card":"4111 1111 1111 1111"}`, 1, ""},
		{"drive", `{"a":"[EMAIL_1]","b":"[EMAIL_1]"}`, `{"a":"ann@corp.example","b":"ann@corp.example"}`, 1, ""},
		{"crm", `{"a":"[EMAIL_x] [NOTHING_1] [] [1]"}`, `{"a":"[EMAIL_x] [NOTHING_1] [] [1]"}`, 0, ""},
	} {
		got, crossings, refused := s.RestoreArguments(c.server, json.RawMessage(c.arguments))
		switch {
		case refused != nil:
			if c.refused == "" || !strings.Contains(refused.Message, c.refused) {
				t.Errorf("%s: %v", c.arguments, refused)
			}
		case c.refused != "" || string(got) != c.want || len(crossings) != c.crossings:
			t.Errorf("%s %s: %s, %v", c.server, c.arguments, got, crossings)
		}
	}
	phone, ok := "", false
	_ = s.tokens.EachOfType("phone", func(e vault.TokenEntry) bool {
		if e.Digits {
			phone, ok = fmt.Sprintf("[PHONE_%d]", e.Number), true
		}
		return true
	})
	if got, _, err := s.RestoreArguments("crm", json.RawMessage(`{"phone":"`+phone+`","text":"call `+phone+`"}`)); !ok || string(got) != `{"phone":4712345678,"text":"call 4712345678"}` {
		t.Errorf("%s %v", got, err)
	}
}

// TestForeign checks that text in a server's result that only looks like a token is hidden behind a real token. When
// a program sends that token back to the server, the server must get its own text again.
func TestForeign(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", `{"email":"ann@corp.example"}`)
	seen := incoming(t, s, "mail", `{"text":"the token [EMAIL_1] of ours"}`)
	if strings.Contains(seen, "[EMAIL_1]") {
		t.Errorf("a program sees %s", seen)
	}
	got, _, err := s.RestoreArguments("mail", json.RawMessage(seen))
	if err != nil || string(got) != `{"text":"the token [EMAIL_1] of ours"}` {
		t.Errorf("%s %v", got, err)
	}
}

// TestProgram checks that a value in a program's string literal gets the same token as in server results. The model
// must see this value, and may write it into an address, because it wrote the value itself.
func TestProgram(t *testing.T) {
	s := open(t, Options{})
	code, err := s.RedactProgram("const who = 'ann@corp.example'; // bob@corp.example\nconst card = 4111111111111111;\nreturn x === who")
	if err != nil || code != "const who = '[EMAIL_1]'; // bob@corp.example\nconst card = 4111111111111111;\nreturn x === who" {
		t.Errorf("%s %v", code, err)
	}
	if seen := incoming(t, s, "crm", `{"email":"ann@corp.example"}`); !strings.Contains(seen, "[EMAIL_1]") {
		t.Errorf("%s", seen)
	}
	if told := outgoing(t, s, `"[EMAIL_1] is there, [EMAIL_2] is not"`); told != `"ann@corp.example is there, [EMAIL_2] is not"` {
		t.Errorf("the model sees %s", told)
	}
	if got, _, err := s.RestoreArguments("mail", json.RawMessage(`{"url":"https://x.example/?q=[EMAIL_1]"}`)); string(got) != `{"url":"https://x.example/?q=ann@corp.example"}` {
		t.Errorf("what a model has written itself it may write into an address: %s %v", got, err)
	}
	if _, crossings, err := s.RestoreArguments("mail", json.RawMessage(`{"to":"[EMAIL_1]"}`)); len(crossings) > 0 || err != nil {
		t.Errorf("%v %v", crossings, err)
	}
}

// value returns a canonical text of a JSON document, so that documents with the same meaning compare as equal.
func value(document []byte) string {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%#v", v)
}

// FuzzRound checks that a server's result, with its values replaced by tokens, is restored to a JSON document of the
// same meaning for that server.
func FuzzRound(f *testing.F) {
	f.Add([]byte(contact))
	f.Add([]byte(`{"a":"[EMAIL_1] x@y.example","b":["[NAME_2]",4111111111111111,"+47 22 33 44 55"]}`))
	f.Add([]byte(`{"a":"0@0.A%70A","b":"x@y&#46;example"}`))
	f.Add([]byte(`8170707000000080`))
	f.Add([]byte(`{"card":4111111111111111,"nested":"{\"email\":\"a@b.example\"}"}`))
	f.Fuzz(func(t *testing.T, document []byte) {
		if !json.Valid(document) {
			return
		}
		s := open(t, Options{Modes: map[pii.Type]HideMode{pii.Name: Sealed, pii.Company: Sealed, pii.Address: Sealed, pii.DateOfBirth: Sealed}})
		seen := incoming(t, s, "crm", string(document))
		if !json.Valid([]byte(seen)) {
			t.Fatalf("%s becomes %s", document, seen)
		}
		back, crossings, refused := s.RestoreArguments("crm", json.RawMessage(seen))
		if refused != nil {
			if strings.Contains(refused.Message, "elsewhere") {
				return
			}
			t.Fatalf("%s becomes %s: %v", document, seen, refused)
		}
		crossings = slices.DeleteFunc(crossings, func(c BorderCrossing) bool { return c.Inside }) // in longer texts
		if len(crossings) > 0 {
			t.Errorf("%s crosses: %v", document, crossings)
		}
		if value(document) != value(back) {
			t.Errorf("%s\nseen as %s\ncomes back as %s", document, seen, back)
		}
	})
}

// TestTreatments checks that masked and blocked values of one server are replaced by a fixed text, and that other
// servers' values still become tokens.
func TestTreatments(t *testing.T) {
	s := open(t, Options{
		Words: map[pii.Type][]string{pii.Company: {"Project Falcon"}}, Keys: map[string]pii.Type{"crew_member": pii.Name}, Modes: map[pii.Type]HideMode{pii.Name: Sealed},
		Treats: func(server string, t pii.Type) TypeTreatment {
			return map[string]TypeTreatment{"crm email": Mask, "crm phone": Block}[server+" "+string(t)]
		},
	})
	got := incoming(t, s, "crm", `{"email":"ann@corp.example","phone":"+47 22 33 44 55","crewMember":"Xqu Zorn"}`)
	if got != `{"email":"***@corp.example","phone":"(phone withheld)","crewMember":"[NAME_1]"}` {
		t.Errorf("%s", got)
	}
	if got := incoming(t, s, "mail", `{"email":"ann@corp.example"}`); got != `{"email":"[EMAIL_1]"}` {
		t.Errorf("%s", got)
	}
	masked := open(t, Options{Treats: func(string, pii.Type) TypeTreatment { return Mask }})
	if got := incoming(t, masked, "crm", `{"by":{"ann@corp.example":1,"bob@corp.example":{"a":2},"x":3},"a":[{"a":1},{"a":2}]}`); got != `{"by":{"***@corp.example":1,"***@corp.example (2)":{"a":2},"x":3},"a":[{"a":1},{"a":2}]}` {
		t.Errorf("%s", got)
	}
	if told := outgoing(t, s, "about Project Falcon"); told != "about [COMPANY_1]" {
		t.Errorf("%s", told)
	}
}

// TestRepeatedValues checks that a sealed value is hidden if a server that has received it repeats it. Short numbers
// among such values must not change other texts.
func TestRepeatedValues(t *testing.T) {
	for _, c := range []struct{ value, document, want string }{
		{"tr0ub4dor", `"the reverse of TR0UB4DOR is"`, `"the reverse of [SECRET_2] is"`},
		{"tr0ub4dor", `{"tr0ub4dor":1}`, `{"[SECRET_1]":1}`},
		{"2024", `["2024-05-01",2024,"in 2024",{"id":"2024"}]`, `["2024-05-01",2024,"in 2024",{"id":"2024"}]`},
		{"12345", `["12345.00",12345,"of 12345",{"id":"12345","zip":"12345-1"}]`, `["12345.00",12345,"of 12345",{"id":"12345","zip":"12345-1"}]`},
		{"123456", `{"echo":"123456","price":123456,"id":"123456"}`, `{"echo":"[SECRET_1]","price":123456,"id":"123456"}`},
		{"8412345678", `{"echo":"it is 8412345678","price":84123456}`, `{"echo":"it is [SECRET_1]","price":84123456}`},
		{"84-12-34", `{"echo":"84-12-34","at":"84:12:34 and more","n":"84.12.34-5"}`, `{"echo":"[SECRET_1]","at":"84:12:34 and more","n":"84.12.34-5"}`},
	} {
		s := open(t, Options{})
		if seen := incoming(t, s, "crm", `{"password":"`+c.value+`"}`); seen != `{"password":"[SECRET_1]"}` {
			t.Fatalf("%s is %s", c.value, seen)
		}
		if _, _, refused := s.RestoreArguments("crm", json.RawMessage(`{"q":"[SECRET_1]"}`)); refused != nil {
			t.Fatal(refused)
		}
		if seen := incoming(t, s, "crm", c.document); seen != c.want {
			t.Errorf("%s was sent, and %s becomes %s", c.value, c.document, seen)
		}
	}
}
