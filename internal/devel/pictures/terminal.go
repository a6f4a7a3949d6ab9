package pictures

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Scene describes one step of a recording: a comment, a command and its output, and how many seconds they are shown.
type Scene struct {
	Comment string // line above the command
	Command string
	Output  string
	Seconds float64
}

// Dimensions of a terminal.
const (
	terminalRows    = 34
	terminalColumns = 112
	rowHeight       = 14.5
	terminalTop     = 44
	terminalLeft    = 22
	commandSeconds  = 1.0 // seconds between the command and its output
)

// Recording draws a terminal that shows scenes one after the other and begins again. Without motion it shows the last.
func Recording(scenes []Scene) *Picture {
	p := &Picture{
		Name: "recording", Title: "Retort in a terminal", Width: 800, Height: terminalTop + terminalRows*14.5 + 16,
		Description: "A search finds tools. A program with a wrong argument is rejected before it runs, " +
			"with the right signature. " +
			"The corrected program runs until it wants to write a file. A person approves. " +
			"Statistics show the tokens that were avoided.",
	}
	p.rect(8, 8, 784, float64(p.Height-16), 8, shell, edge, "")
	for i, ink := range []colour{bad, muted, good} {
		p.draw(func(b *strings.Builder, c Palette) {
			fmt.Fprintf(b, `<circle cx="%d" cy="24" r="5" fill="%s"/>`+"\n", 26+i*16, c[ink])
		})
	}
	total := 0.0
	for _, s := range scenes {
		total += s.Seconds
	}
	p.style = fmt.Sprintf(".s{opacity:0;animation-duration:%.0fs;animation-timing-function:step-end;"+
		"animation-iteration-count:infinite}", total)
	from := 0.0
	for i, s := range scenes {
		p.drawScene(i, s, from/total*100, min(1, commandSeconds/total)*100, (from+s.Seconds)/total*100)
		from += s.Seconds
	}
	last := 2*len(scenes) - 1
	p.style += fmt.Sprintf(".s%d,.s%d{opacity:1}"+
		"@media(prefers-reduced-motion:reduce){.s{animation:none}}", last-1, last)
	return p
}

// drawScene draws a scene in two layers: the command, and its output, which appears later. The times are percentages.
func (p *Picture) drawScene(n int, s Scene, from, wait, to float64) {
	command := wrapOutput("# " + s.Comment + "\n$ " + s.Command)
	rows := append(slices.Clone(command), wrapOutput(s.Output)...)
	hidden := max(0, len(rows)-terminalRows)
	for layer, part := range []struct{ from, first, last int }{{0, 0, len(command)}, {1, len(command), len(rows)}} {
		id := 2*n + layer
		begin := from + wait*float64(layer)
		if hidden > 0 {
			begin = from // the command is there already
		}
		p.style += fmt.Sprintf("@keyframes k%d{0%%{opacity:0}%.1f%%{opacity:1}%.1f%%{opacity:0}100%%{opacity:0}}"+
			".s%d{animation-name:k%d}", id, begin, to, id, id)
		p.draw(func(b *strings.Builder, _ Palette) { fmt.Fprintf(b, `<g class="s s%d">`+"\n", id) })
		for i := max(part.first, hidden); i < part.last; i++ {
			p.writeRow(n+1, i-hidden, rows[i])
		}
		p.draw(func(b *strings.Builder, _ Palette) { b.WriteString("</g>\n") })
	}
}

// row is one line of text in a terminal, with its colour.
type row struct {
	words string
	ink   colour
}

func (p *Picture) writeRow(layer, n int, r row) {
	if r.words != "" {
		p.write(text{
			words: r.words, x: terminalLeft, y: terminalTop + float64(n+1)*rowHeight, size: small, anchor: "start",
			ink: r.ink, paper: shell, mono: true, layer: layer, room: 800 - 2*terminalLeft,
		})
	}
}

// lineInks maps the beginnings of lines to colours.
var lineInks = map[string]colour{
	"# ": muted, "$ ": accent, "error: ": bad, "rejected ": bad, "ok ": good,
	"hint: ": good, "? ": accent, "y = yes": accent,
}

// lineInk returns the colour of a line of a terminal.
func lineInk(line string) colour {
	for begin, c := range lineInks {
		if strings.HasPrefix(line, begin) {
			return c
		}
	}
	return ink
}

var controls = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]|\r`)

// wrapOutput splits the output of a command into rows of the terminal.
func wrapOutput(output string) (rows []row) {
	output = strings.ReplaceAll(controls.ReplaceAllString(output, ""), "\t", "    ")
	for line := range strings.SplitSeq(strings.Trim(output, "\n"), "\n") {
		c, rest := lineInk(line), []rune(strings.TrimRight(line, " "))
		for len(rest) > terminalColumns {
			rows, rest = append(rows, row{string(rest[:terminalColumns]), c}), rest[terminalColumns:]
		}
		rows = append(rows, row{string(rest), c})
	}
	return rows
}

var volatileText = regexp.MustCompile(`\d[\d.,]*( ?(ms|s|µs|MB|tokens)\b)|\d[\d,]* (returned|avoided)|` +
	`(\d+m)?\d+(\.\d+)?(ms|s|µs)|20\d\d-\d\d-\d\d|\d{1,3}(,\d{3})+| {2,}([\d.,]+(ms|s|µs|m)?)*`)

// Stable replaces those parts of a recording's text that differ from run to run: times, dates, tokens, sizes, and
// the widths of columns.
func Stable(svg string) string { return volatileText.ReplaceAllString(svg, "~") }
