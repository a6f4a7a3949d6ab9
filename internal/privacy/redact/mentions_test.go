package redact

import "testing"

func TestMentions(t *testing.T) {
	is := MentionMatcher("Anna.Smith@Example.com", "+1 (555) 010-0199", "Li", "王明", "Jürgen Müller")
	for text, want := range map[string]bool{
		`send("anna.smith@example.com")`:         true,
		"ANNA SMITH (example com)":               true,
		`{"to":"<anna.smith@example.com>"}`:      true,
		`{\"name\":\"J\u00fcrgen M\u00fcller\"}`: true,
		`a\nAnna.Smith@example.com`:              true,
		"call 1-555-010-0199 now":                true,
		"15550100199":                            true,
		"Mr. Li called":                          true,
		"li":                                     true,
		`x\nLi`:                                  true,
		"a list of lies":                         false,
		"email":                                  false,
		"张王明先生":                                  true,
		"anna.smith":                             false,
		"":                                       false,
	} {
		if is(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
	if MentionMatcher("", "--")("anything") {
		t.Error("nothing is mentioned everywhere")
	}
}
