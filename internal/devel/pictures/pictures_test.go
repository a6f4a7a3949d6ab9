package pictures

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
)

var update = flag.Bool("update", false, "write the pictures and the table of token figures")

const repository = "../../.." // root of the repository, relative to this package

// measuredFigures returns the token figures that retort bench tokens measured. TestTokenFigures in cmd/retort
// writes and checks their file.
func measuredFigures(t *testing.T) (figures Figures) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(repository, FiguresFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &figures); err != nil {
		t.Fatal(err)
	}
	return figures
}

func drawn(t *testing.T) []*Picture {
	f := measuredFigures(t)
	first := f.Workloads[0].Ways
	overview := Overview(f.Tools, f.Servers, first[0].Loaded, first[2].Loaded)
	return []*Picture{overview, Path(), Boundaries(), Chart(f.Workloads), Team()}
}

// TestPictures checks that the pictures in docs/images are those that this package draws. With -update it writes them.
func TestPictures(t *testing.T) {
	for _, p := range drawn(t) {
		if err := p.Compare(filepath.Join(repository, ImagesDir), *update, strings.Clone); err != nil {
			t.Error(err)
		}
	}
}

// TestPicturesAreReadable checks that texts fit into their boxes and do not overlap, that colours have enough contrast,
// and that the files are valid XML without anything that is loaded or run.
func TestPicturesAreReadable(t *testing.T) {
	for _, p := range drawn(t) {
		for _, problem := range p.Problems() {
			t.Error(problem)
		}
	}
}

// TestProblemsAreFound checks that Problems finds each kind of mistake in a made-up picture.
func TestProblemsAreFound(t *testing.T) {
	written := func(words string, x float64, ink colour, size float64) text {
		return text{words: words, x: x, y: 50, size: size, ink: ink, paper: page, room: 40}
	}
	for want, p := range map[string]*Picture{
		"is too long":   {texts: []text{written("far too long for its box", 50, ink, 12)}},
		"overlaps":      {texts: []text{written("short", 50, ink, 12), written("short", 60, ink, 12)}},
		"is outside of": {texts: []text{written("short", 180, ink, 12)}},
		"contrast":      {texts: []text{written("short", 50, faint, 12)}},
		"is too small":  {texts: []text{written("short", 50, ink, 8)}},
		"no title":      {},
		"must not":      {style: "@import url(https://example.org/font.css)"},
		"syntax":        {parts: []part{func(b *strings.Builder, _ Palette) { b.WriteString("<g>") }}},
	} {
		p.Name, p.Width, p.Height = "a picture", 200, 100
		if want != "no title" {
			p.Title, p.Description = "a title", "a description"
		}
		if found := fmt.Sprint(p.Problems()); !strings.Contains(found, want) {
			t.Errorf("%q was not found: %s", want, found)
		}
	}
}

var shownImage = regexp.MustCompile(`(?:src|srcset)="([^"]+)"|!\[[^\]]*\]\(([^)]+)\)`)

// TestImagesAreUsed checks that each file of docs/images is on a page, that all files on pages exist, that pages say in
// words what each picture shows, and that the files are small.
func TestImagesAreUsed(t *testing.T) {
	used := map[string]bool{}
	for _, page := range append(testenv.MarkdownPages(t, repository, []string{"docs"}), "README.md") {
		body := testenv.ReadPage(t, repository, page)
		for _, m := range shownImage.FindAllStringSubmatch(body, -1) {
			used[filepath.Join(filepath.Dir(page), m[1]+m[2])] = true
		}
		images, described := strings.Count(body, "<img "), len(describedImage.FindAllString(body, -1))
		if images != described {
			t.Errorf("%s: %d of %d pictures have an alt text", page, described, images)
		}
	}
	files, err := os.ReadDir(filepath.Join(repository, ImagesDir))
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, f := range files {
		if file := filepath.Join(ImagesDir, f.Name()); !used[file] {
			t.Errorf("%s is on no page", file)
		}
		if info, err := f.Info(); err == nil {
			sum += info.Size()
		}
	}
	for file := range used {
		if _, err := os.Stat(filepath.Join(repository, file)); err != nil {
			t.Errorf("a page shows %s, which does not exist", file)
		}
	}
	if sum > 500<<10 {
		t.Errorf("%s has %d bytes; 500 KB are the most", ImagesDir, sum)
	}
}

var describedImage = regexp.MustCompile(`<img [^>]*alt="[^"]{20,}"`)

// TestThreatIDs checks that each threat that the picture of boundaries names is in the threat model.
func TestThreatIDs(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(repository, "docs/security/threat-model.md"))
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, x := range Boundaries().texts {
		for _, id := range regexp.MustCompile(`\b[A-Z]-\d+\b`).FindAllString(x.words, -1) {
			found++
			if !strings.Contains(string(raw), "**"+id+"**") {
				t.Errorf("the threat model has no threat %s", id)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d ids were found", found)
	}
}

// TestFiguresOfReadme checks the token figures in the text of the README.
func TestFiguresOfReadme(t *testing.T) {
	readme := testenv.ReadPage(t, repository, "README.md")
	w := measuredFigures(t).task(t, "one trivial call").Ways
	want := fmt.Sprintf("%s to %s tokens through Retort, and %s with",
		thousands(w[3].Peak), thousands(w[2].Peak), thousands(w[1].Peak))
	if !strings.Contains(strings.ReplaceAll(readme, "\n  ", " "), want) {
		t.Errorf("README.md does not say %q", want)
	}
}

func (f Figures) task(t *testing.T, name string) Task {
	for _, one := range f.Workloads {
		if one.Name == name {
			return one
		}
	}
	t.Fatalf("there is no task %q", name)
	return Task{}
}
