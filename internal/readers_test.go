package internal_test

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// quoteReaders lists the functions that look for quotes and backslashes themselves, with the reason why they cannot
// use jsonscan. No other function may do so, because it would be one more reader of JSON to keep correct.
var quoteReaders = []struct{ file, function, why string }{
	{"internal/mcp/client/frame.go", "inString", "finds the id of a message that is too long, also after damaged JSON"},
	{"internal/config/jsonc.go", "stringOrCommentLength", "reads JSON with comments and trailing commas"},
	{"internal/config/jsonc.go", "explainLiteral", "explains a word that is not JSON"},
	{"internal/config/clientfiles/format.go", "tooDeep", "counts the brackets of JSON, YAML and TOML before their parsers do"},
	{"internal/config/clientfiles/jsonfile.go", "unquoteLiteral", "reads a string that hujson has found"},
	{"internal/catalog/canonical.go", "unquoteJSON", "decodes with encoding/json, which stored pins depend on"},
	{"internal/catalog/canonical.go", "appendString", "writes strings, as stored pins have them"},
	{"internal/pipeline/bindings/text.go", "quoteWith", "writes strings of TypeScript and Python"},
	{"internal/pipeline/check/python/literals.go", "appendText", "writes strings of Python"},
	{"internal/skills/extract/scan.go", "scanNext", "reads programs"},
	{"internal/privacy/pii/net.go", "findCredentials", "reads addresses in text"},
	{"internal/privacy/pii/secrets.go", "findAssigned", "reads text"},
	{"internal/privacy/redact/screen.go", "isQuoted", "reads programs"},
	{"internal/privacy/redact/screen.go", "plainJSON", "replaces what JSON would escape"},
	{"internal/privacy/secrets/units.go", "backslashAt", "reads escapes of several languages in text"},
	{"internal/audit/archive.go", "UnmarshalJSON", "is called with a string that encoding/json has found"},
	{"internal/auth/access.go", "toQuotable", "replaces what a header may not have"},
}

// readerRules finds functions outside of package jsonscan that look for both the quote and the escape character of
// JSON strings.
func readerRules(all []source) (found []string) {
	for _, s := range all {
		if s.test || s.dir == "internal/base/jsonscan" || strings.HasPrefix(s.dir, "scripts/") {
			continue
		}
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || !readsQuotes(f) {
				continue
			}
			allowed := slices.ContainsFunc(quoteReaders, func(a struct{ file, function, why string }) bool {
				return a.file == s.path && a.function == f.Name.Name
			})
			if !allowed {
				found = append(found, s.at(f)+": "+f.Name.Name+" looks for the end of quoted text itself; jsonscan does that for JSON")
			}
		}
	}
	return found
}

func readsQuotes(f *ast.FuncDecl) bool {
	literals := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.CHAR {
			literals[l.Value] = true
		}
		return true
	})
	return literals[`'"'`] && literals[`'\\'`]
}

func TestNoOtherReadersOfJSON(t *testing.T) { hold(t, readerRules) }

func TestReaderRulesFindViolations(t *testing.T) {
	violations(t, readerRules, map[string]string{
		"internal/jobs/a.go": `package jobs
func end(text []byte) int {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}
func quote(s string) string { return string('"') + s + string('"') }`,
		"internal/skills/extract/scan.go": `package extract
func scanNext(c byte) bool { return c == '"' || c == '\\' }`,
	}, []string{"internal/jobs/a.go:2: end looks for the end of quoted text itself; jsonscan does that for JSON"})
}

// TestQuoteReadersAreCurrent checks that each function listed in quoteReaders exists and still looks for quotes
// itself.
func TestQuoteReadersAreCurrent(t *testing.T) {
	left := map[string]bool{}
	for _, r := range quoteReaders {
		left[r.file+" "+r.function] = true
	}
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && readsQuotes(f) {
				delete(left, s.path+" "+f.Name.Name)
			}
		}
	}
	for name := range left {
		t.Errorf("%s does not look for quotes any more", name)
	}
}
