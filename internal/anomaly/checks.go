package anomaly

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"retort/internal/core"
)

// Minimum values for a finding. Smaller values are not reported even if they are unusual: they are harmless and often
// quadruple by chance.
const (
	manyCalls        = 200 // in five minutes; for a single tool, in an hour
	manyHourly       = 1000
	manyRuns         = 60 // in an hour
	manyIrreversible = 10 // in five minutes
	manyDenials      = 10 // in ten minutes
	manyProbes       = 5  // in ten minutes
	manyTokens       = 20 // privacy tokens with consecutive numbers
	tokenRow         = 10 // bytes that an execution normally reads for each privacy token that it gets
	largeAnswer      = 1 << 20
	largeArguments   = 64 << 10
	slowCallMillis   = 10_000   // milliseconds
	muchRead         = 64 << 10 // bytes read by an execution
	muchSent         = 4 << 10  // bytes sent by an execution
	// rareWrites is the number of writes of a principal to a server below which the server counts as rarely
	// written to.
	rareWrites = 5
	// veryMuch bounds the bytes that one execution may exchange with one host. More is reported even if nothing is
	// known about the past.
	veryMuch = 10 << 20
)

// addFinding adds a finding, unless the same one was reported within Cooldown or there is not yet enough data to
// compare it with.
func (d *anomalyDetector) addFinding(p *principalState, f AnomalyFinding, e core.AuditEvent) {
	f.Action = d.o.actionFor(f.Kind)
	learning := p.span.days < d.o.Learning.Days || p.runs < d.o.Learning.Executions
	if f.Action == Off || learning && !f.sure {
		return
	}
	f.At, f.Principal, f.Session, f.Execution, f.ended = e.At, e.Principal, e.Session, e.Execution, e.Kind == core.EventEnd
	f.Evidence.Days, f.Evidence.Runs, f.Evidence.Last = p.span.days, p.runs, p.rememberedIDs()
	if !f.sure {
		f.Words += fmt.Sprintf(" (%d days, %d executions)", p.span.days, p.runs)
	}
	t := d.reportFor(f)
	since := unixSeconds(e) - t.at
	if t.at != 0 && since >= 0 && since < int64(Cooldown/time.Second) && f.Evidence.Now < unusualFactor*t.measure {
		t.more++
		return
	}
	f.Evidence.Suppressed, t.more = t.more, 0
	t.at, t.measure = unixSeconds(e), f.Evidence.Now
	d.found = append(d.found, f)
}

// reportFor returns the last report about a finding's subject, such as its time and value. For a subject that was
// never reported it adds an empty entry.
func (d *anomalyDetector) reportFor(f AnomalyFinding) *reportedFinding {
	about := findingSubject{f.Kind, f.Principal, f.Server, f.Tool, f.Skill}
	if f.Kind == Rate || f.Kind == IrreversibleBurst || f.Kind == Denials || f.Kind == Night || f.Kind == Probing {
		about = findingSubject{kind: f.Kind, principal: f.Principal} // the tool is one of many
	}
	t, ok := d.reported.getValue(about)
	if !ok {
		t = &reportedFinding{}
		d.reported.putValue(about, t)
	}
	return t
}

func principalText(principal string) string { return cmp.Or(principal, "the local user") }

// usualMaximum describes the usual and the highest value of a series as text.
func usualMaximum(s *histogramSketch, unit func(float64) string) string {
	if s.n == 0 {
		return "there is no earlier value to compare with"
	}
	return fmt.Sprintf("the usual value is %s, the highest so far %s", unit(bucketCenter(s.medianBucket())), unit(math.Ceil(s.highestValue())-1))
}

func formatNumber(v float64) string { return fmt.Sprintf("%.0f", v) }

func formatBytes(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%.1f MB", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%.1f KB", v/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", v)
}

func formatDuration(ms float64) string { return fmt.Sprintf("%.3g s", ms/1000) }

