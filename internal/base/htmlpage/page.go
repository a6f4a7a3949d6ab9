// Package htmlpage renders self-contained HTML pages with text, bars and tables. It does no I/O of its own.
package htmlpage

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Page represents one HTML file.
type Page struct {
	Title    string
	Lead     []string // paragraphs of text below the title
	Sections []PageSection
}

// PageSection represents a part of a page. Empty fields are omitted.
type PageSection struct {
	Title string
	Text  []string   // paragraphs of text
	Bars  []ChartBar // rows of the chart, all drawn to the same scale
	Unit  string     // unit of the bars' lengths
	Notes []string   // items of a bulleted list
	Table PageTable
}

// ChartBar represents one row of a chart: a bar of stacked segments.
type ChartBar struct {
	Name  string
	Parts []BarPart
}

// BarPart represents one segment of a bar. Segments with the same name have the same colour within a section.
type BarPart struct {
	Name   string
	Length float64
}

// PageTable represents a table with column titles. All columns except the first hold numbers and are aligned right.
type PageTable struct {
	Columns []string
	Rows    [][]string
}

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>%s</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; border-bottom: 1px solid #ccc; }
table { border-collapse: collapse; width: 100%%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid #ddd; } th:first-child, td:first-child { text-align: left; }
svg { display: block; width: 100%%; height: auto; margin: .6rem 0; } svg text { font: 12px system-ui, sans-serif; }
@media (prefers-color-scheme: dark) { body { color: #e6e6e6; background: #161616; } h2 { border-color: #555; } th, td { border-color: #444; } svg text { fill: #e6e6e6; } }
@media print { body { margin: 0; max-width: none; font-size: 11px; } svg, tr { break-inside: avoid; } }
</style>
</head>
<body>
`

// Write writes the page as HTML. It escapes all texts of p.
func (p Page) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, pageHead, html.EscapeString(p.Title))
	writeElement(&b, "h1", p.Title)
	writeParagraphs(&b, p.Lead)
	for _, s := range p.Sections {
		s.writeSection(&b)
	}
	b.WriteString("</body>\n</html>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

func writeElement(b *strings.Builder, name, text string) {
	fmt.Fprintf(b, "<%s>%s</%s>\n", name, html.EscapeString(text), name)
}

func writeParagraphs(b *strings.Builder, texts []string) {
	for _, t := range texts {
		writeElement(b, "p", t)
	}
}

func (s PageSection) writeSection(b *strings.Builder) {
	writeElement(b, "h2", s.Title)
	writeParagraphs(b, s.Text)
	if len(s.Bars) > 0 {
		s.drawBars(b)
	}
	if len(s.Notes) > 0 {
		b.WriteString("<ul>\n")
		for _, n := range s.Notes {
			writeElement(b, "li", n)
		}
		b.WriteString("</ul>\n")
	}
	s.Table.writeTable(b)
}

func (t PageTable) writeTable(b *strings.Builder) {
	if len(t.Rows) == 0 {
		return
	}
	b.WriteString("<table>\n")
	writeRow(b, "th", t.Columns)
	for _, r := range t.Rows {
		writeRow(b, "td", r)
	}
	b.WriteString("</table>\n")
}

func writeRow(b *strings.Builder, cell string, texts []string) {
	b.WriteString("<tr>")
	for _, t := range texts {
		fmt.Fprintf(b, "<%s>%s</%s>", cell, html.EscapeString(t), cell)
	}
	b.WriteString("</tr>\n")
}

// Dimensions of a chart, in units of the SVG coordinate system.
const (
	nameWidth  = 230
	barsWidth  = 600
	totalWidth = nameWidth + barsWidth + 110
	lineHeight = 24
)

var barColours = []string{"#4269d0", "#efb118", "#3ca951", "#ff725c", "#a463f2", "#6cc5b0"}

// drawBars draws all bars of the section to the same scale. It writes the sum of each bar's parts after the bar.
func (s PageSection) drawBars(b *strings.Builder) {
	longest, names := 0.0, []string{}
	for _, bar := range s.Bars {
		longest = max(longest, bar.totalLength())
		names = bar.appendNames(names)
	}
	fmt.Fprintf(
		b, `<svg viewBox="0 0 %d %d" role="img" aria-label="%s">`+"\n", totalWidth, (len(s.Bars)+1)*lineHeight,
		html.EscapeString(s.Title),
	)
	for i, bar := range s.Bars {
		bar.drawBar(b, i*lineHeight, names, barsWidth/max(longest, 1), s.Unit)
	}
	for i, name := range names {
		x, y := nameWidth+i*150, len(s.Bars)*lineHeight
		fmt.Fprintf(
			b, `<rect x="%d" y="%d" width="12" height="12" fill="%s"/><text x="%d" y="%d">%s</text>`+"\n", x, y+5,
			barColour(i), x+18, y+15, html.EscapeString(name),
		)
	}
	b.WriteString("</svg>\n")
}

func barColour(i int) string { return barColours[i%len(barColours)] }

func (bar ChartBar) totalLength() (sum float64) {
	for _, p := range bar.Parts {
		sum += p.Length
	}
	return sum
}

// appendNames appends the names of the bar's parts to names, except those that names already contains.
func (bar ChartBar) appendNames(names []string) []string {
	for _, p := range bar.Parts {
		if nameIndex(names, p.Name) < 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

func nameIndex(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return -1
}

func (bar ChartBar) drawBar(b *strings.Builder, y int, names []string, scale float64, unit string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="end">%s</text>`, nameWidth-8, y+16, html.EscapeString(bar.Name))
	x := float64(nameWidth)
	for _, p := range bar.Parts {
		fmt.Fprintf(
			b, `<rect x="%.1f" y="%d" width="%.1f" height="18" fill="%s"><title>%s: %s</title></rect>`, x, y+3,
			p.Length*scale, barColour(nameIndex(names, p.Name)), html.EscapeString(p.Name), FormatNumber(p.Length),
		)
		x += p.Length * scale
	}
	fmt.Fprintf(b, `<text x="%.1f" y="%d">%s %s</text>`+"\n", x+6, y+16, FormatNumber(bar.totalLength()), html.EscapeString(unit))
}

// FormatNumber formats f as a whole number with commas.
func FormatNumber(f float64) string {
	s := fmt.Sprintf("%.0f", f)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
