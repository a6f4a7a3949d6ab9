package main

import (
	"cmp"
	"fmt"
	"time"

	"retort/internal/admin"
	"retort/internal/base/htmlpage"
)

// longest is the largest number of bars in a chart.
const longest = 60

// usagePage returns a page about executions, in the format of the page of retort bench tokens.
func usagePage(u admin.Usage, made time.Time) htmlpage.Page {
	p := htmlpage.Page{
		Title: "What programs did, and what they kept out of the context",
		Lead: []string{
			fmt.Sprintf("%s executions (%s) with %s tool calls, %s of them with errors. %s tokens were returned to models; %s were avoided%s: the arguments and results of calls in programs, and the definitions of tools that a client would have carried.",
				count(u.Executions), counts(u.ByStatus), count(u.Calls), count(u.Errors), count(u.Returned), count(u.Avoided), saved(u.Cost)),
			"Tokens are those of o200k_base. Made " + made.UTC().Format(time.DateTime) + " UTC by retort stats, of a record with " +
				count(u.Entries) +
				" entries.",
		},
	}
	p.Sections = append(p.Sections, daysSection(u), toolsSection(u))
	if len(u.Principals) > 0 {
		p.Sections = append(p.Sections, principalsSection(u))
	}
	return p
}

func daysSection(u admin.Usage) htmlpage.Section {
	s := htmlpage.Section{
		Title: "By day", Unit: "tokens",
		Table: htmlpage.Table{Columns: []string{"day", "executions", "calls", "errors", "returned", "avoided"}},
	}
	for _, d := range u.Days {
		s.Bars = append(s.Bars, htmlpage.Bar{
			Name:  d.Day,
			Parts: []htmlpage.Part{{Name: "returned", Length: float64(d.Returned)}, {Name: "avoided", Length: float64(d.Avoided)}},
		})
		s.Table.Rows = append(s.Table.Rows, []string{
			d.Day, count(d.Executions), count(d.Calls), count(d.Errors), count(d.Returned), count(d.Avoided),
		})
	}
	if n := len(s.Bars); n > longest {
		s.Bars, s.Text = s.Bars[n-longest:], []string{fmt.Sprintf("The chart shows the last %d of %d days.", longest, n)}
	}
	return s
}

func toolsSection(u admin.Usage) htmlpage.Section {
	s := htmlpage.Section{
		Title: "By tool", Unit: "calls",
		Table: htmlpage.Table{Columns: []string{"tool", "calls", "errors", "mean", "bytes"}},
	}
	for _, t := range u.Tools {
		name := printable(t.Server + "." + t.Tool)
		if len(s.Bars) < longest {
			s.Bars = append(s.Bars, htmlpage.Bar{
				Name:  name,
				Parts: []htmlpage.Part{{Name: "answered", Length: float64(t.Calls - t.Errors)}, {Name: "errors", Length: float64(t.Errors)}},
			})
		}
		s.Table.Rows = append(s.Table.Rows, []string{name, count(t.Calls), count(t.Errors), millis(t.MeanMS), count(t.Bytes)})
	}
	return s
}

func principalsSection(u admin.Usage) htmlpage.Section {
	s := htmlpage.Section{
		Title: "By principal",
		Table: htmlpage.Table{Columns: []string{"principal", "executions", "failed", "returned", "avoided"}},
	}
	for _, one := range u.Principals {
		s.Table.Rows = append(s.Table.Rows, []string{
			cmp.Or(printable(one.Principal), "(nobody named)"), count(one.Executions), count(one.Failed),
			count(one.Returned), count(one.Avoided),
		})
	}
	return s
}
