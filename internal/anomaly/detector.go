package anomaly

import (
	"math"
	"time"

	"retort/internal/core"
)

// detector learns and finds. It is not safe for concurrent use.
type detector struct {
	o       Options
	people  *lru[string, *person]
	servers *lru[string, *series]
	running *lru[string, *execution]
	told    *lru[subject, *told]
	series  int // of all people
	found   []Finding
}

// subject describes what a finding is about: one is told once in a while.
type subject struct {
	kind                           Kind
	principal, server, tool, skill string
}

type told struct {
	at      int64
	measure float64
	more    int
}

// Cooldown is for how long a finding is not told again, unless it has become four times as
// bad, and for how long what is done about it lasts.
const Cooldown = time.Hour

func newDetector(o Options) *detector {
	o.Limits, o.Learning = o.Limits.complete(), o.Learning.complete()
	if o.Zone == nil {
		o.Zone = time.UTC
	}
	return &detector{
		o: o, people: newLRU[string, *person](o.Limits.Principals), servers: newLRU[string, *series](o.Limits.Series),
		running: newLRU[string, *execution](o.Limits.Executions), told: newLRU[subject, *told](4 * o.Limits.Executions),
	}
}

// take returns what was found.
func (d *detector) take() []Finding {
	found := d.found
	d.found = nil
	return found
}

func (d *detector) person(name string) *person {
	p, ok := d.people.get(name)
	if !ok {
		if len(d.people.by) >= d.people.most {
			if e := d.people.order.Back(); e != nil {
				old := e.Value.(*kept[string, *person]).value
				d.series -= len(old.tools.by) + len(old.skills.by)
			}
		}
		p = newPerson(d.o.Limits)
		d.people.put(name, p)
	}
	return p
}

// within returns a series of a principal. What is forgotten for a new one is the principal's own, or belongs to
// whoever has the most.
func within[K comparable](d *detector, of *lru[K, *series], key K) *series {
	if s, ok := of.get(key); ok {
		return s
	}
	s := newSeries()
	before := len(of.by)
	of.put(key, s)
	if d.series += len(of.by) - before; d.series > d.o.Limits.Total {
		d.shrink()
	}
	return s
}

func (d *detector) shrink() {
	var most *person
	d.people.values(func(_ string, p *person) {
		if most == nil || len(p.tools.by)+len(p.skills.by) > len(most.tools.by)+len(most.skills.by) {
			most = p
		}
	})
	if most == nil {
		return
	}
	if len(most.tools.by) >= len(most.skills.by) {
		most.tools.drop()
	} else {
		most.skills.drop()
	}
	d.series--
}

func (d *detector) flow(p *person, server string) *flow {
	f, ok := p.flows.get(server)
	if !ok {
		f = &flow{hourly: window{width: hour}}
		p.flows.put(server, f)
	}
	return f
}

func (d *detector) server(name string) *series {
	s, ok := d.servers.get(name)
	if !ok {
		s = newSeries()
		d.servers.put(name, s)
	}
	return s
}

func (d *detector) execution(id string) *execution {
	x, ok := d.running.get(id)
	if !ok {
		x = &execution{read: map[string]float64{}, sent: map[string]float64{}}
		d.running.put(id, x)
	}
	return x
}

// event takes in what has happened. Of calls with effects judge was asked before.
func (d *detector) event(e core.Event) {
	switch e.Kind {
	case core.EventRequest:
		d.begin(e)
	case core.EventVerdict:
		d.verdict(e)
	case core.EventCall:
		if e.Effect == core.EffectRead.String() {
			d.leaves(e)
			d.came(e)
		}
	case core.EventAnswer:
		d.came(e)
	case core.EventRefusal, core.EventDecision:
		d.refusal(e)
	case core.EventNetwork:
		d.network(e)
	case core.EventEnd:
		d.end(e)
	}
}

func seconds(e core.Event) int64 { return e.At.Unix() }

// local returns the day and the hour of an event where the people are, and the hour in all.
func (d *detector) local(e core.Event) (day, slot int64, at int) {
	t := e.At.In(d.o.Zone)
	_, offset := t.Zone()
	slot = int64(math.Floor(float64(t.Unix()+int64(offset)) / hour))
	return int64(math.Floor(float64(slot) / 24)), slot, t.Hour()
}

func (d *detector) begin(e core.Event) {
	p := d.person(e.Principal)
	p.remember(e.Execution)
	d.execution(e.Execution).begun = seconds(e)
	today, slot, at := d.local(e)
	if p.span.add(today) {
		p.hours.forget()
	}
	if p.hours.add(slot, at, d.o.Learning.Nights) {
		d.night(p, e, at)
	}
	if n := p.started.add(seconds(e), 1); p.started.unusual(n, manyRuns) {
		d.often(p, e, &p.started, n, "started", "executions in an hour")
	}
	p.runs++
}

func (d *detector) verdict(e core.Event) {
	if e.Status == string(core.KindPolicy) {
		d.denial(e)
	}
	p, x := d.person(e.Principal), d.execution(e.Execution)
	for _, name := range texts(e.Facts["skills"]) {
		if len(x.skills) == maxSkills {
			break
		}
		x.skills = append(x.skills, name)
		s := within(d, p.skills, name)
		today, _, _ := d.local(e)
		s.span.add(today)
		if n := s.hourly.add(seconds(e), 1); s.hourly.unusual(n, manyRuns) && s.calls >= d.o.Learning.Calls {
			d.skillOften(p, e, s, name, n)
		}
		s.calls++
	}
}

