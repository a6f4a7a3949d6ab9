package anomaly

import (
	"math"
	"time"

	"retort/internal/core"
)

// anomalyDetector learns usual activity and detects deviations from it. It is not safe for concurrent use.
type anomalyDetector struct {
	o        Options
	people   *lruCache[string, *principalState]
	servers  *lruCache[string, *usageSeries]
	running  *lruCache[string, *runningExecution]
	reported *lruCache[findingSubject, *reportedFinding]
	series   int // number of usage series of all principals
	found    []AnomalyFinding
}

// findingSubject identifies what a finding is about: its kind, and the principal, server, tool or skill concerned.
// It is the key by which repeated reports are suppressed.
type findingSubject struct {
	kind                           Kind
	principal, server, tool, skill string
}

type reportedFinding struct {
	at      int64
	measure float64
	more    int
}

// Cooldown is the time in which the same finding is not reported again, unless its value has become four times as
// large. The action that follows a finding lasts equally long.
const Cooldown = time.Hour

func newDetector(o Options) *anomalyDetector {
	o.Limits, o.Learning = o.Limits.withDefaults(), o.Learning.withDefaults()
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &anomalyDetector{
		o: o, people: newLRU[string, *principalState](o.Limits.Principals), servers: newLRU[string, *usageSeries](o.Limits.Series),
		running: newLRU[string, *runningExecution](o.Limits.Executions), reported: newLRU[findingSubject, *reportedFinding](4 * o.Limits.Executions),
	}
}

// takeFindings returns the collected findings and clears them.
func (d *anomalyDetector) takeFindings() []AnomalyFinding {
	found := d.found
	d.found = nil
	return found
}

func (d *anomalyDetector) personFor(name string) *principalState {
	p, ok := d.people.getValue(name)
	if !ok {
		if len(d.people.by) >= d.people.most {
			if e := d.people.order.Back(); e != nil {
				old := e.Value.(*cacheEntry[string, *principalState]).value
				d.series -= len(old.tools.by) + len(old.skills.by)
			}
		}
		p = newPerson(d.o.Limits)
		d.people.putValue(name, p)
	}
	return p
}

// seriesFor returns the usage series (learned usual usage) for a key, and creates it if the key has no series yet.
// The key contains the principal. If there is no room, a new series replaces one of the same principal, or one of
// the principal that has the most series.
func seriesFor[K comparable](d *anomalyDetector, of *lruCache[K, *usageSeries], key K) *usageSeries {
	if s, ok := of.getValue(key); ok {
		return s
	}
	s := newSeries()
	before := len(of.by)
	of.putValue(key, s)
	if d.series += len(of.by) - before; d.series > d.o.Limits.Total {
		d.enforceLimits()
	}
	return s
}

func (d *anomalyDetector) enforceLimits() {
	var most *principalState
	d.people.eachValue(func(_ string, p *principalState) {
		if most == nil || len(p.tools.by)+len(p.skills.by) > len(most.tools.by)+len(most.skills.by) {
			most = p
		}
	})
	if most == nil {
		return
	}
	if len(most.tools.by) >= len(most.skills.by) {
		most.tools.dropOldest()
	} else {
		most.skills.dropOldest()
	}
	d.series--
}

func (d *anomalyDetector) flowFor(p *principalState, server string) *serverFlow {
	f, ok := p.flows.getValue(server)
	if !ok {
		f = &serverFlow{hourly: rateWindow{width: hour}}
		p.flows.putValue(server, f)
	}
	return f
}

func (d *anomalyDetector) serverSeries(name string) *usageSeries {
	s, ok := d.servers.getValue(name)
	if !ok {
		s = newSeries()
		d.servers.putValue(name, s)
	}
	return s
}

func (d *anomalyDetector) executionFor(id string) *runningExecution {
	x, ok := d.running.getValue(id)
	if !ok {
		x = &runningExecution{read: map[string]float64{}, sent: map[string]float64{}}
		d.running.putValue(id, x)
	}
	return x
}

// handleEvent processes an event. It ignores calls with effects, which judgeCall has already processed.
func (d *anomalyDetector) handleEvent(e core.AuditEvent) {
	switch e.Kind {
	case core.EventRequest:
		d.onBegin(e)
	case core.EventVerdict:
		d.onVerdict(e)
	case core.EventCall:
		if e.Effect == core.EffectRead.String() {
			d.onSend(e)
			d.onResult(e)
		}
	case core.EventAnswer:
		d.onResult(e)
	case core.EventRefusal, core.EventDecision:
		d.onRefusal(e)
	case core.EventNetwork:
		d.onNetwork(e)
	case core.EventEnd:
		d.onEnd(e)
	}
}

