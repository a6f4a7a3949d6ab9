// Package pictures draws the SVG pictures of the documentation: boxes, arrows, bars and text in a light and a dark
// palette. Only tests use it.
package pictures

import (
	"fmt"
	"html"
	"strings"
)

// Picture is a drawing. Coordinates are in units of its SVG. A page of the documentation is Width units wide.
type Picture struct {
	Name          string // of the file, without palette and extension
	Title         string // for screen readers
	Description   string // what the picture says, for screen readers
	Width, Height int

	style string // CSS for animated pictures
	parts []part
	texts []text
}

// part draws one element of a picture with the colours of a palette.
type part func(b *strings.Builder, p Palette)

// text is a line of text in a picture. The tests check that it fits.
type text struct {
	words      string
	x, y       float64 // position of the anchor on the baseline
	size       float64
	anchor     string // "start", "middle" or "end"
	ink, paper colour
	bold, mono bool
	struck     bool
	halo       bool    // whether the letters have a margin in the colour of the page, for text over lines
	layer      int     // texts of different layers are not shown at the same time; 0: always shown
	room       float64 // maximum width
}

// Line is a line of text in a box.
type Line struct {
	Words  string
	Size   float64 // 0: 12
	Ink    colour  // colour; "": that of text
	Bold   bool
	Mono   bool
	Struck bool
	Halo   bool // whether the letters have a margin in the colour of the page, for text over lines
}

func said(words string) Line  { return Line{Words: words} }
func bold(words string) Line  { return Line{Words: words, Bold: true} }
func quiet(words string) Line { return Line{Words: words, Ink: muted} }
func minor(words string) Line { return Line{Words: words, Size: small} }
func note(words string) Line  { return Line{Words: words, Size: small, Ink: muted} }

func heading(words string, size float64) Line {
	return Line{Words: words, Size: size, Bold: true, Ink: accent}
}

// Sizes of text, in units of the picture.
const (
	small  = 11 // smallest allowed size
	normal = 12
	large  = 14
)

const padding = 8 // between text and the edge of its box

func (p *Picture) draw(f part) { p.parts = append(p.parts, f) }

// rect draws a rectangle with round corners. dash is an SVG dash pattern, or "".
func (p *Picture) rect(x, y, w, h, radius float64, fill, stroke colour, dash string) {
	p.draw(func(b *strings.Builder, c Palette) {
		fmt.Fprintf(b, `<rect x="%g" y="%g" width="%g" height="%g" rx="%g" fill="%s"`, x, y, w, h, radius, c[fill])
		if stroke != "" {
			fmt.Fprintf(b, ` stroke="%s" stroke-width="1.5"`, c[stroke])
		}
		if dash != "" {
			fmt.Fprintf(b, ` stroke-dasharray="%s"`, dash)
		}
		b.WriteString("/>\n")
	})
}

// Box draws a box with centred lines of text.
func (p *Picture) Box(x, y, w, h float64, fill, stroke colour, lines ...Line) {
	p.rect(x, y, w, h, 8, fill, stroke, "")
	height := 0.0
	for i := range lines {
		lines[i] = lines[i].completed()
		height += lines[i].height()
	}
	at := y + (h-height)/2
	for _, l := range lines {
		at += l.height()
		p.write(text{
			words: l.Words, x: x + w/2, y: at - l.Size*0.36, size: l.Size, anchor: "middle", ink: l.Ink, paper: fill,
			bold: l.Bold, mono: l.Mono, struck: l.Struck, halo: l.Halo, room: w - 2*padding,
		})
	}
}

func (l Line) completed() Line {
	if l.Size == 0 {
		l.Size = normal
	}
	if l.Ink == "" {
		l.Ink = ink
	}
	return l
}

func (l Line) height() float64 { return l.Size * 1.42 }

// Area draws a dashed boundary with a title in its upper left corner.
func (p *Picture) Area(x, y, w, h float64, title string) {
	p.rect(x, y, w, h, 10, area, faint, "5 4")
	p.write(text{
		words: title, x: x + 12, y: y + 19, size: normal, anchor: "start",
		ink: muted, paper: area, bold: true, room: w - 24,
	})
}

// Label writes a text outside of boxes. room is its maximum width, in units of the picture.
func (p *Picture) Label(x, y, room float64, anchor string, paper colour, l Line) {
	l = l.completed()
	p.write(text{
		words: l.Words, x: x, y: y, size: l.Size, anchor: anchor, ink: l.Ink, paper: paper,
		bold: l.Bold, mono: l.Mono, struck: l.Struck, halo: l.Halo, room: room,
	})
}

// Arrow draws a line through points with a head at its end. The segments must be horizontal or vertical.
func (p *Picture) Arrow(stroke colour, points ...float64) { p.line(stroke, false, points) }