func (d *detector) refusal(e core.Event) {
	if e.Status == "denied" && e.Kind == core.EventDecision || e.Status == string(core.KindPolicy) || e.Status == string(core.KindToolChanged) {
		d.denial(e)
	}
	if cause, _ := e.Facts["cause"].(string); cause == UnknownToken {
		p := d.person(e.Principal)
		if n := p.probes.add(seconds(e), 1); p.probes.unusual(n, manyProbes) {
			d.probed(p, e, n)
		}
	}
}

// UnknownToken is the fact "cause" of the refusal of a call that names a token which stands
// for nothing, and TokenRun that of a call: how many tokens with numbers one after the other
// its execution has named.
const (
	UnknownToken = "unknown_token"
	TokenRun     = "token_run"
)

func (d *detector) denial(e core.Event) {
	p := d.person(e.Principal)
	if n := p.denied.add(seconds(e), 1); p.denied.unusual(n, manyDenials) {
		d.refused(p, e, n)
	}
}

// leaves is about a call that leaves, or that has if it only reads.
func (d *detector) leaves(e core.Event) {
	p, t := d.person(e.Principal), seconds(e)
	today, _, _ := d.local(e)
	s := within(d, p.tools, tool{e.Server, e.Tool})
	s.span.add(today)
	_, known := p.flows.get(e.Server)
	if p.use(tool{e.Server, e.Tool}) && (e.Effect != core.EffectRead.String() || !known) {
		d.first(p, e)
	}
	n, many := p.calls.add(t, 1), p.hourly.add(t, 1)
	switch own := s.hourly.add(t, 1); {
	case p.calls.unusual(n, manyCalls):
		d.often(p, e, &p.calls, n, "made", "calls in 5 minutes")
	case p.hourly.unusual(many, manyHourly):
		d.often(p, e, &p.hourly, many, "made", "calls in an hour")
	case s.hourly.unusual(own, manyCalls) && s.calls >= d.o.Learning.Calls:
		d.toolOften(p, e, s, own)
	}
	if size := number(e.Facts["arguments_bytes"]); size > 0 {
		if size >= largeArguments && s.calls >= d.o.Learning.Calls && s.arguments.beyond(size) {
			d.large(p, e, &s.arguments, size, "was sent arguments of")
		}
		s.arguments.learn(size)
	}
	s.calls++
	if run := number(e.Facts[TokenRun]); run >= manyTokens && sum(d.execution(e.Execution).read) < run*tokenRow {
		d.enumerated(p, e, run)
	}
}

// judge is about a call with effects that is about to leave.
func (d *detector) judge(e core.Event) {
	p, t := d.person(e.Principal), seconds(e)
	x, to := d.execution(e.Execution), d.flow(p, e.Server)
	size := number(e.Facts["arguments_bytes"])
	d.leaks(p, e, x, to, size)
	x.add(x.sent, e.Server, size)
	to.writes++
	if e.Effect == core.EffectDestructive.String() {
		if n := p.ruin.add(t, 1); p.ruin.unusual(n, manyDestructive) {
			d.burst(p, e, n)
		}
	}
	d.leaves(e)
}

func (x *execution) add(to map[string]float64, server string, n float64) {
	if _, there := to[server]; there || len(to) < maxFlows {
		to[server] += n
	}
}

// came is about a call that came back.
func (d *detector) came(e core.Event) {
	p, t := d.person(e.Principal), seconds(e)
	s, server := within(d, p.tools, tool{e.Server, e.Tool}), d.server(e.Server)
	today, _, _ := d.local(e)
	server.span.add(today)
	server.calls++
	failed := e.Status != "ok"
	enough := d.o.Learning.Calls
	switch {
	case server.failures.add(failed, enough) && server.span.days >= d.o.Learning.Days:
		s.failures.add(failed, enough)
		d.serverFails(p, e, server)
	case s.failures.add(failed, enough):
		d.toolFails(p, e, s)
	}
	if failed {
		return
	}
	took := float64(e.Duration) / float64(time.Millisecond)
	if took >= slow && s.calls >= enough && s.took.beyond(took) {
		d.slow(p, e, s, took)
	}
	s.took.learn(took)
	size := float64(e.Bytes)
	if size >= largeAnswer && s.calls >= enough && s.size.beyond(size) {
		d.large(p, e, &s.size, size, "answered with")
	}
	s.size.learn(size)
	d.flow(p, e.Server).hourly.add(t, size)
	x := d.execution(e.Execution)
	x.add(x.read, e.Server, size)
}

// end learns what an execution has read and sent, and how long its skills took.
func (d *detector) end(e core.Event) {
	x, ok := d.running.get(e.Execution)
	if !ok {
		return
	}
	d.running.remove(e.Execution)
	p := d.person(e.Principal)
	for server, n := range x.read {
		d.flow(p, server).read.learn(n)
	}
	for server, n := range x.sent {
		d.flow(p, server).sent.learn(n)
	}
	for _, name := range x.skills {
		s := within(d, p.skills, name)
		if s.failures.add(e.Status != string(core.StatusOK), d.o.Learning.Calls) {
			d.skillFails(p, e, s, name)
		}
		took := float64(e.Duration) / float64(time.Millisecond)
		if took >= slow && s.calls >= d.o.Learning.Calls && s.took.beyond(took) {
			d.skillSlow(p, e, s, name, took)
		}
		s.took.learn(took)
	}
}

func number(v any) float64 {
	switch n := v.(type) {
	case int:
		return float64(n)
	case float64:
		return n
	}
	return 0
}

func texts(v any) (all []string) {
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

func sum(m map[string]float64) (all float64) {
	for _, v := range m {
		all += v
	}
	return all
}
