package bench

import (
	"fmt"
	"time"

	"retort/internal/base/htmlpage"
)

// TokenPage returns an HTML page about the workloads, with a chart for each.
func TokenPage(works []Workload, made time.Time) htmlpage.Page {
	p := htmlpage.Page{
		Title: "What code execution saves and costs",
		Lead: []string{
			"Nine tasks, each done in four ways against the same servers. All calls were really made; what a model would think was played, as well as the tools allow. All ways came to the same answers.",
			"The context is what a model has before it at the end: definitions of tools, what it read, and what it wrote. Tokens are those of o200k_base. The time is that of the calls; a model's own is not in it.",
			"Made " + made.UTC().Format(time.DateTime) + " UTC by retort bench tokens.",
		},
		Sections: []htmlpage.PageSection{allWorkloads(works)},
	}
	for i, w := range works {
		p.Sections = append(p.Sections, w.reportSection(i+1))
	}
	return p
}

// allWorkloads returns the table of all workloads.
func allWorkloads(works []Workload) htmlpage.PageSection {
	s := htmlpage.PageSection{Title: "All tasks: tokens of context, and round trips", Table: htmlpage.PageTable{Columns: []string{"task"}}}
	for _, w := range works {
		row := []string{w.Name}
		for _, c := range w.Costs {
			if len(s.Table.Rows) == 0 {
				s.Table.Columns = append(s.Table.Columns, c.Way)
			}
			row = append(row, fmt.Sprintf("%s · %d", htmlpage.FormatNumber(float64(c.Peak)), c.RoundTrips))
		}
		s.Table.Rows = append(s.Table.Rows, row)
	}
	return s
}

func (w Workload) reportSection(n int) htmlpage.PageSection {
	s := htmlpage.PageSection{
		Title: fmt.Sprintf("%d. %s", n, w.Name), Text: []string{w.Task}, Unit: "tokens", Notes: w.ListVerdicts(),
		Table: htmlpage.PageTable{Columns: []string{
			"way", "definitions", "read", "written", "tool calls", "round trips", "wall ms", "context",
			"input over all turns",
		}},
	}
	for _, c := range w.Costs {
		s.Bars = append(s.Bars, htmlpage.ChartBar{
			Name: c.Way,
			Parts: []htmlpage.BarPart{
				{Name: "definitions", Length: float64(c.Definitions)}, {Name: "read", Length: float64(c.Read)},
				{Name: "written", Length: float64(c.Written)},
			},
		})
		row := []string{c.Way}
		for _, f := range []float64{
			float64(c.Definitions), float64(c.Read), float64(c.Written), float64(c.Calls), float64(c.RoundTrips), c.WallMS,
			float64(c.Peak), float64(c.Input),
		} {
			row = append(row, htmlpage.FormatNumber(f))
		}
		s.Table.Rows = append(s.Table.Rows, row)
	}
	return s
}