// DoubleArrow draws a line like Arrow, with a head at both ends.
func (p *Picture) DoubleArrow(stroke colour, points ...float64) { p.line(stroke, true, points) }

func (p *Picture) line(stroke colour, both bool, points []float64) {
	p.draw(func(b *strings.Builder, c Palette) {
		n := len(points)
		path := fmt.Sprintf("M%g %g", points[0], points[1])
		for i := 2; i < n; i += 2 {
			path += fmt.Sprintf("L%g %g", points[i], points[i+1])
		}
		path += arrowHead(points[n-4], points[n-3], points[n-2], points[n-1])
		if both {
			path += arrowHead(points[2], points[3], points[0], points[1])
		}
		fmt.Fprintf(b, `<path d="%s" fill="none" stroke="%s" stroke-width="1.6" stroke-linecap="round" `+
			`stroke-linejoin="round"/>`+"\n",
			path, c[stroke])
	})
}

// arrowHead returns the SVG path of the head of an arrow that points from x0, y0 to x, y.
func arrowHead(x0, y0, x, y float64) string {
	const long, wide = 6, 4
	dx, dy := sign(x-x0), sign(y-y0)
	return fmt.Sprintf("M%g %gL%g %gL%g %g",
		x-long*dx+wide*dy, y-long*dy+wide*dx, x, y, x-long*dx-wide*dy, y-long*dy-wide*dx)
}

func sign(f float64) float64 {
	switch {
	case f > 0:
		return 1
	case f < 0:
		return -1
	}
	return 0
}

// Badge draws a number in a circle.
func (p *Picture) Badge(x, y float64, words string) {
	p.draw(func(b *strings.Builder, c Palette) {
		fmt.Fprintf(b, `<circle cx="%g" cy="%g" r="10" fill="%s"/>`+"\n", x, y, c[accent])
	})
	p.write(text{
		words: words, x: x, y: y + 4, size: small, anchor: "middle", ink: page, paper: accent, bold: true, room: 18,
	})
}

func (p *Picture) write(t text) {
	p.texts = append(p.texts, t)
	p.draw(func(b *strings.Builder, c Palette) { t.write(b, c) })
}

func (t text) write(b *strings.Builder, c Palette) {
	fmt.Fprintf(b, `<text x="%g" y="%g" font-size="%g" fill="%s"`, t.x, t.y, t.size, c[t.ink])
	if t.anchor != "start" {
		fmt.Fprintf(b, ` text-anchor="%s"`, t.anchor)
	}
	if t.bold {
		b.WriteString(` font-weight="600"`)
	}
	if t.mono {
		b.WriteString(` class="m" xml:space="preserve"`)
	}
	if t.halo {
		fmt.Fprintf(b, ` stroke="%s" stroke-width="2" paint-order="stroke"`, c[t.paper])
	}
	if t.struck {
		b.WriteString(` text-decoration="line-through"`)
	}
	fmt.Fprintf(b, ">%s</text>\n", html.EscapeString(t.words))
}

const svgHead = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" ` +
	`role="img" aria-labelledby="t d">
<title id="t">%s</title>
<desc id="d">%s</desc>
<style>text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}` +
	`.m{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}%s</style>
<rect width="%d" height="%d" rx="10" fill="%s"/>
`

// SVG returns the picture in the colours of a palette.
func (p *Picture) SVG(c Palette) string {
	var b strings.Builder
	fmt.Fprintf(&b, svgHead, p.Width, p.Height, p.Width, p.Height,
		html.EscapeString(p.Title), html.EscapeString(p.Description),
		p.style, p.Width, p.Height, c[page])
	for _, draw := range p.parts {
		draw(&b, c)
	}
	b.WriteString("</svg>\n")
	return b.String()
}

// width estimates the width of the text in a wide font.
func (t text) width() float64 {
	sum := 0.0
	for _, r := range t.words {
		sum += glyphWidth(r, t.mono)
	}
	if t.bold {
		sum *= 1.15
	}
	return sum * t.size
}

func glyphWidth(r rune, mono bool) float64 {
	switch {
	case mono:
		return 0.61
	case strings.ContainsRune("iljI.,:;'|!", r):
		return 0.32
	case strings.ContainsRune(" frt()-[]/·", r):
		return 0.40
	case strings.ContainsRune("mwMW@%…", r):
		return 0.93
	case r >= 'A' && r <= 'Z':
		return 0.69
	}
	return 0.60
}

// left returns the x coordinate of the left end of the text.
func (t text) left() float64 {
	switch t.anchor {
	case "middle":
		return t.x - t.width()/2
	case "end":
		return t.x - t.width()
	}
	return t.x
}