func formatShare(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

func (d *anomalyDetector) checkFrequency(p *principalState, e core.AuditEvent, w *rateWindow, n float64, did, what string) {
	d.addFinding(p, AnomalyFinding{
		Kind: Rate, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: w.usual.toEvidence(n),
		Words: fmt.Sprintf("%s %s %.0f %s; %s", principalText(e.Principal), did, n, what, usualMaximum(&w.usual, formatNumber)),
	}, e)
}

func (d *anomalyDetector) toolOften(p *principalState, e core.AuditEvent, s *usageSeries, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Rate, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.hourly.usual.toEvidence(n),
		Words: fmt.Sprintf(
			"%s called %s.%s %.0f times in an hour; %s", principalText(e.Principal), e.Server, e.Tool, n,
			usualMaximum(&s.hourly.usual, formatNumber),
		),
	}, e)
}

func (d *anomalyDetector) skillOften(p *principalState, e core.AuditEvent, s *usageSeries, name string, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Rate, Severity: "low", Skill: name, Evidence: s.hourly.usual.toEvidence(n),
		Words: fmt.Sprintf(
			"%s used the skill %s %.0f times in an hour; %s", principalText(e.Principal), name, n,
			usualMaximum(&s.hourly.usual, formatNumber),
		),
	}, e)
}

func (d *anomalyDetector) checkSize(p *principalState, e core.AuditEvent, of *histogramSketch, bytes float64, did string) {
	d.addFinding(p, AnomalyFinding{
		Kind: Size, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: of.toEvidence(bytes),
		Words: fmt.Sprintf(
			"%s.%s %s %s for %s; %s", e.Server, e.Tool, did, formatBytes(bytes), principalText(e.Principal),
			usualMaximum(of, formatBytes),
		),
	}, e)
}

func (d *anomalyDetector) checkDuration(p *principalState, e core.AuditEvent, s *usageSeries, ms float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Duration, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.took.toEvidence(ms),
		Words: fmt.Sprintf("%s.%s took %s; %s", e.Server, e.Tool, formatDuration(ms), usualMaximum(&s.took, formatDuration)),
	}, e)
}

func (d *anomalyDetector) skillSlow(p *principalState, e core.AuditEvent, s *usageSeries, name string, ms float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Duration, Severity: "low", Skill: name, Evidence: s.took.toEvidence(ms),
		Words: fmt.Sprintf("an execution with the skill %s took %s; %s", name, formatDuration(ms), usualMaximum(&s.took, formatDuration)),
	}, e)
}

func (f *failureRate) toEvidence() FindingEvidence {
	return FindingEvidence{
		Now: roundValue(float64(f.failedCount()) / recentExecutions), Median: roundValue(f.failed / max(1, f.calls)),
		Highest: roundValue(f.failureBound()), Samples: int(f.calls),
	}
}

func (f *failureRate) describeFailures(what string) string {
	return fmt.Sprintf(
		"%d of the last %d %s failed; the usual share is %s of %.0f", f.failedCount(), recentExecutions, what,
		formatShare(f.failed/max(1, f.calls)), f.calls,
	)
}

func (d *anomalyDetector) serverFails(p *principalState, e core.AuditEvent, s *usageSeries) {
	d.addFinding(
		p,
		AnomalyFinding{
			Kind: Failures, Severity: "low", Server: e.Server, Evidence: s.failures.toEvidence(),
			Words: s.failures.describeFailures("calls to " + e.Server),
		},
		e,
	)
}

func (d *anomalyDetector) toolFails(p *principalState, e core.AuditEvent, s *usageSeries) {
	d.addFinding(p, AnomalyFinding{
		Kind: Failures, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.failures.toEvidence(),
		Words: s.failures.describeFailures(fmt.Sprintf("calls to %s.%s by %s", e.Server, e.Tool, principalText(e.Principal))),
	}, e)
}

func (d *anomalyDetector) skillFails(p *principalState, e core.AuditEvent, s *usageSeries, name string) {
	d.addFinding(
		p,
		AnomalyFinding{
			Kind: Failures, Severity: "low", Skill: name, Evidence: s.failures.toEvidence(),
			Words: s.failures.describeFailures("executions with the skill " + name),
		},
		e,
	)
}

func (d *anomalyDetector) checkFirstUse(p *principalState, e core.AuditEvent) {
	severity := "low"
	if e.Effect == core.EffectIrreversible.String() {
		severity = "medium"
	}
	d.addFinding(p, AnomalyFinding{
		Kind: FirstUse, Severity: severity, Server: e.Server, Tool: e.Tool, Evidence: FindingEvidence{Now: 1, Samples: int(p.uses)},
		Words: fmt.Sprintf(
			"%s called %s.%s (%s) for the first time, after %d calls to %d other tools", principalText(e.Principal),
			e.Server, e.Tool, e.Effect, p.uses-1, len(p.used)-1,
		),
	}, e)
}

