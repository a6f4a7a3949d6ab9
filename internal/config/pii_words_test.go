package config

import (
	"os"
	"strings"
	"testing"
)

// TestAddPIIWords checks that words are added to a retort.yaml in every form that the setting can have, and that the
// rest of the file stays as it is.
func TestAddPIIWords(t *testing.T) {
	for name, test := range map[string]struct{ before, after string }{
		"empty file":      {"", "pii:\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n"},
		"comments only":   {"# mine\n", "# mine\npii:\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n"},
		"no line break":   {"sandboxMode: process", "sandboxMode: process\npii:\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n"},
		"no words":        {"pii: # x\n  expiry: 720h\n# end\n", "pii: # x\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n  expiry: 720h\n# end\n"},
		"empty value":     {"pii:\n  words:\n", "pii:\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n"},
		"other type":      {"pii:\n    words:\n        name:\n        - Anna\n", "pii:\n    words:\n        company:\n          - \"Blue's Bird\"\n          - \"Orion\"\n        name:\n        - Anna\n"},
		"same type":       {"pii:\n  words:\n    company:\n    - Acme # old\n    # more\nsandboxMode: process\n", "pii:\n  words:\n    company:\n    - Acme # old\n    - \"Blue's Bird\"\n    - \"Orion\"\n    # more\nsandboxMode: process\n"},
		"partly there":    {"pii:\n  words:\n    company:\n      - Orion\n", "pii:\n  words:\n    company:\n      - Orion\n      - \"Blue's Bird\"\n"},
		"there":           {"pii: {words: {company: [\"Blue's Bird\", Orion]}}\n", "pii: {words: {company: [\"Blue's Bird\", Orion]}}\n"},
		"Windows endings": {"pii:\r\n  expiry: 720h\r\n", "pii:\r\n  words:\n    company:\n      - \"Blue's Bird\"\n      - \"Orion\"\n  expiry: 720h\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := AddPIIWords("retort.yaml", []byte(test.before), os.LookupEnv, "company", []string{"Blue's Bird", "Orion"})
			if err != nil || string(got) != test.after {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}

// TestAddPIIWordsRefuses checks the errors for files that cannot be changed and for words that are not valid.
func TestAddPIIWordsRefuses(t *testing.T) {
	for name, test := range map[string]struct{ text, piiType, word, want string }{
		"flow style":   {"pii: {expiry: 720h}\n", "company", "Acme", "must begin in a line of its own"},
		"flow list":    {"pii:\n  words:\n    company: [Orion]\n", "company", "Acme", "must begin in a line of its own"},
		"folded item":  {"pii:\n  words:\n    company:\n      - Acme\n        Widgets\n", "company", "Orion", "cannot be inserted"},
		"broken file":  {"pii: [\n", "company", "Acme", "retort.yaml"},
		"unknown type": {"", "companies", "Acme", "companies"},
		"short word":   {"", "company", "Al", "four letters"},
	} {
		t.Run(name, func(t *testing.T) {
			got, _, err := AddPIIWords("retort.yaml", []byte(test.text), os.LookupEnv, test.piiType, []string{test.word})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v\n%s", err, got)
			}
		})
	}
}
