package index

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func wordsOf(text string) []string {
	all := []string{}
	eachToken(text, func(w string) { all = append(all, w) })
	return all
}

func TestTokens(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "",
		"list all open issues.":   "list all open issues",
		"list_issues":             "list issues",
		"listIssues":              "list issues listissues",
		"linear_getIssueById":     "linear get issue by id",
		"HTTPServer":              "http server httpserver",
		"getHTTPSURL":             "get httpsurl gethttpsurl",
		"NuGetPackageSearch":      "nu get package search",
		"API-post-page":           "api post page",
		"GitHub's":                "git hub github s",
		"sha256 oauth2 s3 ec2":    "sha256 sha oauth2 oauth s3 ec2",
		"page2 of 10":             "page2 page of 10",
		"2fa":                     "2fa",
		"naïve Größe":             "naïve größe",
		"ÉCOLE":                   "école",
		"天气查询":                    "天气 气查 查询",
		"天 today":                 "天 today",
		"get天气":                   "get 天气 get天气",
		"приветМир":               "привет мир приветмир",
		"a\x00b\xff\xfec":         "a b c",
		"../../etc/passwd":        "etc passwd",
		strings.Repeat("x", 100):  strings.Repeat("x", 40),
		strings.Repeat("é", 50):   strings.Repeat("é", 20),
		"e-mail user@example.com": "e mail user example com",
	} {
		if diff := cmp.Diff(strings.Fields(want), wordsOf(text)); diff != "" {
			t.Errorf("tokens(%q): %s", text, diff)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"listIssues", "a_b", "HTTPServer2", "天气 Wetter", "\xff\xc3", "ǅ", "İstanbul", "x\u0301"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		eachToken(text, func(w string) {
			if w == "" || len(w) > maxWord {
				t.Fatalf("word of %d bytes", len(w))
			}
			if utf8.ValidString(text) && !utf8.ValidString(w) {
				t.Fatalf("%q is cut within a character", w)
			}
			if strings.IndexFunc(w, func(r rune) bool { return r < utf8.RuneSelf && (unicode.IsUpper(r) || !isWord(r)) }) >= 0 {
				t.Fatalf("%q is no word", w)
			}
		})
	})
}
