package main

import (
	"cmp"
	"fmt"
	"time"

	"retort/internal/admin"
	"retort/internal/base/htmlpage"
)

// maxTableRows limits the number of bars in a chart. Each bar is a row of a table.
const maxTableRows = 60

// usagePage returns an HTML page with usage statistics. It has the same layout as the page of retort bench tokens.
func usagePage(u admin.Usage, made time.Time) htmlpage.Page {
	p := htmlpage.Page{
		Title: "Executions and the tokens that they saved",
		Lead: []string{
			fmt.Sprintf("%s executions (%s) with %s tool calls, %s of them with errors. %s tokens were returned to models; %s were avoided%s: the arguments and results of calls in programs, and the tool definitions that a client would have loaded.",
				formatCount(u.Executions), formatCounts(u.ByStatus), formatCount(u.Calls), formatCount(u.Errors), formatCount(u.Returned), formatCount(u.Avoided), costSavedText(u.Cost)),
			"Tokens are those of o200k_base. Made " + made.UTC().Format(time.DateTime) + " UTC by retort stats, from an audit log with " +
				formatCount(u.Entries) +
				" entries.",
		},
	}
	p.Sections = append(p.Sections, daysSection(u), toolsSection(u))
	if len(u.Principals) > 0 {
		p.Sections = append(p.Sections, principalsSection(u))
	}
	return p
}

func daysSection(u admin.Usage) htmlpage.PageSection {
	s := htmlpage.PageSection{
		Title: "By day", Unit: "tokens",
		Table: htmlpage.PageTable{Columns: []string{"day", "executions", "calls", "errors", "returned", "avoided"}},
	}
	for _, d := range u.Days {
		s.Bars = append(s.Bars, htmlpage.ChartBar{
			Name:  d.Day,
			Parts: []htmlpage.BarPart{{Name: "returned", Length: float64(d.Returned)}, {Name: "avoided", Length: float64(d.Avoided)}},
		})
		s.Table.Rows = append(s.Table.Rows, []string{
			d.Day, formatCount(d.Executions), formatCount(d.Calls), formatCount(d.Errors), formatCount(d.Returned), formatCount(d.Avoided),
		})
	}
	if n := len(s.Bars); n > maxTableRows {
		s.Bars, s.Text = s.Bars[n-maxTableRows:], []string{fmt.Sprintf("The chart shows the last %d of %d days.", maxTableRows, n)}
	}
	return s
}

func toolsSection(u admin.Usage) htmlpage.PageSection {
	s := htmlpage.PageSection{
		Title: "By tool", Unit: "calls",
		Table: htmlpage.PageTable{Columns: []string{"tool", "calls", "errors", "mean", "bytes"}},
	}
	for _, t := range u.Tools {
		name := replaceControls(t.Server + "." + t.Tool)
		if len(s.Bars) < maxTableRows {
			s.Bars = append(s.Bars, htmlpage.ChartBar{
				Name:  name,
				Parts: []htmlpage.BarPart{{Name: "answered", Length: float64(t.Calls - t.Errors)}, {Name: "errors", Length: float64(t.Errors)}},
			})
		}
		s.Table.Rows = append(s.Table.Rows, []string{name, formatCount(t.Calls), formatCount(t.Errors), formatMillis(t.MeanMS), formatCount(t.Bytes)})
	}
	return s
}

func principalsSection(u admin.Usage) htmlpage.PageSection {
	s := htmlpage.PageSection{
		Title: "By principal",
		Table: htmlpage.PageTable{Columns: []string{"principal", "executions", "failed", "returned", "avoided"}},
	}
	for _, one := range u.Principals {
		s.Table.Rows = append(s.Table.Rows, []string{
			cmp.Or(replaceControls(one.Principal), "(no principal)"), formatCount(one.Executions), formatCount(one.Failed),
			formatCount(one.Returned), formatCount(one.Avoided),
		})
	}
	return s
}