func unixSeconds(e core.AuditEvent) int64 { return e.At.Unix() }

// localTime returns when an event happened in the users' time zone: its day since 1970, its hour since 1970, and its
// hour of the day.
func (d *anomalyDetector) localTime(e core.AuditEvent) (day, slot int64, at int) {
	t := e.At.In(d.o.Zone)
	_, offset := t.Zone()
	slot = int64(math.Floor(float64(t.Unix()+int64(offset)) / hour))
	return int64(math.Floor(float64(slot) / 24)), slot, t.Hour()
}

func (d *anomalyDetector) onBegin(e core.AuditEvent) {
	p := d.personFor(e.Principal)
	p.rememberID(e.Execution)
	d.executionFor(e.Execution).begun = unixSeconds(e)
	today, slot, at := d.localTime(e)
	if p.span.addDay(today) {
		p.hours.decayCounts()
	}
	if p.hours.addExecution(slot, at, d.o.Learning.Nights) {
		d.checkUnusualHour(p, e, at)
	}
	if n := p.started.countAt(unixSeconds(e), 1); p.started.isUnusual(n, manyRuns) {
		d.checkFrequency(p, e, &p.started, n, "started", "executions in an hour")
	}
	p.runs++
}

func (d *anomalyDetector) onVerdict(e core.AuditEvent) {
	if e.Status == string(core.KindPolicy) {
		d.onDenial(e)
	}
	p, x := d.personFor(e.Principal), d.executionFor(e.Execution)
	for _, name := range textsFrom(e.Facts["skills"]) {
		if len(x.skills) == maxSkills {
			break
		}
		x.skills = append(x.skills, name)
		s := seriesFor(d, p.skills, name)
		today, _, _ := d.localTime(e)
		s.span.addDay(today)
		if n := s.hourly.countAt(unixSeconds(e), 1); s.hourly.isUnusual(n, manyRuns) && s.calls >= d.o.Learning.Calls {
			d.skillOften(p, e, s, name, n)
		}
		s.calls++
	}
}

func (d *anomalyDetector) onRefusal(e core.AuditEvent) {
	if e.Status == "denied" && e.Kind == core.EventDecision || e.Status == string(core.KindPolicy) ||
		e.Status == string(core.KindToolChanged) {
		d.onDenial(e)
	}
	if cause, _ := e.Facts["cause"].(string); cause == UnknownToken {
		p := d.personFor(e.Principal)
		if n := p.probes.countAt(unixSeconds(e), 1); p.probes.isUnusual(n, manyProbes) {
			d.checkProbing(p, e, n)
		}
	}
}

// Names in the additional data ("facts") of audit log events. UnknownToken is the value of the fact "cause" if a
// call was refused because it contains a privacy token that does not exist. TokenRun is a fact of a call: how many
// tokens with consecutive numbers the execution's calls contain so far.
const (
	UnknownToken = "unknown_token"
	TokenRun     = "token_run"
)

func (d *anomalyDetector) onDenial(e core.AuditEvent) {
	p := d.personFor(e.Principal)
	if n := p.denied.countAt(unixSeconds(e), 1); p.denied.isUnusual(n, manyDenials) {
		d.checkRefusals(p, e, n)
	}
}

// onSend updates the statistics for one call and reports what is unusual about the call. A call with effects is
// passed to onSend before it is sent, so that the call can still be stopped. A call that only reads does no harm, so
// it is not judged in advance and is passed to onSend only after it was sent.
func (d *anomalyDetector) onSend(e core.AuditEvent) {
	p, t := d.personFor(e.Principal), unixSeconds(e)
	today, _, _ := d.localTime(e)
	s := seriesFor(d, p.tools, toolName{e.Server, e.Tool})
	s.span.addDay(today)
	_, known := p.flows.getValue(e.Server)
	if p.countUse(toolName{e.Server, e.Tool}) && (e.Effect != core.EffectRead.String() || !known) {
		d.checkFirstUse(p, e)
	}
	n, many := p.calls.countAt(t, 1), p.hourly.countAt(t, 1)
	switch own := s.hourly.countAt(t, 1); {
	case p.calls.isUnusual(n, manyCalls):
		d.checkFrequency(p, e, &p.calls, n, "made", "calls in 5 minutes")
	case p.hourly.isUnusual(many, manyHourly):
		d.checkFrequency(p, e, &p.hourly, many, "made", "calls in an hour")
	case s.hourly.isUnusual(own, manyCalls) && s.calls >= d.o.Learning.Calls:
		d.toolOften(p, e, s, own)
	}
	if size := numberFrom(e.Facts["arguments_bytes"]); size > 0 {
		if size >= largeArguments && s.calls >= d.o.Learning.Calls && s.arguments.isOutlier(size) {
			d.checkSize(p, e, &s.arguments, size, "received arguments of")
		}
		s.arguments.addCapped(size)
	}
	s.calls++
	if run := numberFrom(e.Facts[TokenRun]); run >= manyTokens && sumValues(d.executionFor(e.Execution).read) < run*tokenRow {
		d.checkEnumeration(p, e, run)
	}
}

