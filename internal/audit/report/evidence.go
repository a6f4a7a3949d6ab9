package report

import "fmt"

// evidenceFunc derives one piece of evidence for a control from a report.
type evidenceFunc func(r *PeriodReport) ControlEvidence

func (r *PeriodReport) evaluateControl(c standardControl) ControlResult {
	out := ControlResult{ID: c.id, Name: c.name, Does: c.does, Operator: c.operator, Evidence: []ControlEvidence{}}
	for _, e := range c.evidence {
		out.Evidence = append(out.Evidence, e(r))
	}
	return out
}

// recordingEvidence returns evidence that executions and calls were recorded.
func recordingEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity
	says := fmt.Sprintf("%d entries in the period: %d executions requested, %d ended, %d calls, %d refused calls. auditLogging is %s at the time of this report.",
		a.Entries, a.Asked, a.Ended, totalCount(a.Effects), totalCount(a.Refused), onOff(r.Recorded))
	return ControlEvidence{says, r.queryCommand("--kind request,end,call,refusal")}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// integrityEvidence returns evidence on whether the audit log is unchanged.
func integrityEvidence(r *PeriodReport) ControlEvidence {
	v := r.Integrity
	says := fmt.Sprintf("The audit log is intact: %d entries of %d chains were verified against %d signed checkpoints.", v.Entries, len(v.Chains), v.Checkpoints)
	switch {
	case !v.OK && v.First != nil:
		says = fmt.Sprintf("The audit log failed verification. First finding: %s (%s).", v.First.Says, v.First.What)
	case v.Entries == 0:
		says = "There are no entries to verify."
	case !v.Codes:
		says += " Authentication codes were not checked, because the key cannot be read here."
	}
	return ControlEvidence{says + fmt.Sprintf(" Gaps in the period: %d.", r.Activity.Gaps), "retort audit verify"}
}

// accessEvidence returns evidence about the permissions of principals, and about how many executions each of them
// had.
func accessEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{fmt.Sprintf("permissionLevel is %s; principals in the settings: %d. Executions in the period by principal: %s.",
		r.settingValue("permissionLevel"), namedPrincipals(r), orNone(joinCounts(r.Activity.Principals))), r.queryCommand("--kind request")}
}

func namedPrincipals(r *PeriodReport) (n int) {
	for _, p := range r.Access {
		if p.Name != "" {
			n++
		}
	}
	return n
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

// refusalEvidence returns evidence on the calls and programs that rules refused.
func refusalEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity
	return ControlEvidence{fmt.Sprintf(
		"Refused calls: %d (%s). Refused programs: %d (%s).", totalCount(a.Refused), orNone(joinCounts(a.Refused)),
		totalCount(a.Rejected), orNone(joinCounts(a.Rejected)),
	),
		r.queryCommand("--kind refusal")}
}

// approvalEvidence returns evidence about the approvals that people were asked for and their answers.
func approvalEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity.Approvals
	says := fmt.Sprintf(
		"Approval requests: %d. Results: %s. Answered through: %s.", a.Asked,
		orNone(joinCounts(a.Outcomes)), orNone(joinCounts(a.By)),
	)
	if a.Median != nil {
		says += fmt.Sprintf(" Median waiting time: %s.", formatSeconds(*a.Median))
	}
	return ControlEvidence{says, r.queryCommand("--kind question,decision")}
}

// changeEvidence returns evidence on changes of settings, tool definitions and skills.
func changeEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity
	return ControlEvidence{fmt.Sprintf("Recorded changes of settings or servers: %d. Tool definitions changed or trusted: %d. Skills saved or removed: %d.",
		r.totalOf("settings", a.Settings), r.totalOf("definitions", a.Pins), r.totalOf("skills", a.Skills)), r.queryCommand(
		"--kind settings,pin,skill",
	)}
}

// totalOf returns how many events the list with this name had before it was shortened.
func (r *PeriodReport) totalOf(name string, list []SettingChange) int64 {
	return int64(len(list)) + r.Activity.More[name]
}

