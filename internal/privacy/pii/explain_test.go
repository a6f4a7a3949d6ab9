package pii

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestExplain checks the offsets and the reasons of the values that Explain finds in different kinds of documents.
func TestExplain(t *testing.T) {
	o := Options{
		Words: map[Type][]string{Company: {"Orionis"}},
		Types: map[Type]*regexp.Regexp{"employee_id": regexp.MustCompile(`EMP-[0-9]{6}`)},
	}
	for document, want := range map[string]string{
		"":             "",
		"nothing [V1]": "",
		"Orionis, EMP-123456 and ann@x.org": "company:Orionis words Orionis|employee_id:EMP-123456 pattern EMP-[0-9]{6}|" +
			"email:ann@x.org form ",
		"She was born 12 May 1980.":            "date_of_birth:12 May 1980 context born",
		`{"a":[{"ssn":123456789}],"b":1}`:      "ssn:123456789 key ssn",
		`{"note":"born 12 May 1980"}`:          "date_of_birth:12 May 1980 context born",
		`{"ann@x.org":1,"x":"ann\u0040x.org"}`: "email:ann@x.org form |email:ann@x.org form ",
		"name,phone\nHanne Duval,030123456\n":  "name:Hanne Duval form |phone:030123456 document ",
	} {
		var got []string
		for _, v := range Explain(o, []byte(document)) {
			got = append(got, fmt.Sprintf("%s:%s %s %s", v.Type, v.Text, v.Reason, v.Evidence))
			if raw := document[v.Start:v.End]; raw != v.Text && !strings.Contains(raw, `\u`) {
				t.Errorf("%s: the place of %s has %q", document, v.Text, raw)
			}
		}
		if strings.Join(got, "|") != want {
			t.Errorf("%s:\n%s\nwant\n%s", document, strings.Join(got, "|"), want)
		}
	}
}

// FuzzExplain checks that Explain returns the right offsets for each value in any document.
func FuzzExplain(f *testing.F) {
	for _, seed := range []string{"born 12 May 1980", `{"ssn":123456789}`, "[V0] ann@x.org [VV", `{"a":{"b":["ann@x.org"]}} {"phone":301234567}`, "\"{\\\"ssn\\\":123456789}\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		end := 0
		for _, v := range Explain(Options{}, document) {
			if v.Start < end || v.End <= v.Start || v.End > len(document) || v.Reason == "" {
				t.Fatalf("%+v after %d in %q", v, end, document)
			}
			end = v.End
		}
	})
}
