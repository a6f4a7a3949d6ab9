package effect

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"retort/internal/core"
)

// FuzzName checks that a tool is judged irreversible if an irreversible verb is added to its name, or if its description
// begins with "Permanently deletes".
func FuzzName(f *testing.F) {
	for _, name := range []string{"post_message", "refund", "reply_to_thread", "send_mail", "pay_out", "list", "snapshot", "getAll", "search_index", "view-", "APIs", "ｌｉｓｔ", "a.b/c"} {
		f.Add(name, "Lists things.")
	}
	f.Fuzz(func(t *testing.T, name, description string) {
		if !utf8.ValidString(name) || !utf8.ValidString(description) {
			return
		}
		plain := OfTool(&core.Tool{Name: name, Description: description}, false)
		for _, with := range []string{name + "_delete", "delete_" + name, name + "-DELETE", name + ".purge.v2", name + "_d3l3te", "remvoe-" + name} {
			if e := OfTool(&core.Tool{Name: with, Description: description}, false); e.Kind != irreversible {
				t.Errorf("%q is judged %s (%s)", with, e.Kind, e.Reason)
			}
		}
		raised := OfTool(&core.Tool{Name: name, Description: "Permanently deletes it. " + description}, false)
		if raised.Kind < plain.Kind || raised.Kind != irreversible {
			t.Errorf("%q with a description that says delete is judged %s (%s)", name, raised.Kind, raised.Reason)
		}
		for _, with := range graded(name, description) {
			if e := OfTool(&with, false); e.Kind == plain.Kind && e.Grade < plain.Grade {
				t.Errorf("%q is %s, and %q (%q) is %s", name, plain.Grade, with.Name, with.Description, e.Grade)
			}
		}
	})
}

// graded returns tools that are at least as grave as a tool with this name and description: with another letter case,
// with a prefix or suffix, and with descriptions and annotations that call it harmless.
func graded(name, description string) []core.Tool {
	yes, no := true, false
	tools := []core.Tool{
		{Name: "my_" + name, Description: description}, {Name: name + "_v2", Description: description},
		{Name: name, Description: description, Annotations: core.ToolAnnotations{ReadOnly: &yes}},
		{Name: name, Description: description, Annotations: core.ToolAnnotations{Destructive: &no, OpenWorld: &no}},
		{Name: name, Description: description + "\nPosts a message to a channel of your own workspace."},
		{Name: name, Description: description, InputSchema: []byte(`{"properties": {"channel": {}, "text": {}, "ticket": {}}}`)},
	}
	if isASCII(name) && name == strings.ToLower(name) {
		tools = append(tools, core.Tool{Name: strings.ToUpper(name), Description: description})
	}
	return tools
}

// FuzzQuery checks that a query is not judged milder, by its effect and then by its grade, if comments, white space, another letter case or harmless
// statements are added to it.
func FuzzQuery(f *testing.F) {
	for _, c := range callCases {
		var args map[string]any
		if json.Unmarshal([]byte(c.args), &args) != nil {
			continue
		}
		for _, v := range args {
			if text, ok := v.(string); ok {
				f.Add(text)
			}
		}
	}
	for _, s := range readStatements(f) {
		f.Add(s.text)
	}
	judge := NewJudge(&core.Tool{Server: "postgres", Name: "query"}, false)
	call := func(text string) core.EffectInfo {
		args, err := json.Marshal(map[string]string{"sql": text})
		if err != nil {
			return core.EffectInfo{Kind: irreversible, Grade: core.GradeMoney}
		}
		return judge.CallEffect(args)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) || len(text) > 1<<16 {
			return
		}
		plain := call(text)
		for _, changed := range disguises(text) {
			if e := call(changed); plain.IsGraver(e) {
				t.Errorf("%q is judged %s %s, and %q is %s %s", text, plain.Kind, plain.Grade, changed, e.Kind, e.Grade)
			}
		}
	})
}

// disguises returns variants of a query that are at least as harmful as the query in every SQL dialect. They differ
// in comments, white space, semicolons, letter case and added harmless statements.
func disguises(text string) []string {
	list := []string{
		" " + text, "\n\t" + text + "\n", "/* x */" + text, "/**/" + text, "/* ' \" ` [ $$ */" + text, "-- x\n" + text, "-- '\n" + text, "--+ x\n" + text,
		";" + text, ";;\n" + text, "SELECT 1; " + text, "BEGIN;\n" + text + "\n;COMMIT", text + "\n;SELECT 1", text + " -- x", text + "\n-- x\n", text + "\n;",
	}
	if !strings.Contains(text, "/*") && !strings.Contains(text, "*/") {
		list = append(list, text+"\n/* x */")
	}
	if !strings.ContainsAny(text, "'\"`$[]{}#\\/*-") {
		for _, blank := range []string{"\t", "\n", "\r\n", "  ", "/**/", "/* x */", "\v", "\f"} {
			list = append(list, strings.ReplaceAll(text, " ", blank))
		}
	}
	if isASCII(text) && !strings.ContainsAny(text, "$qQeE") {
		list = append(list, strings.ToUpper(text), strings.ToLower(text))
	}
	return list
}

func isASCII(s string) bool {
	for _, r := range s {
		if r > 127 {
			return false
		}
	}
	return true
}

// FuzzCall checks that a call is judged irreversible if an irreversible action is added to any arguments, and that no
// text makes CallEffect panic.
func FuzzCall(f *testing.F) {
	for _, c := range callCases {
		f.Add(c.tool, c.args)
	}
	f.Fuzz(func(t *testing.T, name, args string) {
		tool, ok := callTools[name]
		if !ok {
			tool = core.Tool{Name: name}
		}
		judge := NewJudge(&tool, false)
		if !json.Valid([]byte(args)) || !strings.HasPrefix(args, "{") {
			judge.CallEffect([]byte(args))
			return
		}
		with := `{"action": "delete_everything", "args": ` + args + `}`
		if e := judge.CallEffect([]byte(with)); e.Kind != irreversible {
			t.Errorf("%s(%s) is judged %s (%s)", name, with, e.Kind, e.Reason)
		}
	})
}
