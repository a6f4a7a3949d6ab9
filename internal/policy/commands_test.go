package policy_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/policy"
)

func TestCommands(t *testing.T) {
	p := must(t, policy.Rules{
		Commands: []policy.AllowedCommand{
			{Name: "jq", Args: []string{"-r", ".*", "--arg=*"}}, {Name: "git", Args: []string{"status"}}, {Name: "git", Args: []string{"log", "-n*"}}, {Name: "true"},
			{Name: "all", Args: []string{"*"}}, {Name: "ls", Args: []string{`/^[\w\-\.\/]+$/`, `/^--[\w\-]+=[\w\-\.]+$/`}}, {Name: "cat", Args: []string{"/^a|b$/", "/^[^x]$/", "/^/", "/workspace/"}},
		},
		Principals: map[string]policy.AccessLimits{"ada": {Level: policy.ReadOnly}},
	})
	for _, c := range []struct {
		who, name string
		args      []string
		want      core.Kind
	}{
		{"", "jq", []string{"-r", ".a.b"}, ""}, {"", "jq", nil, ""}, {"", "jq", []string{"--arg="}, ""},
		{"", "true", nil, ""}, {"", "true", []string{""}, core.KindPolicy},
		{"", "git", []string{"status"}, ""}, {"", "git", []string{"log", "-n1"}, ""}, {"", "git", []string{"status", "-n1"}, core.KindPolicy},
		{"", "jq", []string{"-R"}, core.KindPolicy}, {"", "jq", []string{".a", "--output=/etc/x"}, core.KindPolicy}, {"", "jq", []string{"x.a"}, core.KindPolicy},
		{"", "jq", []string{".a\n-r"}, core.KindPolicy}, {"", "jq", []string{".a\n"}, core.KindPolicy}, {"", "jq", []string{"-r\n"}, core.KindPolicy}, {"", "jq", []string{"\n-r"}, core.KindPolicy},
		{"", "jq", []string{".a\x00"}, core.KindInvalidArguments}, {"", "jq", []string{".\u0085"}, core.KindPolicy}, {"", "jq", []string{".\u2028"}, core.KindPolicy},
		{"", "all", []string{"a", "*", "$(id)", "; id", "é"}, ""}, {"", "all", []string{"-x"}, core.KindPolicy}, {"", "all", []string{"-"}, core.KindPolicy}, {"", "all", []string{""}, ""},
		{"", "all", slices.Repeat([]string{"a"}, 256), ""}, {"", "all", slices.Repeat([]string{"a"}, 257), core.KindInvalidArguments},
		{"", "all", []string{strings.Repeat("a", 16<<10+1)}, core.KindInvalidArguments}, {"", "all", slices.Repeat([]string{strings.Repeat("a", 16<<10)}, 5), core.KindInvalidArguments},
		{"", "/usr/bin/jq", []string{".a"}, core.KindPolicy}, {"", "../jq", nil, core.KindPolicy}, {"", "JQ", nil, core.KindPolicy}, {"", "jq ", nil, core.KindPolicy}, {"", "", nil, core.KindPolicy}, {"", "jq\x00", nil, core.KindPolicy},
		{"ada", "jq", []string{"-r"}, core.KindPolicy},
		{"", "ls", []string{"-la", "./workspace/a.txt", "--color=never"}, ""}, {"", "ls", []string{"$(id)"}, core.KindPolicy}, {"", "ls", []string{"a;b"}, core.KindPolicy}, {"", "ls", []string{""}, core.KindPolicy},
		{"", "ls", []string{"--color=a/b"}, core.KindPolicy}, {"", "ls", []string{"a\n"}, core.KindPolicy}, {"", "ls", []string{"a b"}, core.KindPolicy},
		{"", "cat", []string{"a", "b", "/^/", "/workspace/"}, ""}, {"", "cat", []string{"ac"}, core.KindPolicy}, {"", "cat", []string{"cb"}, core.KindPolicy}, {"", "cat", []string{"\n"}, core.KindPolicy}, {"", "cat", []string{"\u0085"}, core.KindPolicy},
	} {
		var got core.Kind
		if refused := p.ViewFor(c.who).CheckCommand(c.name, c.args); refused != nil {
			got = refused.Kind
		}
		if got != c.want {
			t.Errorf("%q may start %q %.80q: %q, want %q", c.who, c.name, c.args, got, c.want)
		}
	}
	if names := p.ViewFor("").CommandNames(); !slices.Equal(names, []string{"all", "cat", "git", "jq", "ls", "true"}) {
		t.Error(names)
	}
	if names := p.ViewFor("ada").CommandNames(); names != nil {
		t.Error(names)
	}
}

