package anomaly

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"retort/internal/core"
)

// What nothing is said below, however unusual it is: so little harms nobody, and small
// numbers are four times what they were by chance.
const (
	manyCalls       = 200 // in five minutes; of a tool, in an hour
	manyHourly      = 1000
	manyRuns        = 60 // in an hour
	manyDestructive = 10 // in five minutes
	manyDenials     = 10 // in ten minutes
	manyProbes      = 5  // in ten minutes
	manyTokens      = 20 // one after the other
	tokenRow        = 10 // bytes that an execution reads at least for each token that it got
	largeAnswer     = 1 << 20
	largeArguments  = 64 << 10
	slow            = 10_000   // ms
	muchRead        = 64 << 10 // bytes of an execution
	muchSent        = 4 << 10  // bytes of an execution
	rareWrites      = 5        // to a server, up to which it is one that is rarely written to
	veryMuch        = 10 << 20 // bytes that one execution may exchange with one host; more is reported even before a baseline was learned
)

// raise adds a finding, unless it was told within Cooldown, or there is nothing to compare with yet.
func (d *detector) raise(p *person, f Finding, e core.Event) {
	f.Action = d.o.action(f.Kind)
	learning := p.span.days < d.o.Learning.Days || p.runs < d.o.Learning.Executions
	if f.Action == Off || learning && !f.sure {
		return
	}
	f.At, f.Principal, f.Session, f.Execution, f.ended = e.At, e.Principal, e.Session, e.Execution, e.Kind == core.EventEnd
	f.Evidence.Days, f.Evidence.Runs, f.Evidence.Last = p.span.days, p.runs, p.ids()
	if !f.sure {
		f.Words += fmt.Sprintf(" (%d days, %d executions)", p.span.days, p.runs)
	}
	t := d.toldOf(f)
	since := seconds(e) - t.at
	if t.at != 0 && since >= 0 && since < int64(Cooldown/time.Second) && f.Evidence.Now < fold*t.measure {
		t.more++
		return
	}
	f.Evidence.Suppressed, t.more = t.more, 0
	t.at, t.measure = seconds(e), f.Evidence.Now
	d.found = append(d.found, f)
}

// toldOf is when something like a finding was told last.
func (d *detector) toldOf(f Finding) *told {
	about := subject{f.Kind, f.Principal, f.Server, f.Tool, f.Skill}
	if f.Kind == Rate || f.Kind == DestructiveBurst || f.Kind == Denials || f.Kind == Night || f.Kind == Probing {
		about = subject{kind: f.Kind, principal: f.Principal} // the tool is one of many
	}
	t, ok := d.told.get(about)
	if !ok {
		t = &told{}
		d.told.put(about, t)
	}
	return t
}

func who(principal string) string { return cmp.Or(principal, "the local user") }

// most returns what was usual at the most, in words.
func most(s *sketch, unit func(float64) string) string {
	if s.n == 0 {
		return "usual is none"
	}
	return fmt.Sprintf("usual is %s, at most %s", unit(center(s.median())), unit(math.Ceil(s.highest())-1))
}

func plain(v float64) string { return fmt.Sprintf("%.0f", v) }

func size(v float64) string {
	switch {
	case v >= 1<<20:
		return fmt.Sprintf("%.1f MB", v/(1<<20))
	case v >= 1<<10:
		return fmt.Sprintf("%.1f KB", v/(1<<10))
	}
	return fmt.Sprintf("%.0f bytes", v)
}

func took(ms float64) string { return fmt.Sprintf("%.3g s", ms/1000) }

func share(v float64) string { return fmt.Sprintf("%.1f%%", 100*v) }

func (d *detector) often(p *person, e core.Event, w *window, n float64, did, what string) {
	d.raise(p, Finding{
		Kind: Rate, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: w.usual.evidence(n),
		Words: fmt.Sprintf("%s %s %.0f %s; %s", who(e.Principal), did, n, what, most(&w.usual, plain)),
	}, e)
}

func (d *detector) toolOften(p *person, e core.Event, s *series, n float64) {
	d.raise(p, Finding{
		Kind: Rate, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.hourly.usual.evidence(n),
		Words: fmt.Sprintf("%s called %s.%s %.0f times in an hour; %s", who(e.Principal), e.Server, e.Tool, n, most(&s.hourly.usual, plain)),
	}, e)
}

func (d *detector) skillOften(p *person, e core.Event, s *series, name string, n float64) {
	d.raise(p, Finding{
		Kind: Rate, Severity: "low", Skill: name, Evidence: s.hourly.usual.evidence(n),
		Words: fmt.Sprintf("%s used the skill %s %.0f times in an hour; %s", who(e.Principal), name, n, most(&s.hourly.usual, plain)),
	}, e)
}

func (d *detector) large(p *person, e core.Event, of *sketch, bytes float64, did string) {
	d.raise(p, Finding{
		Kind: Size, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: of.evidence(bytes),
		Words: fmt.Sprintf("%s.%s %s %s for %s; %s", e.Server, e.Tool, did, size(bytes), who(e.Principal), most(of, size)),
	}, e)
}

func (d *detector) slow(p *person, e core.Event, s *series, ms float64) {
	d.raise(p, Finding{
		Kind: Duration, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.took.evidence(ms),
		Words: fmt.Sprintf("%s.%s took %s; %s", e.Server, e.Tool, took(ms), most(&s.took, took)),
	}, e)
}

