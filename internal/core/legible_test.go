package core

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// TestLegible checks that all invisible and lookalike characters are escaped, and that ordinary text of many scripts
// is not.
func TestLegible(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n":                  "plain\ttext\n",
		"Grüße, Ærø, Łódź, naïve":        "Grüße, Ærø, Łódź, naïve",
		"Привет, мир":                    "Привет, мир",
		"а рост":                         "а рост",
		"Ελλάδα":                         "Ελλάδα",
		"日本語のiPhone手机":                   "日本語のiPhone手机",
		"שלום مرحبا नमस्ते":              "שלום مرحبا नमस्ते",
		"дом5, 2024г":                    "дом5, 2024г",
		"c-17\ufe0f\U000e0101":           `c-17\ufe0f\U000e0101`,
		"\u3164\uffa0\u115f\u1160":       `\u3164\uffa0\u115f\u1160`,
		"a\u2800b\u034fc":                `a\u2800b\u034fc`,
		"\u17b4\u17b5\u180b\u180f":       `\u17b4\u17b5\u180b\u180f`,
		"a\u00a0b\u2003c\u3000d":         `a\u00a0b\u2003c\u3000d`,
		"p\u0430ypal":                    `p\u0430ypal`,
		"\u0430\u0440\u0440\u04cf\u0435": `\u0430\u0440\u0440\u04cf\u0435`,
		"g\u03bfogle":                    `g\u03bfogle`,
		"B\u0438ll":                      `B\u0438ll`,
		"\uff41dmin":                     `\uff41dmin`,
		"\U0001d429ay":                   `\U0001d429ay`,
		"e\u0301":                        `e\u0301`,
		"\u212a":                         `\u212a`,
		"a\u2215b, x\u2010y":             `a\u2215b, x\u2010y`,
		"12\u0663":                       `12\u0663`,
		"a\xffb\ufffd":                   `a\xffb\ufffd`,
		"\x1b[2J\u202e":                  `\u001b[2J\u202e`,
	} {
		if got := EscapeIllegible(text); got != want {
			t.Errorf("%+q is shown as %s, want %s", text, got, want)
		}
	}
	if got := LegibleLine("a\nb\tc"); got != `a\u000ab\u0009c` {
		t.Errorf("%q", got)
	}
}

// TestForModelOutlines checks that the text for a model shows tokens with an outline of each value, such as
// ***@example.com, while the text for a person shows the values.
func TestForModelOutlines(t *testing.T) {
	a := Approval{Question: Question{Server: "crm", Tool: "send", Arguments: json.RawMessage(`{"to":"ada@example.com"}`), Shown: json.RawMessage(`{"to":"[EMAIL_4]"}`), Outlines: []string{"[EMAIL_4] ***@example.com"}}}
	if text := a.RenderText(); strings.Contains(text, "***") || !strings.Contains(text, "ada@example.com") {
		t.Errorf("%s", text)
	}
	if text := a.ForModel().RenderText(); !strings.Contains(text, "  [EMAIL_4] ***@example.com\n") || strings.Contains(text, "ada@") {
		t.Errorf("%s", text)
	}
}

// FuzzApprovalText checks that the text of an approval contains no invisible characters, and that different arguments
// never give the same text.
func FuzzApprovalText(f *testing.F) {
	f.Add("c-17", "c-17\ufe0f", "delete", "x")
	f.Add("paypal", "p\u0430ypal", "a\nb", "\u202eprogram")
	f.Add(`\u200b`, "\u200b", "\u3164", "a\u00a0b")
	f.Add("é", "e\u0301", "\xff", "\ufffd")
	f.Add("K", "\u212a", "\U000e0041", "\t")
	f.Fuzz(func(t *testing.T, a, b, tool, code string) {
		one, two := shownWith(a, tool, code), shownWith(b, tool, code)
		for _, r := range one {
			if r != '\n' && r != '\t' && r != ' ' && (IsInvisible(r) || unicode.IsSpace(r) || !unicode.IsGraphic(r)) {
				t.Fatalf("%+q is shown", r)
			}
		}
		if !utf8.ValidString(one) {
			t.Fatalf("%q", one)
		}
		if x, y := argument(a), argument(b); !bytes.Equal(x, y) && one == two {
			t.Fatalf("%s and %s are both shown as %s", x, y, one)
		}
	})
}

func shownWith(value, tool, code string) string {
	return Approval{Question: Question{Server: "s", Tool: "t" + tool, Arguments: argument(value), Code: code, Client: tool, Rule: tool}}.RenderText()
}

// argument returns JSON with the value as it would be sent to a server: in UTF-8, without unnecessary escapes.
func argument(value string) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(map[string]string{"value": strings.ToValidUTF8(value, "\ufffd")}) // a string always encodes
	return bytes.TrimSpace(b.Bytes())
}