func TestCommandRefusalsQuoteNoArgument(t *testing.T) {
	p := must(t, policy.Rules{Commands: []policy.AllowedCommand{{Name: "jq", Args: []string{"-r"}}}})
	refused := p.ViewFor("").CheckCommand("jq", []string{"-r", "secret"})
	if refused == nil || strings.Contains(refused.Message+refused.Hint, "secret") || !strings.Contains(refused.Message, "argument 2 of jq") || !strings.Contains(refused.Hint, "-r") {
		t.Error(refused)
	}
}

func TestNoCommands(t *testing.T) {
	p := must(t, policy.Rules{})
	if refused := p.ViewFor("").CheckCommand("jq", nil); refused == nil || refused.Kind != core.KindPolicy || !strings.Contains(refused.Hint, "commands:") {
		t.Error(refused)
	}
	for _, name := range []string{"", ".", "..", "a/b", "/bin/a", "a\x00"} {
		if _, err := policy.New(policy.Rules{Commands: []policy.AllowedCommand{{Name: name}}}); err == nil {
			t.Errorf("%q is a command", name)
		}
	}
}

func TestCommandExpressions(t *testing.T) {
	for _, pattern := range []string{"/^[$/", "/^a)|(?:b$/", `/^a\$/`, "/^(?=a)$/"} {
		if _, err := policy.New(policy.Rules{Commands: []policy.AllowedCommand{{Name: "x", Args: []string{pattern}}}}); err == nil {
			t.Errorf("%q is a regular expression", pattern)
		}
	}
}

// FuzzCommandArguments checks that patterns match whole arguments, by comparison with a slower matcher that uses
// regular expressions.
func FuzzCommandArguments(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", "a"}, {"*", "-a"}, {"-*", "-a"}, {"a*c", "abc"}, {"a*c", "abcd"}, {"a*", "a\n"}, {"*a*b*", "xxaxxbxx"}, {"", ""}, {"*", ""}, {"**", "x"}, {"*", "\u0085"},
		{"--output=*", "--output=/etc/x"}, {"a", "a\x00"}, {"*é", "éé"}, {".*", ".\n*"}, {"a\nb", "a\nb"}, {"*\n*", "a\nb"}, {"$(id)", "$(id)"}, {"[a]", "a"}, {`\*`, `\*`}, {"*", "\xff"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, argument string) {
		p, err := policy.New(policy.Rules{Commands: []policy.AllowedCommand{{Name: "x", Args: []string{pattern}}}})
		if err != nil || strings.HasPrefix(pattern, "/^") && strings.HasSuffix(pattern, "$/") || len(argument) > 1000 || len(pattern) > 100 || strings.Count(pattern, "*") > 4 {
			return
		}
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		plain, err := regexp.Compile(`\A(?s:` + strings.Join(parts, `[^\pC\x{2028}\x{2029}]*`) + `)\z`)
		if err != nil {
			return // a pattern that is no UTF-8
		}
		allowed := p.ViewFor("").CheckCommand("x", []string{argument}) == nil
		if allowed && (strings.ContainsRune(argument, 0) || strings.HasPrefix(argument, "-") && !strings.HasPrefix(pattern, "-")) {
			t.Errorf("%q lets %q pass", pattern, argument)
		}
		if allowed && len(strings.TrimFunc(argument, func(r rune) bool { return r >= ' ' && r < 0x7f })) == 0 && !plain.MatchString(argument) {
			t.Errorf("%q lets %q pass, and does not match it", pattern, argument)
		}
		if !allowed && plain.MatchString(argument) && strings.HasPrefix(argument, "-") == strings.HasPrefix(pattern, "-") {
			t.Errorf("%q refuses %q, and matches it", pattern, argument)
		}
	})
}
