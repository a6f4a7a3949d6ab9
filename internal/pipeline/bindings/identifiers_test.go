package bindings

import (
	"go/token"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestAssignTools(t *testing.T) {
	tests := []struct{ raw, typescript, python string }{
		{"list_issues", "listIssues", "list_issues"},
		{"getUserByID", "getUserByID", "get_user_by_id"},
		{"API-post-search", "apiPostSearch", "api_post_search"},
		{"linear_getLabels", "linearGetLabels", "linear_get_labels"},
		{"HTTPGet", "httpGet", "http_get"},
		{"LIST_ALL", "listAll", "list_all"},
		{"browser.click", "browserClick", "browser_click"},
		{"get-URLs", "getURLs", "get_urls"},
		{"search_v2", "searchV2", "search_v2"},
		{"3d_model", "_3dModel", "_3d_model"},
		{"then", "then_", "then"},
		{"default", "default_", "default"},
		{"delete", "delete_", "delete"},
		{"import", "import_", "import_"},
		{"list", "list", "list_"},
		{"constructor", "constructor_", "constructor"},
		{"toString", "toString_", "to_string"},
		{"__proto__", "proto", "proto"},
		{"", "tool", "tool"},
		{"検索", "検索", "検索"},
		{"naïve name", "naïveName", "naïve_name"},
		{"ﬁle", "le", "le"}, // Python would read the ligature as two letters
		{"con", "con", "con_"},
	}
	for _, tt := range tests {
		got := AssignTools([]string{tt.raw})[tt.raw]
		if got != (Names{tt.typescript, tt.python}) {
			t.Errorf("%q becomes %q and %q, want %q and %q", tt.raw, got.TypeScript, got.Python, tt.typescript, tt.python)
		}
	}
}

func TestCollisions(t *testing.T) {
	got := AssignTools([]string{"getUser", "get_user", "get-user", "GetUser", "get_issue", "!", "?", "tool"})
	for raw, want := range map[string]Names{
		"getUser":   {"getUser", "get_user__e28ebf"},
		"get_user":  {"getUser_bf1e2a", "get_user"},
		"get_issue": {"getIssue", "get_issue"},
		"tool":      {"tool", "tool"},
		"!":         {"tool_bb7208", "tool__bb7208"},
	} {
		if got[raw] != want {
			t.Errorf("%q becomes %+v, want %+v", raw, got[raw], want)
		}
	}
}

func TestAssignServer(t *testing.T) {
	got := AssignServer([]string{"google-drive", "GitHub", "github", "GITHUB"})
	if got["google-drive"] != (Names{"googleDrive", "google_drive"}) {
		t.Errorf("google-drive becomes %+v", got["google-drive"])
	}
	if got["github"] != (Names{"github", "github"}) {
		t.Errorf("github does not keep its name: %+v", got["github"])
	}
	folded := map[string]bool{}
	for _, n := range got {
		folded[strings.ToLower(n.TypeScript)] = true
	}
	if len(folded) != 4 {
		t.Errorf("names that differ by case alone: %+v", got)
	}
}

var asciiIdentifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// FuzzIdentifiers checks that identifiers are valid in both languages, that no two are equal, and that they do not
// depend on the order of the names.
func FuzzIdentifiers(f *testing.F) {
	f.Add("list_issues\nlistIssues\nlist-issues\nListIssues", uint64(1))
	f.Add("then\nthen_\nThen\ndefault\n\n!\n😀\n1\n_1\n__proto__\nconstructor", uint64(2))
	f.Add("foo_ab12cd\nfoo\nFoo\nfoo__ab12cd\nfoo_\nFOO\nfOO", uint64(3))
	f.Add("検索\n検 索\n\u202ex\nx\u200b\nx\x00\n\xff\nß\nSS\nς\nσ\nΣ", uint64(4))
	f.Add(strings.Repeat("long", 40)+"\n"+strings.Repeat("long", 41), uint64(5))
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		names := strings.Split(text, "\n")
		tools, servers := AssignTools(names), AssignServer(names)
		shuffled := slices.Clone(names)
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		again, alone := AssignTools(shuffled), AssignServer(shuffled)
		distinct := [4]map[string]string{{}, {}, {}, {}}
		for _, raw := range names {
			if tools[raw] != again[raw] || servers[raw] != alone[raw] {
				t.Fatalf("%q depends on the order", raw)
			}
			for i, ident := range []string{tools[raw].TypeScript, tools[raw].Python, strings.ToLower(servers[raw].TypeScript), strings.ToLower(servers[raw].Python)} {
				if other, taken := distinct[i][ident]; taken && other != raw {
					t.Fatalf("%q and %q are both %q", raw, other, ident)
				}
				distinct[i][ident] = raw
			}
			for _, ident := range []string{tools[raw].TypeScript, servers[raw].TypeScript} {
				if !token.IsIdentifier(ident) && !token.IsKeyword(ident) || scriptReserved[ident] || !tame(ident) {
					t.Fatalf("%q becomes %q", raw, ident)
				}
			}
			for _, ident := range []string{tools[raw].Python, servers[raw].Python} {
				if !token.IsIdentifier(ident) && !token.IsKeyword(ident) || pythonReserved[ident] || !tame(ident) {
					t.Fatalf("%q becomes %q", raw, ident)
				}
			}
		}
	})
}

// tame reports whether an identifier has a reasonable length and consists of characters that are allowed in both
// languages.
func tame(ident string) bool {
	return len([]rune(ident)) <= maxIdentifier+66 && (asciiIdentifier.MatchString(ident) || strings.ContainsFunc(ident, func(r rune) bool { return r > unicode.MaxASCII }))
}

func TestBuiltins(t *testing.T) {
	b := BuiltinNames()
	for _, name := range []string{"console", "Math", "JSON", "state", "skills", "pii", "sleep", "URL", "Promise", "callMCPTool", "servers", "math"} {
		if !b[name] {
			t.Errorf("%s is not available in", name)
		}
	}
	if b["github"] {
		t.Error("github is built in")
	}
	b["github"] = true
	if BuiltinNames()["github"] {
		t.Error("callers share one set")
	}
}
