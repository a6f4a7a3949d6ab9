package testenv

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// MarkdownPages returns the Markdown files in the given folders of the module, as slash-separated paths below root,
// the module's own folder. It leaves out installed packages and all folders named in without.
func MarkdownPages(t testing.TB, root string, folders []string, without ...string) (pages []string) {
	t.Helper()
	for _, folder := range folders {
		err := fs.WalkDir(os.DirFS(root), folder, func(file string, e fs.DirEntry, err error) error {
			switch {
			case err == nil && e.IsDir() && (e.Name() == "node_modules" || slices.Contains(without, e.Name())):
				return fs.SkipDir
			case err == nil && strings.HasSuffix(file, ".md"):
				pages = append(pages, file)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return pages
}

// ReadPage returns the text of a file of the module, given its path below root.
func ReadPage(t testing.TB, root, page string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, page))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