func (d *anomalyDetector) checkBurst(p *principalState, e core.AuditEvent, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: IrreversibleBurst, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: p.destructive.usual.toEvidence(n),
		Words: fmt.Sprintf(
			"%s made %.0f irreversible calls in 5 minutes, the latest to %s.%s; %s",
			principalText(e.Principal), n, e.Server, e.Tool, usualMaximum(&p.destructive.usual, formatNumber),
		),
	}, e)
}

func (d *anomalyDetector) checkRefusals(p *principalState, e core.AuditEvent, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Denials, Severity: "medium", Server: e.Server, Tool: e.Tool, Evidence: p.denied.usual.toEvidence(n),
		Words: fmt.Sprintf(
			"%s had %.0f refused calls in 10 minutes; %s", principalText(e.Principal), n,
			usualMaximum(&p.denied.usual, formatNumber),
		),
	}, e)
}

func (d *anomalyDetector) checkProbing(p *principalState, e core.AuditEvent, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Probing, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: p.probes.usual.toEvidence(n),
		Words: fmt.Sprintf(
			"%s used tokens that do not exist, or compared tokens to find out values, %.0f times in 10 minutes; %s",
			principalText(e.Principal), n, usualMaximum(&p.probes.usual, formatNumber),
		),
	}, e)
}

func (d *anomalyDetector) checkEnumeration(p *principalState, e core.AuditEvent, n float64) {
	d.addFinding(p, AnomalyFinding{
		Kind: Probing, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: FindingEvidence{Now: n, Samples: int(p.uses)},
		Words: fmt.Sprintf(
			"%s used %.0f consecutive tokens in calls, most recently to %s.%s, in an execution that had not read them",
			principalText(e.Principal), n, e.Server, e.Tool,
		),
	}, e)
}

func (d *anomalyDetector) checkUnusualHour(p *principalState, e core.AuditEvent, at int) {
	d.addFinding(p, AnomalyFinding{
		Kind: Night, Severity: "low", Evidence: FindingEvidence{Now: float64(at), Highest: float64(p.hours.daysAround(at) - 1), Samples: p.hours.total},
		Words: fmt.Sprintf(
			"%s is active at %s; usual hours: %s; there was activity around this hour on %d of %d days", principalText(e.Principal),
			formatHour(at), p.hours.usualHours(), p.hours.daysAround(at)-1, p.hours.total,
		),
	}, e)
}

// checkLeak reports a possible leak when a call sends data. The execution or its principal must have read unusually
// much from another server shortly before. In addition, the receiving server must seldom get data, or the call must
// send unusually much.
func (d *anomalyDetector) checkLeak(p *principalState, e core.AuditEvent, x *runningExecution, to *serverFlow, bytes float64) {
	sent := x.sent[e.Server] + bytes
	rarely, much := to.writes < rareWrites, sent >= muchSent && to.sent.isOutlier(sent)
	if !rarely && !much {
		return
	}
	p.flows.eachValue(func(server string, from *serverFlow) {
		read, usual := x.read[server], &from.read
		if read < muchRead || !usual.isOutlier(read) {
			read, usual = from.hourly.countBefore(unixSeconds(e)), &from.hourly.usual
		}
		if server == e.Server || read < muchRead || !usual.isOutlier(read) {
			return
		}
		why := fmt.Sprintf("%d earlier calls with effects there", to.writes)
		if !rarely {
			why = usualMaximum(&to.sent, formatBytes)
		}
		d.addFinding(p, AnomalyFinding{
			Kind: Exfiltration, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: usual.toEvidence(read),
			Words: fmt.Sprintf(
				"%s read %s from %s (%s), and is now sending %s to %s (%s)", principalText(e.Principal), formatBytes(read),
				server, usualMaximum(usual, formatBytes), formatBytes(sent), strings.TrimSuffix(e.Server+"."+e.Tool, "."), why,
			),
		}, e)
	})
}
