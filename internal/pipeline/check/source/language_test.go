package source

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"retort/internal/core"
)

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		code string
		want RecognizedLanguage
	}{
		{"def filter_high_risk(vulns): return [v for v in vulns if v['severity'] in ['high', 'critical']]", RecognizedLanguage{core.Python, true}},
		{"data = json.loads(read_file(\"x.json\"))\nfiltered = [d for d in data if d['status'] == 'active']\nresult = {\n    'total': len(data),\n}\n", RecognizedLanguage{core.Python, true}},
		{"skill = load_skill(\"filter_high_risk\")\nexec(skill)\n", RecognizedLanguage{core.Python, true}},
		{"result = github.list_issues(owner='o', repo='r')", RecognizedLanguage{core.Python, true}},
		{"result = 1 + 1", RecognizedLanguage{core.Python, true}},
		{"import math\nresult = math.pi", RecognizedLanguage{core.Python, true}},
		{"print('const x = 1; // not (this) => {}')", RecognizedLanguage{core.Python, true}},
		{"# const x = 1;\nprint(1)", RecognizedLanguage{core.Python, true}},
		{"for (const x of y) console.log(x)", RecognizedLanguage{core.TypeScript, true}},
		{"const f = (a: number) => a; // None of these is not a word and for x in y:", RecognizedLanguage{core.TypeScript, false}},
		{"// def f(): pass\nreturn await github.listIssues({owner: 'o'})", RecognizedLanguage{core.TypeScript, false}},
		{"return 1", RecognizedLanguage{core.TypeScript, false}},
		{"return `\ndef f():\n  pass\n`", RecognizedLanguage{core.TypeScript, true}},
		{"import * as gdrive from './servers/google-drive'\nawait gdrive.getDocument({ documentId: 'x' })", RecognizedLanguage{core.TypeScript, true}},
		{"", RecognizedLanguage{core.TypeScript, false}},
		{"```python\nreturn 1\n```", RecognizedLanguage{core.Python, true}},
		{"Here it is:\n```ts\nresult = None\n```", RecognizedLanguage{core.TypeScript, true}},
		{"```js\nx = 1\n```", RecognizedLanguage{core.JavaScript, true}},
		{"```\ndef f():\n    return None\n```", RecognizedLanguage{core.Python, true}},
	} {
		got := RecognizeLanguage(c.code)
		if got.Language != c.want.Language || c.want.Sure && !got.Sure {
			t.Errorf("%+v, want %+v:\n%s", got, c.want, c.code)
		}
	}
}

// TestRecognizeCorpus checks that the language of all example and test programs is recognised from their text alone.
func TestRecognizeCorpus(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	var seen int
	for _, pattern := range []string{"testdata/programs/*", "examples/*/*"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				continue
			}
			seen += recognizes(t, file, string(text))
		}
	}
	archives, err := filepath.Glob(filepath.Join(root, "internal/pipeline/check/testdata/corpus/*.txtar"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range archives {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range archive.Files {
			seen += recognizes(t, name+":"+f.Name, string(f.Data))
		}
	}
	if seen < 200 {
		t.Errorf("only %d programs were found", seen)
	}
}

func recognizes(t *testing.T, name, text string) int {
	want := map[string]core.Language{".ts": core.TypeScript, ".js": core.TypeScript, ".mjs": core.TypeScript, ".py": core.Python}[filepath.Ext(name)]
	if want == "" {
		return 0
	}
	got := RecognizeLanguage(text).Language
	if got == core.JavaScript {
		got = core.TypeScript
	}
	if got != want && !strings.HasSuffix(name, ":truncate.py") { // which is a program in both
		t.Errorf("%s is taken for %s:\n%s", name, got, strings.TrimSpace(text[:min(len(text), 300)]))
	}
	return 1
}
