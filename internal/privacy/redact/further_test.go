package redact

import (
	"regexp"
	"strings"
	"testing"

	"retort/internal/privacy/pii"
)

var further = Options{
	Types: map[pii.Type]*regexp.Regexp{"employee_id": regexp.MustCompile(`\bEMP-[0-9]{6}\b|\b4711[0-9]{4}\b`), "project": nil},
	Words: map[pii.Type][]string{"project": {"Bluebird"}},
	Keys:  map[string]pii.Type{"badge": "employee_id"},
}

// TestFurtherTypes checks that custom types of personal data, which the settings add, are hidden like the built-in
// types. Their values must be found by pattern, word list and key, also in JSON numbers and under a key such as "id".
func TestFurtherTypes(t *testing.T) {
	s := open(t, further)
	const document = `{"id":"EMP-000001","note":"EMP-000002 wrote to bob@corp.example of Bluebird, EMP-0000003 did not","badge":"x-17","number":47110001,"price":4711}`
	seen := incoming(t, s, "hr", document)
	want := `{"id":"[EMPLOYEE_ID_1]","note":"[EMPLOYEE_ID_2] wrote to [EMAIL_1] of [PROJECT_1], EMP-0000003 did not","badge":"[EMPLOYEE_ID_3]","number":"[EMPLOYEE_ID_4]","price":4711}`
	if seen != want {
		t.Errorf("a program sees %s", seen)
	}
	if got, _, refused := s.RestoreArguments("hr", []byte(seen)); refused != nil || string(got) != document {
		t.Errorf("restored: %s %v", got, refused)
	}
	if told := outgoing(t, s, `"EMP-000009 and [EMPLOYEE_ID_1]"`); told != `"[EMPLOYEE_ID_5] and [EMPLOYEE_ID_1]"` {
		t.Errorf("the model sees %s", told)
	}
	if forged := incoming(t, s, "wiki", `"[EMPLOYEE_ID_1] [NOTE_1]"`); strings.Contains(forged, "[EMPLOYEE_ID_1]") || !strings.Contains(forged, "[NOTE_1]") {
		t.Errorf("forged: %s", forged)
	}
}

// TestFurtherTypesOverlap checks that text which matches the pattern of a custom type gets only that type, and that
// the pattern never matches inside a token.
func TestFurtherTypesOverlap(t *testing.T) {
	s := open(t, Options{Types: map[pii.Type]*regexp.Regexp{"account": regexp.MustCompile(`[a-z]+@corp\.example|[0-9]+`), "letters": regexp.MustCompile(`[A-Z]{5}`)}})
	seen := incoming(t, s, "hr", `["ann@corp.example", "ann@else.example 12", "[EMAIL_1]"]`)
	if want := `["[ACCOUNT_1]", "[EMAIL_1] [ACCOUNT_2]", "[EMAIL_2]"]`; seen != want {
		t.Errorf("%s", seen)
	}
}

// TestTreatmentHide checks that the treatment Hide replaces values in one server's results by tokens, while the same
// values in another server's results stay visible. SealedType must tell programs the same: tokens for the first
// server, values for the second.
func TestTreatmentHide(t *testing.T) {
	s := open(t, Options{Modes: map[pii.Type]HideMode{pii.IP: Off}, Treats: func(server string, typ pii.Type) TypeTreatment {
		if server == "hr" && (typ == pii.Name || typ == pii.IP) {
			return Hide
		}
		return Usual
	}})
	const document = `{"last_name":"Halvorsen","host":"10.20.30.40"}`
	if seen := incoming(t, s, "hr", document); seen != `{"last_name":"[NAME_1]","host":"[IP_1]"}` {
		t.Errorf("of hr a program sees %s", seen)
	}
	if seen := incoming(t, s, "crm", document); seen != document {
		t.Errorf("of crm a program sees %s", seen)
	}
	for property, want := range map[string][2]string{
		"last_name": {"name", ""}, "lastName": {"name", ""}, "contactEmail": {"email", "email"}, "title": {"", ""}, "id": {"", ""},
	} {
		if hr, crm := s.screen.SealedType("hr", property), s.screen.SealedType("crm", property); hr != want[0] || crm != want[1] {
			t.Errorf("%s: %q of hr, %q of crm", property, hr, crm)
		}
	}
}
