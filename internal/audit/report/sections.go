package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// reportSection holds one section of a report in Markdown or HTML. Its text is not escaped and may come from an
// untrusted source, so the writer of the page must escape it.
type reportSection struct {
	Title string
	Text  []string
	Head  []string
	Rows  [][]string
	List  []string
	Query string // command that lists the entries behind the section
}

// allSections returns the sections of a report in order, without those that are empty.
func (r *PeriodReport) allSections() []reportSection {
	all := []reportSection{
		r.totalsSection(), r.callsSection(), r.risksSection(), r.violationsSection(), r.approvalsSection(), r.highRisk(),
		r.actionsSection(), r.failuresSection(), r.dataSection(), r.accessSection(),
	}
	all = append(all, r.changeSections()...)
	all = append(all, r.erasuresSection(), r.anomaliesSection(), r.integritySection(), r.retentionSection(), r.settingsSection())
	return slices.DeleteFunc(all, func(s reportSection) bool { return s.Title == "" })
}

func formatTime(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func formatOptionalTime(t *time.Time) string {
	if t == nil {
		return "none"
	}
	return formatTime(*t)
}

func formatNumber(n int64) string { return fmt.Sprint(n) }

// countRows returns counts as rows of a table. If there are too many, the last row gives the number and total of
// those omitted.
func countRows(all []NamedCount) (rows [][]string) {
	for i, c := range all {
		if i == maxListedLines {
			rows = append(rows, []string{fmt.Sprintf("(%d others)", len(all)-maxListedLines), formatNumber(totalCount(all[maxListedLines:]))})
			break
		}
		rows = append(rows, []string{c.Name, formatNumber(c.Count)})
	}
	return rows
}

func (r *PeriodReport) totalsSection() reportSection {
	a := r.Activity
	return reportSection{Title: "Totals", Head: []string{"what", "count"}, Query: r.queryCommand(""), Rows: slices.Concat([][]string{
		{"entries of the audit log", formatNumber(a.Entries)}, {"first entry of the period", formatOptionalTime(a.First)},
		{"last entry of the period", formatOptionalTime(a.Last)},
		{"engine starts", formatNumber(a.Engines)}, {"executions requested", formatNumber(a.Asked)},
		{"executions ended", formatNumber(a.Ended)}, {"of these, dry runs", formatNumber(a.DryRuns)},
		{"average duration of an execution", formatAverage(a.Average)},
		{"tokens returned to the model", formatNumber(a.Returned)},
		{"tokens kept out of its context", formatNumber(a.Avoided)},
		{"tool searches", formatNumber(a.Searches)},
	}, prefixedRows("ended as ", a.ByStatus), prefixedRows("calls that are ", a.Effects), prefixedRows(
		"files that the model reads itself: ", a.Files,
	))}
}

func (r *PeriodReport) callsSection() reportSection {
	return reportSection{
		Title: "Calls by tool", Head: []string{"tool", "calls"}, Rows: countRows(r.Activity.Tools),
		Query: r.queryCommand("--kind call"),
	}
}

func prefixedRows(prefix string, all []NamedCount) [][]string {
	rows := countRows(all)
	for i := range rows {
		rows[i][0] = prefix + rows[i][0]
	}
	return rows
}

func (r *PeriodReport) risksSection() reportSection {
	return reportSection{Title: "Executions by risk", Head: []string{
		"risk", "executions",
	}, Rows: countRows(r.Activity.ByRisk), Query: r.queryCommand("--kind end"),
		Text: []string{"Low is below 25, medium below 50, high below 80 of 100. Programs that were refused before they could be judged have no risk."}}
}

func (r *PeriodReport) violationsSection() reportSection {
	a := r.Activity
	return reportSection{Title: "Violations", Head: []string{
		"what was refused, and why", "count",
	}, Query: r.queryCommand("--kind refusal,verdict"),
		Rows: slices.Concat(prefixedRows("call to ", a.Refused), prefixedRows("program: ", a.Rejected)),
		Text: []string{"At most 100 refused calls of one execution are recorded individually."}}
}

func (r *PeriodReport) approvalsSection() reportSection {
	a := r.Activity.Approvals
	s := reportSection{Title: "Approvals", Head: []string{"what", "count"}, Query: r.queryCommand("--kind question,decision")}
	s.Rows = slices.Concat(
		[][]string{
			{"approval requests", formatNumber(a.Asked)}, {"not settled in the period", formatNumber(a.Open)},
			{"programs approved automatically", formatNumber(a.Automatic)},
		},
		prefixedRows("", a.Outcomes), prefixedRows("answered through ", a.By),
		prefixedRows("requested because of ", a.Rules),
	)
	s.Text = append(s.Text, "Covered means that an earlier approval already included the call.")
	if a.Median != nil {
		s.Text = append(
			s.Text,
			fmt.Sprintf("Waiting time: median %s, longest %s, from %d answers.", formatSeconds(*a.Median), formatSeconds(*a.Longest), a.Waits),
		)
	}
	return s
}

func (r *PeriodReport) highRisk() reportSection {
	return r.executionsSection(
		fmt.Sprintf("High-risk executions (risk %d or more)", HighRisk), r.Activity.HighRisk,
		fmt.Sprintf("--kind end --min-risk %d", HighRisk),
	)
}

func formatAverage(millis *float64) string {
	if millis == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *millis)
}

