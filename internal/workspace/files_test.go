package workspace

import (
	"strings"
	"testing"
)

func TestPath(t *testing.T) {
	for name, want := range map[string]string{
		"a.csv": "a.csv", "./a.csv": "a.csv", "workspace/a.csv": "a.csv", "./workspace/a/b.csv": "a/b.csv", "/workspace/a.csv": "a.csv",
		"files/../a.csv": "a.csv", "workspace": "", "": "", ".": "", "/": "", "workspace/../../a": "!", "../a": "!", "/etc/passwd": "!", "servers/x.ts": "!", "a\x00b": "!",
	} {
		got, err := NormalizePath(name)
		if err != nil {
			got = "!"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func TestFiles(t *testing.T) {
	w := open(t, 1<<20)
	for _, name := range []string{"a.csv", "b.txt", "in/a.csv", "in/deep/c.csv", "in/deep/d.json"} {
		if err := w.Write(name, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range [][3]string{
		{"", "", "a.csv b.txt in/a.csv in/deep/c.csv in/deep/d.json"}, {"", "*.csv", "a.csv in/a.csv in/deep/c.csv"}, {"in", "", "in/a.csv in/deep/c.csv in/deep/d.json"},
		{"in", "deep/*", "in/deep/c.csv in/deep/d.json"}, {"", "in/*", "in/a.csv"}, {"", "in/**", "in/a.csv in/deep/c.csv in/deep/d.json"}, {"", "**/*.csv", "a.csv in/a.csv in/deep/c.csv"},
		{"", "**/deep/*.json", "in/deep/d.json"}, {"", "?.txt", "b.txt"}, {"", "[ab].*", "a.csv b.txt in/a.csv"}, {"none", "", "ENOENT"}, {"", "[", "malformed"},
	} {
		files, _, err := w.FindFiles(c[0], c[1], 100)
		var names []string
		for _, f := range files {
			names = append(names, f.Path)
		}
		if got := strings.Join(names, " "); err == nil && got != c[2] || err != nil && !strings.Contains(err.Error(), c[2]) {
			t.Errorf("%q %q: %s %v", c[0], c[1], got, err)
		}
	}
	if files, total, _ := w.FindFiles("", "", 2); len(files) != 2 || total != 5 {
		t.Errorf("%d of %d", len(files), total)
	}
}
