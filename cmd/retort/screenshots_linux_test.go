package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/devel/pictures"
)

// TestScreenshots checks that the HTML pages whose screenshots are in docs/images still have the same structure as in
// the screenshots. With -update it makes the screenshots. It then needs Chromium in PATH as chromium.
func TestScreenshots(t *testing.T) {
	pages := map[string][]byte{}
	t.Run("commands", func(t *testing.T) {
		testscript.Run(t, testscript.Params{
			Files: []string{"testdata/screenshots.txtar"}, RequireExplicitExec: true,
			Setup: func(e *testscript.Env) error {
				e.Setenv("HOME", filepath.Join(e.WorkDir, ".user"))
				e.Defer(func() {
					for _, name := range []string{"stats", "report"} {
						pages[name], _ = os.ReadFile(filepath.Join(e.WorkDir, name+".html"))
					}
				})
				return nil
			},
		})
	})
	for _, name := range []string{"stats", "report"} {
		picture := filepath.Join(repository, pictures.ImagesDir, name+".png")
		if *updateDocs {
			photograph(t, pages[name], picture)
		}
		png, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		if len(png) > 150_000 {
			t.Errorf("%s has %d bytes", picture, len(png))
		}
		want := fmt.Sprintf("%s<!-- %x is the SHA-256 of %s.png -->\n",
			structure(pages[name]), sha256.Sum256(png), name)
		file := "testdata/" + name + ".structure.html"
		if *updateDocs {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(got), want); diff != "" {
			t.Errorf("%s shows another page. Make it again: go test ./cmd/retort -run TestScreenshots -update\n"+
				"-then +now:\n%s", picture, diff)
		}
	}
}

var measuredText = regexp.MustCompile(`<td>[0-9a-z]{13}</td>|[0-9a-f]{12,}|` +
	`[0-9]([0-9.,:TZ-]*[0-9Z])?( ?(ms|s|µs|KB|MB)\b)?`)

// structure returns a page without anything that differs between two runs, such as numbers, times, sizes and ids.
func structure(page []byte) []byte { return measuredText.ReplaceAll(page, []byte("~")) }

// photograph writes a picture of the top of a page.
func photograph(t *testing.T, page []byte, picture string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	to, err := filepath.Abs(picture)
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--window-size=900,760", "--user-data-dir="+t.TempDir(), "--screenshot="+to, "file://"+file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v; install Chromium\n%s", err, out)
	}
}