func (d *detector) skillSlow(p *person, e core.Event, s *series, name string, ms float64) {
	d.raise(p, Finding{
		Kind: Duration, Severity: "low", Skill: name, Evidence: s.took.evidence(ms),
		Words: fmt.Sprintf("an execution with the skill %s took %s; %s", name, took(ms), most(&s.took, took)),
	}, e)
}

func (f *failures) evidence() Evidence {
	return Evidence{Now: rounded(float64(f.count()) / recents), Median: rounded(f.lost / max(1, f.calls)), Highest: rounded(f.share()), Samples: int(f.calls)}
}

func (f *failures) words(what string) string {
	return fmt.Sprintf("%d of the last %d %s failed; usual is %s of %.0f", f.count(), recents, what, share(f.lost/max(1, f.calls)), f.calls)
}

func (d *detector) serverFails(p *person, e core.Event, s *series) {
	d.raise(p, Finding{Kind: Failures, Severity: "low", Server: e.Server, Evidence: s.failures.evidence(), Words: s.failures.words("calls of " + e.Server)}, e)
}

func (d *detector) toolFails(p *person, e core.Event, s *series) {
	d.raise(p, Finding{
		Kind: Failures, Severity: "low", Server: e.Server, Tool: e.Tool, Evidence: s.failures.evidence(),
		Words: s.failures.words(fmt.Sprintf("calls of %s.%s by %s", e.Server, e.Tool, who(e.Principal))),
	}, e)
}

func (d *detector) skillFails(p *person, e core.Event, s *series, name string) {
	d.raise(p, Finding{Kind: Failures, Severity: "low", Skill: name, Evidence: s.failures.evidence(), Words: s.failures.words("executions with the skill " + name)}, e)
}

func (d *detector) first(p *person, e core.Event) {
	severity := "low"
	if e.Effect == core.EffectDestructive.String() {
		severity = "medium"
	}
	d.raise(p, Finding{
		Kind: FirstUse, Severity: severity, Server: e.Server, Tool: e.Tool, Evidence: Evidence{Now: 1, Samples: int(p.uses)},
		Words: fmt.Sprintf("%s called %s.%s (%s) for the first time, after %d calls of %d other tools", who(e.Principal), e.Server, e.Tool, e.Effect, p.uses-1, len(p.used)-1),
	}, e)
}

func (d *detector) burst(p *person, e core.Event, n float64) {
	d.raise(p, Finding{
		Kind: DestructiveBurst, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: p.ruin.usual.evidence(n),
		Words: fmt.Sprintf("%s made %.0f calls in 5 minutes that cannot be taken back, the newest of %s.%s; %s", who(e.Principal), n, e.Server, e.Tool, most(&p.ruin.usual, plain)),
	}, e)
}

func (d *detector) refused(p *person, e core.Event, n float64) {
	d.raise(p, Finding{
		Kind: Denials, Severity: "medium", Server: e.Server, Tool: e.Tool, Evidence: p.denied.usual.evidence(n),
		Words: fmt.Sprintf("%s was refused %.0f times in 10 minutes; %s", who(e.Principal), n, most(&p.denied.usual, plain)),
	}, e)
}

func (d *detector) probed(p *person, e core.Event, n float64) {
	d.raise(p, Finding{
		Kind: Probing, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: p.probes.usual.evidence(n),
		Words: fmt.Sprintf("%s named tokens that stand for nothing, or compared tokens to find out values, %.0f times in 10 minutes; %s", who(e.Principal), n, most(&p.probes.usual, plain)),
	}, e)
}

func (d *detector) enumerated(p *person, e core.Event, n float64) {
	d.raise(p, Finding{
		Kind: Probing, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: Evidence{Now: n, Samples: int(p.uses)},
		Words: fmt.Sprintf("%s named %.0f tokens one after the other in calls, up to %s.%s, in an execution that had not read them", who(e.Principal), n, e.Server, e.Tool),
	}, e)
}

func (d *detector) night(p *person, e core.Event, at int) {
	d.raise(p, Finding{
		Kind: Night, Severity: "low", Evidence: Evidence{Now: float64(at), Highest: float64(p.hours.around(at) - 1), Samples: p.hours.total},
		Words: fmt.Sprintf("%s is at work at %s; usual is %s, and an hour around this one on %d of %d days", who(e.Principal), clock(at), p.hours.usual(), p.hours.around(at)-1, p.hours.total),
	}, e)
}

// leaks finds out whether more than usual was read from one server, and something is written
// to another one to which little is written, or more than usual.
func (d *detector) leaks(p *person, e core.Event, x *execution, to *flow, bytes float64) {
	sent := x.sent[e.Server] + bytes
	rarely, much := to.writes < rareWrites, sent >= muchSent && to.sent.beyond(sent)
	if !rarely && !much {
		return
	}
	p.flows.values(func(server string, from *flow) {
		read, usual := x.read[server], &from.read
		if read < muchRead || !usual.beyond(read) {
			read, usual = from.hourly.at(seconds(e)), &from.hourly.usual
		}
		if server == e.Server || read < muchRead || !usual.beyond(read) {
			return
		}
		why := fmt.Sprintf("%d calls were made with effects there before", to.writes)
		if !rarely {
			why = most(&to.sent, size)
		}
		d.raise(p, Finding{
			Kind: Exfiltration, Severity: "high", Server: e.Server, Tool: e.Tool, Evidence: usual.evidence(read),
			Words: fmt.Sprintf("%s has read %s from %s (%s), and now sends %s to %s (%s)", who(e.Principal), size(read), server, most(usual, size), size(sent), strings.TrimSuffix(e.Server+"."+e.Tool, "."), why),
		}, e)
	})
}
