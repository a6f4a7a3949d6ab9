package redact

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"

	"retort/internal/privacy/pii"
	"retort/internal/privacy/vault"
)

// crossingsOf returns the crossings of a call to a server, for example "name from crm". The call has text as its
// argument, and code is the program of the model.
func crossingsOf(t testing.TB, s *Session, server, text, code string) string {
	t.Helper()
	arguments, err := json.Marshal(map[string]string{"q": text})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, c := range s.FindCrossings(server, arguments, SpokenMatcher(code)) {
		all = append(all, fmt.Sprintf("%s from %s", c.Type, strings.Join(c.From, ", ")))
	}
	slices.Sort(all)
	return strings.Join(all, "; ")
}

// longAddress has so many words that it is stored in two pieces.
const longAddress = "1 Lindenstraße, Sonnentau Quellhorn Lindental Morgenrot Abendtau Silbersee Nordwind Ostwall Westtor Suedfeld Hochtal Tiefgrund"

const people = `[{"name":"Hanne Müller","company":"Sonnentau Werke","dateOfBirth":"1960-01-10"},
 {"name":"Rose Zandstra","company":"Vørdal Holding","dateOfBirth":"1971-12-03"},{"name":"王小明","company":"Vørdal Holding"},{"name":"Kwame Mensah","dateOfBirth":"1962-05-10"},
 {"name":"Aoife de la Zandstra","address":"` + longAddress + `"}]`

// TestCrossings checks that a person is asked about values of other servers in any spelling and encoding. Nobody is
// asked about values that the server itself has sent, that the model wrote, or that are common words.
func TestCrossings(t *testing.T) {
	s := open(t, Options{Reveals: func(server string, _ pii.Type) bool { return server == "friend" }})
	incoming(t, s, "crm", people)
	incoming(t, s, "hr", `[{"name":"Jan Hanssen","company":"Sonnentau Werke","dateOfBirth":"1950-02-02","address":"9 Harbour Way, Oslo"},{"name":"Rose Hanssen","dateOfBirth":"1951-02-02"}]`)
	const name, company, born = "name from crm", "company from crm, hr", "date_of_birth from crm"
	for _, c := range []struct{ server, text, code, want string }{
		{"web", "Hanne Müller", "", name},
		{"web", "about HANNE MÜLLER.", "", name},
		{"web", norm.NFD.String("hanne müller"), "", name},
		{"web", "Müller", "", name},
		{"web", "王小明", "", name},
		{"web", "Sonnentau Werke", "", company},
		{"web", "sonnentau werke", "", company},
		{"web", "born 10.01.1960", "", born},
		{"web", "January 10, 1960", "", born},
		{"hr", "10.01.1960", "", born},
		{"crm", "10.01.1960", "", ""},
		{"crm", "HANNE müller and Zandstra of SONNENTAU WERKE", "", ""},
		{"hr", "Sonnentau Werke", "", ""},
		{"hr", "Hanssen", "", ""},
		{"hr", "Hanne Müller", "", name},
		{"crm", "Jan Hanssen", "", "name from hr"},
		{"friend", "Hanne Müller", "", ""},
		{"web", "Hanne Müller", "search('Hanne Müller')", ""},
		{"web", "hanne muller", "search('Hanne Müller')", ""},
		{"web", "Hanne Müller", `search('Hanne M\u00fcller')`, ""},
		{"web", "Hanne Müller", `f(json.loads("\"Hanne M\\u00fcller\""))`, ""}, // run_skill in Python
		{"web", "Hanne Müller", "search('Hanne')", name},
		{"web", "Rose", "", ""},
		{"web", "rose", "", ""},
		{"web", "KwameMensah", "", name}, {"crm", "KwameMensah", "", ""}, {"hr", "KwameMensah", "", name}, {"crm", "Kwame-MENSAH", "", ""},
		{"hr", "10 Mai 1962", "", born}, {"crm", "10 Mai 1962", "", ""}, {"hr", "10. Januar 1960", "", born}, {"hr", "10/01/60", "", born},
		{"crm", "10/01/60", "", ""}, {"hr", "1960-10-01", "", ""}, {"crm", "19600110", "", ""}, {"crm", "Aoife de la Zandstra", "", ""},
		{"crm", "Zandstra", "", ""}, {"hr", "Aoife", "", name}, {"crm", longAddress, "", ""},
		{"hr", longAddress, "", "address from crm"},
		{"web", url.PathEscape("Hanne Müller"), "", name},
		{"web", url.QueryEscape("Hanne Müller"), "", name},
		{"web", "Hanne M&uuml;ller", "", name},
		{"web", "Hanne M&#252;ller", "", name},
		{"web", base64.StdEncoding.EncodeToString([]byte("Hanne Müller")), "", name},
		{"web", "x " + base64.RawURLEncoding.EncodeToString([]byte(url.PathEscape("of Hanne Müller"))), "", name},
		{"web", `{"a":"Hanne M\u00fcller"}`, "", name},
		{"web", wrapped("at Sonnentau Werke, Oslo", 8, "\n"), "", company}, {"web", "Here:\n" + wrapped("at Sonnentau Werke, Oslo", 20, "\r\n") + "\nbye", "", company},
		{"web", wrapped("at Sonnentau Werke", 7, "\n"), "", company}, {"web", wrapped("at Sonnentau Werke, Oslo", 8, " \n\t"), "", company},
		{"web", `["` + base64.StdEncoding.EncodeToString([]byte("Hanne Müller")) + `"]`, "", name},
		{"web", "an ordinary text", "", ""},
	} {
		if got := crossingsOf(t, s, c.server, c.text, c.code); got != c.want {
			t.Errorf("%s gets %q, the program is %q: asked about %q, want %q", c.server, c.text, c.code, got, c.want)
		}
	}
}

