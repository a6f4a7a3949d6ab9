package pictures

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// ImagesDir is the folder of the pictures, and FiguresFile the file of the measured tokens, in the repository.
const (
	ImagesDir   = "docs/images"
	FiguresFile = "docs/reference/tokens.json"
)

// Figures holds what retort bench tokens measures, without times and answers.
type Figures struct {
	Tools     int    `json:"tools"`   // number of tools of the bundled servers
	Servers   int    `json:"servers"` // number of bundled servers
	Workloads []Task `json:"workloads"`
}

// Table returns the Markdown table of all tasks.
func (f Figures) Table() string {
	var b strings.Builder
	b.WriteString("| task | direct calls, all definitions | direct calls, tool search |" +
		" code, `full` | code, `lean` |\n" +
		"|---|---|---|---|---|\n")
	for _, t := range f.Workloads {
		b.WriteString("| " + t.Name)
		for _, w := range t.Ways {
			fmt.Fprintf(&b, " | %s · %d", thousands(w.Peak), w.RoundTrips)
		}
		b.WriteString(" |\n")
	}
	return b.String()
}

// Compare compares the files of the picture in a folder with the picture, after normalize was applied to both. If write
// is set, it writes them instead.
func (p *Picture) Compare(dir string, write bool, normalize func(string) string) (err error) {
	for name, palette := range Palettes() {
		file, want := filepath.Join(dir, p.Name+"-"+name+".svg"), p.SVG(palette)
		if write {
			err = errors.Join(err, os.WriteFile(file, []byte(want), 0o644))
			continue
		}
		got, e := os.ReadFile(file)
		if e != nil {
			err = errors.Join(err, e)
		} else if line := firstDifference(normalize(string(got)), normalize(want)); line != "" {
			err = errors.Join(err, fmt.Errorf("%s differs from what is drawn: %s\n"+
				"Write it with the flag -update of this test", file, line))
		}
	}
	return err
}

// firstDifference returns the first lines in which two texts differ, or "".
func firstDifference(a, b string) string {
	if a == b {
		return ""
	}
	as, bs := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(as), len(bs)) {
		if as[i] != bs[i] {
			return fmt.Sprintf("%q, now %q", as[i], bs[i])
		}
	}
	return fmt.Sprintf("%d lines, now %d", len(as), len(bs))
}

// Problems describes what makes the picture hard to read or unsafe to show.
func (p *Picture) Problems() (found []string) {
	add := func(format string, args ...any) { found = append(found, p.Name+": "+fmt.Sprintf(format, args...)) }
	if p.Title == "" || p.Description == "" {
		add("there is no title or description")
	}
	for i, t := range p.texts {
		switch width := t.width(); {
		case width > t.room:
			add("%q is too long: %.0f of %.0f", t.words, width, t.room)
		case t.left() < 0 || t.left()+width > float64(p.Width) || t.y > float64(p.Height)-4:
			add("%q is outside of the picture", t.words)
		case t.size < small:
			add("%q is too small", t.words)
		}
		for _, other := range p.texts[:i] {
			if t.overlaps(other) {
				add("%q overlaps %q", t.words, other.words)
			}
		}
		for name, c := range Palettes() {
			if ratio := contrast(c[t.ink], c[t.paper]); ratio < 4.5 {
				add("%q has a contrast of %.1f in the palette %s", t.words, ratio, name)
			}
		}
	}
	for _, c := range Palettes() {
		if err := safeXML(p.SVG(c)); err != nil {
			add("%v", err)
		}
	}
	return found
}

func (t text) overlaps(other text) bool {
	return (t.layer == other.layer || t.layer*other.layer == 0) &&
		t.left() < other.left()+other.width() && other.left() < t.left()+t.width() &&
		t.y-t.size*0.8 < other.y+other.size*0.2 && other.y-other.size*0.8 < t.y+t.size*0.2
}

var loads = regexp.MustCompile(`(?i)<script|<image|<foreignObject|<use|href|@import|url\(|\son\w+=`)

// safeXML checks that an SVG is XML, and loads and runs nothing.
func safeXML(svg string) error {
	if bad := loads.FindString(svg); bad != "" {
		return fmt.Errorf("the SVG must not contain %q", bad)
	}
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}
