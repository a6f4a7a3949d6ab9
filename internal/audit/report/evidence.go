package report

import "fmt"

// evidence describes what is said for a control.
type evidence func(r *Report) Evidence

func (r *Report) control(c control) Control {
	out := Control{ID: c.id, Name: c.name, Does: c.does, Operator: c.operator, Evidence: []Evidence{}}
	for _, e := range c.evidence {
		out.Evidence = append(out.Evidence, e(r))
	}
	return out
}

// recorded returns that what happens is recorded.
func recorded(r *Report) Evidence {
	a := r.Activity
	says := fmt.Sprintf("%d entries in the period: %d executions requested, %d ended, %d calls, %d refused calls. auditLogging is %s while this is written.",
		a.Entries, a.Asked, a.Ended, total(a.Effects), total(a.Refused), onOff(r.Recorded))
	return Evidence{says, r.query("--kind request,end,call,refusal")}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}

// holds returns that nobody has changed the record.
func holds(r *Report) Evidence {
	v := r.Integrity
	says := fmt.Sprintf("The record holds: %d entries of %d chains, against %d signed checkpoints.", v.Entries, len(v.Chains), v.Checkpoints)
	switch {
	case !v.OK && v.First != nil:
		says = fmt.Sprintf("The record does not hold. First finding: %s (%s).", v.First.Says, v.First.What)
	case v.Entries == 0:
		says = "There is no entry to prove."
	case !v.Codes:
		says += " Codes were not checked, since the key cannot be read here."
	}
	return Evidence{says + fmt.Sprintf(" Gaps in the period: %d.", r.Activity.Gaps), "retort audit verify"}
}

// mayCall is who may do what.
func mayCall(r *Report) Evidence {
	return Evidence{fmt.Sprintf("permissionLevel is %s; principals that the settings name: %d. Executions in the period by principal: %s.",
		r.setting("permissionLevel"), namedPrincipals(r), orNone(listing(r.Activity.Principals))), r.query("--kind request")}
}

func namedPrincipals(r *Report) (n int) {
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

// refused returns what rules kept from happening.
func refused(r *Report) Evidence {
	a := r.Activity
	return Evidence{fmt.Sprintf("Refused calls: %d (%s). Refused programs: %d (%s).", total(a.Refused), orNone(listing(a.Refused)), total(a.Rejected), orNone(listing(a.Rejected))),
		r.query("--kind refusal")}
}

// approved returns what people were asked.
func approved(r *Report) Evidence {
	a := r.Activity.Approvals
	says := fmt.Sprintf("Questions to a person: %d. What became of them: %s. Answered through: %s.", a.Asked, orNone(listing(a.Outcomes)), orNone(listing(a.By)))
	if a.Median != nil {
		says += fmt.Sprintf(" Median waiting time: %s.", seconds(*a.Median))
	}
	return Evidence{says, r.query("--kind question,decision")}
}

// changed returns what of the configuration has changed.
func changed(r *Report) Evidence {
	a := r.Activity
	return Evidence{fmt.Sprintf("Changes of settings or servers noticed at a start: %d. Tool definitions changed or trusted: %d. Skills saved or removed: %d.",
		r.all("settings", a.Settings), r.all("definitions", a.Pins), r.all("skills", a.Skills)), r.query("--kind settings,pin,skill")}
}

// all returns how long a list was before it was cut.
func (r *Report) all(name string, list []Change) int64 {
	return int64(len(list)) + r.Activity.More[name]
}

// unusual returns what stood out.
func unusual(r *Report) Evidence {
	return Evidence{fmt.Sprintf("Anomalies noted: %d. Executions of risk %d and more: %d.", r.all("anomalies", r.Activity.Anomalies), HighRisk, r.Activity.HighRisk.Total), r.query("--kind anomaly")}
}

// failed returns what went wrong.
func failed(r *Report) Evidence {
	a := r.Activity
	return Evidence{fmt.Sprintf("Executions that ended otherwise than ok: %d of %d. Calls that failed: %d.", a.Failures.Total, a.Ended, total(a.CallErrors)), r.query("--kind end")}
}

// hidden returns what became of personal data.
func hidden(r *Report) Evidence {
	a := r.Activity
	return Evidence{fmt.Sprintf("piiTokenization is %s. Categories found in values: %s. Times that values were shown: %s; categories shown: %s.",
		r.setting("piiTokenization"), seenOrNot(a.Seen), orNone(listing(a.Reveals)), orNone(listing(a.Revealed))), r.query("--kind reveal")}
}

func seenOrNot(all []Count) string {
	if len(all) == 0 {
		return "the entries name none"
	}
	return listing(all)
}

// erased returns what was forgotten.
func erased(r *Report) Evidence {
	return Evidence{fmt.Sprintf("Erasures in the period: %d.", r.all("erasures", r.Activity.Erasures)), r.query("--kind erasure")}
}

// kept returns how long the record stays.
func kept(r *Report) Evidence {
	t := r.Retention
	says := fmt.Sprintf("Entries stay %s, then in archives %s. Archives there: %d, deleted by rule: %d. Entries moved in the period: %d.",
		daysOf(t.KeepDays), daysOf(t.ArchiveDays), t.Archives, t.Deleted, t.EntriesMoved)
	if t.Oldest != nil {
		says += " The oldest entry is of " + t.Oldest.UTC().Format("2006-01-02") + "."
	}
	return Evidence{says, r.query("--kind retention")}
}

// sixYears reports whether the record stays as long as HIPAA asks of documentation.
func sixYears(r *Report) Evidence {
	const years = 6 * 365
	t := r.Retention
	switch days := t.KeepDays + t.ArchiveDays; {
	case t.KeepDays <= 0 || t.ArchiveDays <= 0, days >= years:
		return Evidence{Says: "By the settings in force entries stay six years or longer."}
	default:
		return Evidence{Says: fmt.Sprintf("By the settings in force entries stay about %.4g days, which is less than six years.", days)}
	}
}

// walls returns those around programs.
func walls(r *Report) Evidence {
	return Evidence{fmt.Sprintf("sandboxMode is %s, sandboxFallback %s, securityLevel %s.", r.setting("sandboxMode"), r.setting("sandboxFallback"), r.setting("securityLevel")), "retort doctor"}
}

// sealedKey returns where the key of what is encrypted lies.
func sealedKey(r *Report) Evidence {
	return Evidence{Says: "Values behind tokens, and the bodies of the record, are encrypted with AES-256-GCM. Their key: " + r.setting("pii.key") + "."}
}

// logins returns those at servers, and what became of tokens that let others in.
func logins(r *Report) Evidence {
	return Evidence{fmt.Sprintf("Logins at servers, and tokens of the listener, in the period: %s.", orNone(listing(r.Activity.Logins))), r.query("--kind login,token")}
}