// anomalyEvidence returns evidence on anomalies and executions of high risk.
func anomalyEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{
		fmt.Sprintf(
			"Recorded anomalies: %d. Executions with a risk of %d or more: %d.", r.totalOf("anomalies", r.Activity.Anomalies),
			HighRisk, r.Activity.HighRisk.Total,
		),
		r.queryCommand("--kind anomaly"),
	}
}

// failureEvidence returns evidence on failed executions and calls.
func failureEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity
	return ControlEvidence{
		fmt.Sprintf(
			"Executions that did not end as ok: %d of %d. Failed calls: %d.", a.Failures.Total, a.Ended,
			totalCount(a.CallErrors),
		),
		r.queryCommand("--kind end"),
	}
}

// privacyEvidence returns evidence on how personal data was treated.
func privacyEvidence(r *PeriodReport) ControlEvidence {
	a := r.Activity
	return ControlEvidence{fmt.Sprintf("piiTokenization is %s. Categories found in values: %s. Disclosures of values: %s; disclosed categories: %s.",
		r.settingValue("piiTokenization"), seenOrNot(a.Seen), orNone(joinCounts(a.Reveals)), orNone(
			joinCounts(a.Revealed),
		)), r.queryCommand("--kind reveal")}
}

func seenOrNot(all []NamedCount) string {
	if len(all) == 0 {
		return "the entries contain none"
	}
	return joinCounts(all)
}

// erasureEvidence returns evidence on erasures in the period.
func erasureEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{fmt.Sprintf("Erasures in the period: %d.", r.totalOf("erasures", r.Activity.Erasures)), r.queryCommand("--kind erasure")}
}

// retentionEvidence returns evidence on how long entries are kept.
func retentionEvidence(r *PeriodReport) ControlEvidence {
	t := r.Retention
	says := fmt.Sprintf("Entries are kept %s, then in archives %s. Existing archives: %d, deleted by the retention settings: %d. Entries moved in the period: %d.",
		daysOf(t.KeepDays), daysOf(t.ArchiveDays), t.Archives, t.Deleted, t.EntriesMoved)
	if t.Oldest != nil {
		says += " The oldest entry dates from " + t.Oldest.UTC().Format("2006-01-02") + "."
	}
	return ControlEvidence{says, r.queryCommand("--kind retention")}
}

// sixYearEvidence returns evidence about whether entries are kept for the six years that HIPAA requires.
func sixYearEvidence(r *PeriodReport) ControlEvidence {
	const years = 6 * 365
	t := r.Retention
	switch days := t.KeepDays + t.ArchiveDays; {
	case t.KeepDays <= 0 || t.ArchiveDays <= 0, days >= years:
		return ControlEvidence{Says: "With the current settings, entries are kept for six years or longer."}
	default:
		return ControlEvidence{Says: fmt.Sprintf("With the current settings, entries are kept for about %.4g days, which is less than six years.", days)}
	}
}

// sandboxEvidence returns evidence on the sandbox settings.
func sandboxEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{
		fmt.Sprintf(
			"sandboxMode is %s, sandboxFallback %s, securityLevel %s.", r.settingValue("sandboxMode"),
			r.settingValue("sandboxFallback"), r.settingValue("securityLevel"),
		),
		"retort doctor",
	}
}

// encryptionEvidence returns evidence that the audit log is encrypted, and where its key is.
func encryptionEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{Says: "Values behind tokens and bodies of the audit log are encrypted with AES-256-GCM. Their key: " +
		r.settingValue("pii.key") +
		"."}
}

// loginEvidence returns evidence about logins at servers, and about access tokens for Retort's own HTTP listener.
func loginEvidence(r *PeriodReport) ControlEvidence {
	return ControlEvidence{
		fmt.Sprintf("Logins at servers and use of access tokens in the period: %s.", orNone(joinCounts(r.Activity.Logins))),
		r.queryCommand("--kind login,token"),
	}
}
