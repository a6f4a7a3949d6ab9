package pictures

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Task is a task of retort bench tokens, with its costs for each way of doing it.
type Task struct {
	Name string `json:"name"`
	Ways []Way  `json:"ways"`
}

// Way is one way to do a task, with its costs.
type Way struct {
	Way        string `json:"way"`
	Loaded     int    `json:"loaded"`       // tokens of definitions before the first turn
	Peak       int    `json:"peak_context"` // tokens of the context at the end
	RoundTrips int    `json:"round_trips"`
}

// Dimensions of the chart.
const (
	chartLeft  = 218
	chartRight = 716
	barHeight  = 13
	firstTask  = 96
	taskHeight = 4*barHeight + 18
	leastValue = 500 // number of tokens at the left end of the scale
	mostValue  = 1_000_000
)

// Chart draws the tokens of each task in each way. Programs that cost more than a tool search have another colour.
func Chart(tasks []Task) *Picture {
	p := &Picture{Name: "tokens", Title: "Tokens in the model's context at the end of a task", Width: 800}
	p.Height = firstTask + len(tasks)*taskHeight + 34
	p.Description = "Bars for each task: direct calls with all definitions, direct calls with a tool search, " +
		"programs with all tools of Retort, and programs with the lean surface."
	p.Label(20, 32, 760, "start", page, Line{Words: p.Title, Size: 15, Bold: true})
	x := 20.0
	for _, k := range []struct {
		fill colour
		name string
	}{
		{bar1, "direct, all definitions"}, {bar2, "direct, tool search"},
		{accent, "program (full, lean)"}, {bad, "program, more than tool search"},
	} {
		p.rect(x, 48, 12, 12, 3, k.fill, "", "")
		t := text{words: k.name, size: small}
		p.Label(x+18, 58, t.width()+2, "start", page, minor(k.name))
		x += 32 + t.width()
	}
	bottom := float64(firstTask + len(tasks)*taskHeight - 6)
	for v := 1000; v <= mostValue; v *= 10 {
		at := onScale(v)
		p.draw(gridLine(at, firstTask-6, bottom))
		p.Label(at, firstTask-10, 80, "middle", page, note(thousands(v)))
	}
	for i, t := range tasks {
		p.drawTask(t, float64(firstTask+i*taskHeight))
	}
	p.Label(20, bottom+24, 760, "start", page,
		note("The scale is logarithmic: each line is ten times the one before. Shorter is better."))
	return p
}

func (p *Picture) drawTask(t Task, y float64) {
	p.Label(chartLeft-12, y+2.4*barHeight, chartLeft-28, "end", page, bold(t.Name))
	for i, w := range t.Ways {
		fill := []colour{bar1, bar2, accent, accent}[i]
		if i >= 2 && w.Peak > t.Ways[1].Peak {
			fill = bad
		}
		top, end := y+float64(i*barHeight), onScale(w.Peak)
		p.rect(chartLeft, top, end-chartLeft, barHeight-2, 2, fill, "", "")
		l := Line{Words: thousands(w.Peak), Size: small, Halo: true}
		if fill == bad {
			l.Ink = bad
		}
		p.Label(end+6, top+barHeight-3.2, 70, "start", page, l)
	}
}

func gridLine(x, from, to float64) part {
	return func(b *strings.Builder, c Palette) {
		fmt.Fprintf(b, `<path d="M%.1f %gV%g" stroke="%s" stroke-width="1" stroke-dasharray="2 3"/>`+"\n",
			x, from, to, c[faint])
	}
}

// onScale returns the x coordinate of a number of tokens.
func onScale(n int) float64 {
	share := math.Log(float64(n)/leastValue) / math.Log(float64(mostValue)/leastValue)
	return math.Round(10*(chartLeft+share*(chartRight-chartLeft))) / 10
}

// thousands formats a number with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
