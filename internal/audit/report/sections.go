package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// section represents a part of a report as people read it. Everything in it is plain text, which may come from
// anywhere: who writes it out escapes it.
type section struct {
	Title string
	Text  []string
	Head  []string
	Rows  [][]string
	List  []string
	Query string // the command that lists what is behind it
}

// sections returns the parts of a report, in order.
func (r *Report) sections() []section {
	all := []section{r.totals(), r.calls(), r.risks(), r.violations(), r.approvals(), r.highRisk(), r.actions(), r.failures(), r.data(), r.access()}
	all = append(all, r.changes()...)
	all = append(all, r.erasures(), r.anomalies(), r.integrity(), r.retention(), r.settings())
	return slices.DeleteFunc(all, func(s section) bool { return s.Title == "" })
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") }

func when(t *time.Time) string {
	if t == nil {
		return "none"
	}
	return stamp(*t)
}

func num(n int64) string { return fmt.Sprint(n) }

// table returns counts as rows; the frequent first, and how many are left out.
func table(all []Count) (rows [][]string) {
	for i, c := range all {
		if i == listed {
			rows = append(rows, []string{fmt.Sprintf("(%d others)", len(all)-listed), num(total(all[listed:]))})
			break
		}
		rows = append(rows, []string{c.Name, num(c.Count)})
	}
	return rows
}

func (r *Report) totals() section {
	a := r.Activity
	return section{Title: "Totals", Head: []string{"what", "count"}, Query: r.query(""), Rows: slices.Concat([][]string{
		{"entries of the record", num(a.Entries)}, {"first entry of the period", when(a.First)}, {"last entry of the period", when(a.Last)},
		{"starts of an engine", num(a.Engines)}, {"executions requested", num(a.Asked)}, {"executions ended", num(a.Ended)}, {"of these dry runs", num(a.DryRuns)},
		{"average duration of an execution", average(a.Average)}, {"tokens returned to the model", num(a.Returned)}, {"tokens kept out of its context", num(a.Avoided)},
		{"searches for tools", num(a.Searches)},
	}, prefixed("ended as ", a.ByStatus), prefixed("calls that are ", a.Effects), prefixed("files by the model itself: ", a.Files))}
}

func (r *Report) calls() section {
	return section{Title: "Calls by tool", Head: []string{"tool", "calls"}, Rows: table(r.Activity.Tools), Query: r.query("--kind call")}
}

func prefixed(prefix string, all []Count) [][]string {
	rows := table(all)
	for i := range rows {
		rows[i][0] = prefix + rows[i][0]
	}
	return rows
}

func (r *Report) risks() section {
	return section{Title: "Executions by risk", Head: []string{"risk", "executions"}, Rows: table(r.Activity.ByRisk), Query: r.query("--kind end"),
		Text: []string{"Low is below 25, medium below 50, high below 80 of 100. What was refused before it could be judged has no risk."}}
}

func (r *Report) violations() section {
	a := r.Activity
	return section{Title: "Violations", Head: []string{"what was refused, and why", "count"}, Query: r.query("--kind refusal,verdict"),
		Rows: slices.Concat(prefixed("call of ", a.Refused), prefixed("program: ", a.Rejected)),
		Text: []string{"Of an execution, at most 100 refused calls have an entry each."}}
}

func (r *Report) approvals() section {
	a := r.Activity.Approvals
	s := section{Title: "Approvals", Head: []string{"what", "count"}, Query: r.query("--kind question,decision")}
	s.Rows = slices.Concat([][]string{{"questions to a person", num(a.Asked)}, {"not settled in the period", num(a.Open)}, {"programs approved automatically", num(a.Automatic)}}, prefixed("", a.Outcomes), prefixed("answered through ", a.By), prefixed("asked because of ", a.Rules))
	s.Text = append(s.Text, "Covered means that a yes which was given before went as far.")
	if a.Median != nil {
		s.Text = append(s.Text, fmt.Sprintf("Median waiting time %s, longest %s, of %d answers.", seconds(*a.Median), seconds(*a.Longest), a.Waits))
	}
	return s
}

func (r *Report) highRisk() section {
	return r.executions(fmt.Sprintf("High-risk executions (%d and more)", HighRisk), r.Activity.HighRisk, fmt.Sprintf("--kind end --min-risk %d", HighRisk))
}

func average(millis *float64) string {
	if millis == nil {
		return "-"
	}
	return fmt.Sprintf("%.1f ms", *millis)
}

func (r *Report) actions() section {
	a := r.Activity.Actions
	s := section{Title: "High-risk actions", Head: []string{"time (UTC)", "execution", "principal", "tool", "approved by"}, Query: r.query("--kind call")}
	s.Text = []string{"Calls that lose, send, pay, publish or run something, which cannot be taken back. Automatic means that the settings approve them."}
	for _, x := range a.List {
		s.Rows = append(s.Rows, []string{stamp(x.At), x.Execution, cmp.Or(x.Principal, "-"), x.Tool, x.Approval})
	}
	if a.Total > int64(len(a.List)) {
		s.Text = append(s.Text, fmt.Sprintf("The newest %d of %d.", len(a.List), a.Total))
	}
	return s
}

func (r *Report) failures() section {
	s := r.executions("Failures", r.Activity.Failures, "--kind end")
	if failed := r.Activity.CallErrors; len(failed) > 0 {
		s.Text = append(s.Text, "Calls that failed: "+listing(failed)+".")
	}
	return s
}

func (r *Report) executions(title string, x Executions, flags string) section {
	s := section{Title: title, Head: []string{"time (UTC)", "execution", "principal", "risk", "status", "error"}, Query: r.query(flags)}
	for _, e := range x.List {
		risk := "-"
		if e.Risk != nil {
			risk = fmt.Sprint(*e.Risk)
		}
		s.Rows = append(s.Rows, []string{stamp(e.At), e.ID, cmp.Or(e.Principal, "-"), risk, e.Status, cmp.Or(e.Error, "-")})
	}
	if x.Total > int64(len(x.List)) {
		s.Text = []string{fmt.Sprintf("The newest %d of %d.", len(x.List), x.Total)}
	}
	return s
}

func (r *Report) data() section {
	a := r.Activity
	s := section{Title: "Personal data", Head: []string{"category", "count"}, Query: r.query("--kind reveal"),
		Rows: slices.Concat(prefixed("found: ", a.Seen), prefixed("shown: ", a.Revealed), prefixed("times that values were shown to the ", a.Reveals))}
	if len(a.Seen) == 0 {
		s.Text = []string{"No execution of the period names categories that were found in its values. Either there were none, or hiding was off, or the entries are of a version that did not note them."}
	}
	return s
}

func (r *Report) access() section {
	s := section{Title: "Access", Head: []string{"principal", "may, by the settings in force", "executions in the period"}, Query: r.query("--kind request")}
	known := map[string]bool{}
	for _, p := range r.Access {
		name := cmp.Or(p.Name, "(not named)")
		known[name] = true
		s.Rows = append(s.Rows, []string{cmp.Or(p.Name, "everybody whom the settings do not name"), p.May, num(named(r.Activity.Principals, name))})
	}
	for _, c := range r.Activity.Principals {
		if !known[c.Name] && len(s.Rows) < listed {
			s.Rows = append(s.Rows, []string{c.Name, "as everybody", num(c.Count)})
		}
	}
	return s
}

func (r *Report) changes() []section {
	a := r.Activity
	return []section{
		r.list("Changes of the configuration", "settings", a.Settings, "--kind settings", "Noticed while retort serve runs, else at the next start of an engine. The record has digests of the settings, not the settings."),
		r.list("Tool definitions changed and trusted", "definitions", a.Pins, "--kind pin", ""),
		r.list("Skills", "skills", a.Skills, "--kind skill", ""),
	}
}

func (r *Report) erasures() section {
	return r.list("Erasures", "erasures", r.Activity.Erasures, "--kind erasure", "")
}

func (r *Report) anomalies() section {
	return r.list("Anomalies", "anomalies", r.Activity.Anomalies, "--kind anomaly", "")
}

func (r *Report) list(title, name string, all []Change, flags, text string) section {
	s := section{Title: title, Head: []string{"time (UTC)", "what", "how"}, Query: r.query(flags)}
	if text != "" {
		s.Text = append(s.Text, text)
	}
	for _, c := range all {
		s.Rows = append(s.Rows, []string{stamp(c.At), cmp.Or(c.What, "-"), cmp.Or(c.How, "-")})
	}
	if more := r.Activity.More[name]; more > 0 {
		s.Text = append(s.Text, fmt.Sprintf("The newest %d of %d.", len(all), int64(len(all))+more))
	}
	return s
}

func (r *Report) integrity() section {
	v := r.Integrity
	s := section{Title: "Integrity", Query: "retort audit verify", Text: []string{holds(r).Says}, Head: []string{"chain", "entries", "last", "from (UTC)", "to (UTC)", "bad", "open executions"}}
	for _, c := range v.Chains {
		s.Rows = append(s.Rows, []string{c.Chain, num(c.Entries), num(c.Last), stamp(c.From), stamp(c.To), num(c.Bad), fmt.Sprint(c.Open)})
	}
	for i, f := range v.Findings {
		if i == listed {
			break
		}
		s.List = append(s.List, f.What+": "+f.Says)
	}
	if r.Activity.Clocks > 0 {
		s.List = append(s.List, fmt.Sprintf("A person said %d times in the period that a clock behind the record was right.", r.Activity.Clocks))
	}
	s.List = append(s.List, v.Notes[:min(len(v.Notes), listed)]...)
	return s
}

func (r *Report) retention() section {
	t := r.Retention
	return section{Title: "Retention", Head: []string{"what", "value"}, Query: r.query("--kind retention"), Rows: [][]string{
		{"entries stay in the store", daysOf(t.KeepDays)}, {"archives stay", daysOf(t.ArchiveDays)}, {"oldest entry", when(t.Oldest)},
		{"archives", fmt.Sprint(t.Archives)}, {"archives deleted by rule", fmt.Sprint(t.Deleted)},
		{"entries moved to archives in the period", num(t.EntriesMoved)}, {"entries deleted in the period", num(t.EntriesGone)},
	}}
}

func (r *Report) settings() section {
	s := section{Title: "Settings in force", Head: []string{"setting", "value"}, Text: []string{"While this report is made. What they were before is in the changes of the configuration, as digests."}}
	for _, set := range r.Settings {
		s.Rows = append(s.Rows, []string{set.Name, set.Value})
	}
	return s
}