// judgeCall processes a call with effects before it is sent. In addition to what onSend checks, it detects leaks and
// bursts of destructive calls.
func (d *anomalyDetector) judgeCall(e core.AuditEvent) {
	p, t := d.personFor(e.Principal), unixSeconds(e)
	x, to := d.executionFor(e.Execution), d.flowFor(p, e.Server)
	size := numberFrom(e.Facts["arguments_bytes"])
	d.checkLeak(p, e, x, to, size)
	x.addBytes(x.sent, e.Server, size)
	to.writes++
	if e.Effect == core.EffectIrreversible.String() {
		if n := p.destructive.countAt(t, 1); p.destructive.isUnusual(n, manyIrreversible) {
			d.checkBurst(p, e, n)
		}
	}
	d.onSend(e)
}

func (x *runningExecution) addBytes(to map[string]float64, server string, n float64) {
	if _, there := to[server]; there || len(to) < maxFlows {
		to[server] += n
	}
}

// onResult processes the result of a call.
func (d *anomalyDetector) onResult(e core.AuditEvent) {
	p, t := d.personFor(e.Principal), unixSeconds(e)
	s, server := seriesFor(d, p.tools, toolName{e.Server, e.Tool}), d.serverSeries(e.Server)
	today, _, _ := d.localTime(e)
	server.span.addDay(today)
	server.calls++
	failed := e.Status != "ok"
	enough := d.o.Learning.Calls
	switch {
	case server.failures.addCall(failed, enough) && server.span.days >= d.o.Learning.Days:
		s.failures.addCall(failed, enough)
		d.serverFails(p, e, server)
	case s.failures.addCall(failed, enough):
		d.toolFails(p, e, s)
	}
	if failed {
		return
	}
	took := float64(e.Duration) / float64(time.Millisecond)
	if took >= slowCallMillis && s.calls >= enough && s.took.isOutlier(took) {
		d.checkDuration(p, e, s, took)
	}
	s.took.addCapped(took)
	size := float64(e.Bytes)
	if size >= largeAnswer && s.calls >= enough && s.size.isOutlier(size) {
		d.checkSize(p, e, &s.size, size, "answered with")
	}
	s.size.addCapped(size)
	d.flowFor(p, e.Server).hourly.countAt(t, size)
	x := d.executionFor(e.Execution)
	x.addBytes(x.read, e.Server, size)
}

// onEnd learns, at the end of an execution, how much it read and sent and how long its skills took.
func (d *anomalyDetector) onEnd(e core.AuditEvent) {
	x, ok := d.running.getValue(e.Execution)
	if !ok {
		return
	}
	d.running.removeKey(e.Execution)
	p := d.personFor(e.Principal)
	for server, n := range x.read {
		d.flowFor(p, server).read.addCapped(n)
	}
	for server, n := range x.sent {
		d.flowFor(p, server).sent.addCapped(n)
	}
	for _, name := range x.skills {
		s := seriesFor(d, p.skills, name)
		if s.failures.addCall(e.Status != string(core.StatusOK), d.o.Learning.Calls) {
			d.skillFails(p, e, s, name)
		}
		took := float64(e.Duration) / float64(time.Millisecond)
		if took >= slowCallMillis && s.calls >= d.o.Learning.Calls && s.took.isOutlier(took) {
			d.skillSlow(p, e, s, name, took)
		}
		s.took.addCapped(took)
	}
}

func numberFrom(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

func textsFrom(v any) (all []string) {
	switch list := v.(type) {
	case []string:
		return list
	case []any:
		for _, each := range list {
			if s, ok := each.(string); ok {
				all = append(all, s)
			}
		}
	}
	return all
}

func sumValues(m map[string]float64) (all float64) {
	for _, v := range m {
		all += v
	}
	return all
}