func (r *PeriodReport) actionsSection() reportSection {
	a := r.Activity.Actions
	s := reportSection{
		Title: "High-risk actions", Head: []string{"time (UTC)", "execution", "principal", "tool", "approved by"},
		Query: r.queryCommand("--kind call"),
	}
	s.Text = []string{"Irreversible calls: they delete, send, pay, publish or run something. Automatic means that the settings approve them."}
	for _, x := range a.List {
		s.Rows = append(s.Rows, []string{formatTime(x.At), x.Execution, cmp.Or(x.Principal, "-"), x.Tool, x.Approval})
	}
	if a.Total > int64(len(a.List)) {
		s.Text = append(s.Text, fmt.Sprintf("The newest %d of %d.", len(a.List), a.Total))
	}
	return s
}

func (r *PeriodReport) failuresSection() reportSection {
	s := r.executionsSection("Failures", r.Activity.Failures, "--kind end")
	if failed := r.Activity.CallErrors; len(failed) > 0 {
		s.Text = append(s.Text, "Calls that failed: "+joinCounts(failed)+".")
	}
	return s
}

func (r *PeriodReport) executionsSection(title string, x ExecutionList, flags string) reportSection {
	s := reportSection{
		Title: title, Head: []string{"time (UTC)", "execution", "principal", "risk", "status", "error"},
		Query: r.queryCommand(flags),
	}
	for _, e := range x.List {
		risk := "-"
		if e.Risk != nil {
			risk = fmt.Sprint(*e.Risk)
		}
		s.Rows = append(s.Rows, []string{formatTime(e.At), e.ID, cmp.Or(e.Principal, "-"), risk, e.Status, cmp.Or(e.Error, "-")})
	}
	if x.Total > int64(len(x.List)) {
		s.Text = []string{fmt.Sprintf("The newest %d of %d.", len(x.List), x.Total)}
	}
	return s
}

func (r *PeriodReport) dataSection() reportSection {
	a := r.Activity
	s := reportSection{Title: "Personal data", Head: []string{"category", "count"}, Query: r.queryCommand("--kind reveal"),
		Rows: slices.Concat(
			prefixedRows("found: ", a.Seen), prefixedRows("shown: ", a.Revealed),
			prefixedRows("disclosures of values to the ", a.Reveals),
		)}
	if len(a.Seen) == 0 {
		s.Text = []string{"No execution of the period lists categories of personal data. Either none were found, or hiding was off, or a version wrote the entries that did not record categories."}
	}
	return s
}