// wrapped returns the Base64 of a text in lines of a given length.
func wrapped(text string, length int, newline string) string {
	var lines []string
	for line := range slices.Chunk([]byte(base64.StdEncoding.EncodeToString([]byte(text))), length) {
		lines = append(lines, string(line))
	}
	return strings.Join(lines, newline)
}

// TestListedNames checks that a server that has sent many given names and family names does not get other names that
// consist of the same words.
func TestListedNames(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", people)
	incoming(t, s, "web", `[{"name":"Hanne Zandstra"},{"name":"Rose Müller"},{"name":"Hanne"},{"name":"Müller"},{"name":"Kwame Mensah Hanne"}]`)
	for text, want := range map[string]string{
		"Hanne Müller": "name from crm", "hanne müller": "name from crm", "HanneMüller": "name from crm", "Hanne": "", "Müller": "", "Kwame Mensah": "",
		"Mensah": "", "Rose Zandstra": "name from crm", "Rose Müller": "", "Hanne Zandstra": "",
	} {
		if got := crossingsOf(t, s, "web", text, ""); got != want {
			t.Errorf("%s: asked about %q, want %q", text, got, want)
		}
	}
}

// TestCrossingsAfterRestart checks that a new process knows which servers have sent a value, and finds sealed values
// that a server repeats.
func TestCrossingsAfterRestart(t *testing.T) {
	dir := t.TempDir()
	openAgain := func() *Session {
		s, err := New(Options{}, vault.Open(dir, func() ([]byte, error) { return make([]byte, 32), nil }, 0)).OpenSession("default")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := openAgain()
	incoming(t, s, "crm", people)
	incoming(t, s, "crm", `{"password":"tr0ub4dor"}`)
	if _, _, refused := s.RestoreArguments("crm", json.RawMessage(`{"q":"[SECRET_1]"}`)); refused != nil {
		t.Fatal(refused)
	}
	if err := s.SyncTokens(); err != nil {
		t.Fatal(err)
	}
	s = openAgain()
	if got := crossingsOf(t, s, "web", "MÜLLER", ""); got != "name from crm" {
		t.Errorf("asked about %q", got)
	}
	if got := crossingsOf(t, s, "crm", "MÜLLER", ""); got != "" {
		t.Errorf("asked about %q", got)
	}
	if seen := incoming(t, s, "crm", `"the reverse of tr0ub4dor is"`); strings.Contains(seen, "tr0ub4dor") {
		t.Errorf("a program sees %s", seen)
	}
}

// TestEachSpellingComesBack checks that a server gets each value in the spelling in which it sent it. Tokens for
// different spellings of one value must count as equal.
func TestEachSpellingComesBack(t *testing.T) {
	s := open(t, Options{})
	const document = `{"phone":"+1 202 555 0143","mobile":"+1-202-555-0143","tel":"+12025550143","fax":"+1 202 555 0199"}`
	seen := incoming(t, s, "crm", document)
	if back, _, refused := s.RestoreArguments("crm", json.RawMessage(seen)); refused != nil || string(back) != document {
		t.Errorf("%s comes back as %s, %v", seen, back, refused)
	}
	for other, want := range map[string]bool{"[PHONE_2]": true, "[PHONE_3]": true, "[PHONE_4]": false} {
		if same, refused := s.EqualValues("[PHONE_1]", other); same != want || refused != nil {
			t.Errorf("[PHONE_1] and %s: %v, %v", other, same, refused)
		}
	}
}

// TestBase64AfterEscapes checks that personal data in Base64 is hidden if an escape of JSON stands directly before it.
func TestBase64AfterEscapes(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", people)
	encoded := base64.StdEncoding.EncodeToString([]byte("of Hanne Müller"))
	for _, document := range []string{`"\n` + encoded + `"`, `"\\` + encoded + `"`, `"\u00e9` + encoded + `"`, `"\/` + encoded + `"`, `C:\` + encoded} {
		told := outgoing(t, s, document)
		if strings.Contains(told, encoded[4:]) || json.Valid([]byte(document)) && !json.Valid([]byte(told)) {
			t.Errorf("%s: the model sees %s", document, told)
		}
	}
}

// TestPersonalKeys checks for which keys of objects IsPersonalKey returns true.
func TestPersonalKeys(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", people)
	for _, key := range []string{"Hanne", "Zandstra", "Jürgen", "Mohammed", "Anna", "ann@corp.example", "Hanne Müller"} {
		if !s.IsPersonalKey(key) {
			t.Errorf("%s is stored", key)
		}
	}
	for _, key := range []string{
		"id", "name", "Name", "Status", "Owner", "Mark", "Total", "Item", "Open", "Berlin", "India", "anna_count", "first_name", "Draft", "FirstName",
	} {
		if s.IsPersonalKey(key) {
			t.Errorf("%s is not stored", key)
		}
	}
}

// TestHiddenTwice checks that RedactOutgoing does not change its own result. The effects of a dry run pass through it
// twice.
func TestHiddenTwice(t *testing.T) {
	s := open(t, Options{})
	incoming(t, s, "crm", people)
	incoming(t, s, "crm", `{"email":"hanne@corp.example","password":"tr0ub4dor"}`)
	encoded := base64.StdEncoding.EncodeToString([]byte("of Hanne Müller"))
	once := outgoing(t, s, `{"Hanne Müller":"hanne@corp.example","a":["MÜLLER, 10.01.1960","`+encoded+`"],"b":"[EMAIL_1] tr0ub4dor Sonnentau Werke"}`)
	if twice := outgoing(t, s, once); twice != once || strings.Contains(once, "Hanne") {
		t.Errorf("%s\nbecomes %s", once, twice)
	}
}
