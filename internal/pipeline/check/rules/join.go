package rules

// JoinReports merges the reports on a program and on its skills. If one of them contains a repetition, such as a
// loop, all calls in the others count as repeated, because they may happen within that repetition.
func JoinReports(program RuleReport, skills []RuleReport) RuleReport {
	all := append([]RuleReport{program}, skills...)
	repeating := 0
	for _, r := range all {
		if r.Impact.Repeats {
			repeating++
		}
	}
	joined := RuleReport{}
	for _, r := range all {
		others := repeating
		if r.Impact.Repeats {
			others--
		}
		joined.addReport(r, others > 0)
	}
	return joined
}

func (j *RuleReport) addReport(r RuleReport, repeated bool) {
	j.Findings = append(j.Findings, r.Findings...)
	j.Complexity = max(j.Complexity, r.Complexity)
	m := &j.Impact
	m.Repeats = m.Repeats || r.Impact.Repeats
	for _, c := range r.Impact.Calls {
		m.noteTool(c.Name, c.Loop || repeated)
	}
	for _, part := range []struct {
		to   *[]string
		from []string
	}{
		{&m.Reads, r.Impact.Reads}, {&m.Writes, r.Impact.Writes}, {&m.Deletes, r.Impact.Deletes},
		{&m.Domains, r.Impact.Domains}, {&m.Affects, r.Impact.Affects}, {&m.Commands, r.Impact.Commands},
	} {
		for _, name := range part.from {
			*part.to = addDistinct(*part.to, name)
		}
	}
}