func (r *PeriodReport) accessSection() reportSection {
	s := reportSection{
		Title: "Access", Head: []string{"principal", "rights (current settings)", "executions in the period"},
		Query: r.queryCommand("--kind request"),
	}
	known := map[string]bool{}
	for _, p := range r.Access {
		name := cmp.Or(p.Name, "(not named)")
		known[name] = true
		s.Rows = append(s.Rows, []string{
			cmp.Or(p.Name, "all principals that the settings do not name"), p.May,
			formatNumber(countOf(r.Activity.Principals, name)),
		})
	}
	for _, c := range r.Activity.Principals {
		if !known[c.Name] && len(s.Rows) < maxListedLines {
			s.Rows = append(s.Rows, []string{c.Name, "as everybody", formatNumber(c.Count)})
		}
	}
	return s
}

func (r *PeriodReport) changeSections() []reportSection {
	a := r.Activity
	return []reportSection{
		r.listSection(
			"Configuration changes", "settings", a.Settings, "--kind settings",
			"Detected while retort serve runs, otherwise at the next start of an engine. The audit log contains digests of the settings, not the settings themselves.",
		),
		r.listSection("Changed and trusted tool definitions", "definitions", a.Pins, "--kind pin", ""),
		r.listSection("Skills", "skills", a.Skills, "--kind skill", ""),
	}
}

func (r *PeriodReport) erasuresSection() reportSection {
	return r.listSection("Erasures", "erasures", r.Activity.Erasures, "--kind erasure", "")
}

func (r *PeriodReport) anomaliesSection() reportSection {
	return r.listSection("Anomalies", "anomalies", r.Activity.Anomalies, "--kind anomaly", "")
}

func (r *PeriodReport) listSection(title, name string, all []SettingChange, flags, text string) reportSection {
	s := reportSection{Title: title, Head: []string{"time (UTC)", "what", "how"}, Query: r.queryCommand(flags)}
	if text != "" {
		s.Text = append(s.Text, text)
	}
	for _, c := range all {
		s.Rows = append(s.Rows, []string{formatTime(c.At), cmp.Or(c.What, "-"), cmp.Or(c.How, "-")})
	}
	if more := r.Activity.More[name]; more > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The newest %d of %d.", len(all), int64(len(all))+more))
	}
	return s
}

func (r *PeriodReport) integritySection() reportSection {
	v := r.Integrity
	s := reportSection{
		Title: "Integrity", Query: "retort audit verify", Text: []string{integrityEvidence(r).Says},
		Head: []string{"chain", "entries", "last", "from (UTC)", "to (UTC)", "bad", "open executions"},
	}
	for _, c := range v.Chains {
		s.Rows = append(s.Rows, []string{
			c.Chain, formatNumber(c.Entries), formatNumber(c.Last), formatTime(c.From), formatTime(c.To),
			formatNumber(c.Bad), fmt.Sprint(c.Open),
		})
	}
	for i, f := range v.Findings {
		if i == maxListedLines {
			break
		}
		s.List = append(s.List, f.What+": "+f.Says)
	}
	if r.Activity.Clocks > 0 {
		s.List = append(s.List, fmt.Sprintf("A person confirmed %d times in this period that a clock behind the audit log was right.", r.Activity.Clocks))
	}
	s.List = append(s.List, v.Notes[:min(len(v.Notes), maxListedLines)]...)
	return s
}

func (r *PeriodReport) retentionSection() reportSection {
	t := r.Retention
	return reportSection{Title: "Retention", Head: []string{"what", "value"}, Query: r.queryCommand("--kind retention"), Rows: [][]string{
		{"entries are kept in the store", daysOf(t.KeepDays)}, {"archives stay", daysOf(t.ArchiveDays)},
		{"oldest entry", formatOptionalTime(t.Oldest)},
		{"archives", fmt.Sprint(t.Archives)}, {"archives deleted by the retention settings", fmt.Sprint(t.Deleted)},
		{"entries moved to archives in the period", formatNumber(t.EntriesMoved)}, {"entries deleted in the period", formatNumber(t.EntriesGone)},
	}}
}

func (r *PeriodReport) settingsSection() reportSection {
	s := reportSection{
		Title: "Current settings", Head: []string{"setting", "value"},
		Text: []string{"Settings at the time of this report. Earlier settings are among the configuration changes, as digests."},
	}
	for _, set := range r.Settings {
		s.Rows = append(s.Rows, []string{set.Name, set.Value})
	}
	return s
}
