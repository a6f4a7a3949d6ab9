package anomaly

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"retort/internal/core"
)

// office simulates a few people whose programs use a few servers, and generates the audit events. The same seed gives
// the same events.
type office struct {
	r      *rand.Rand
	zone   *time.Location
	sink   func(core.AuditEvent)
	number int
}

// worker describes one principal of the office and its working habits.
type worker struct {
	name        string
	from, to    int // working hours
	runs        float64
	servers     []string
	destructive float64 // share of executions that make irreversible calls
	weekends    bool
}

var workers = []worker{
	{"ann", 8, 17, 14, []string{"crm", "mail", "drive"}, 0.05, false},
	{"bob", 9, 19, 40, []string{"issues", "files", "chat"}, 0.2, false},
	{"intern", 9, 16, 8, []string{"crm", "chat"}, 0, false},
	{"cron", 2, 4, 24, []string{"database", "sheets"}, 0.5, true},
	{"", 7, 23, 30, []string{"crm", "mail", "drive", "issues", "files", "chat"}, 0.1, true},
}

var monday = time.Date(2026, time.March, 2, 0, 0, 0, 0, time.UTC)

func newOffice(seed uint64, sink func(core.AuditEvent)) *office {
	zone := time.FixedZone("east", 2*60*60)
	return &office{r: rand.New(rand.NewPCG(seed, 7)), zone: zone, sink: sink}
}

// emit passes an event to the function that receives the office's events.
func (o *office) emit(e core.AuditEvent) { o.sink(e) }

func (o *office) days(from, n int) {
	for d := from; d < from+n; d++ {
		o.simulateDay(d)
	}
}

// simulateDay simulates one day of all workers. Within each hour, their executions follow each other worker by
// worker.
func (o *office) simulateDay(d int) {
	weekend := d%7 >= 5
	for hour := range 24 {
		for _, w := range workers {
			if weekend && !w.weekends || hour < w.from || hour >= w.to {
				continue
			}
			for range o.poisson(w.runs / float64(w.to-w.from)) {
				o.simulateExecution(w, o.at(d, hour).Add(time.Duration(o.r.Int64N(int64(time.Hour)))))
			}
		}
	}
}

func (o *office) at(day, hour int) time.Time {
	return time.Date(2026, time.March, 2+day, hour, 0, 0, 0, o.zone)
}

func (o *office) poisson(mean float64) (n int) {
	for p := o.r.Float64(); p > math.Exp(-mean); n++ {
		p *= o.r.Float64()
	}
	return n
}

// lognormal returns a random number with a log-normal distribution. spread is the standard deviation of its natural
// logarithm.
func (o *office) lognormal(median, spread float64) float64 {
	return median * math.Exp(spread*o.r.NormFloat64())
}

func (o *office) id() string { o.number++; return fmt.Sprintf("x%06d", o.number) }

func (o *office) event(w worker, id string, at time.Time, kind core.EventKind) core.AuditEvent {
	return core.AuditEvent{Kind: kind, At: at, Execution: id, Session: "s", Principal: w.name}
}

// simulateExecution simulates one ordinary execution: it reads with several calls and sometimes writes.
func (o *office) simulateExecution(w worker, at time.Time) {
	id := o.id()
	o.emit(o.event(w, id, at, core.EventRequest))
	verdict := o.event(w, id, at, core.EventVerdict)
	verdict.Status = "ok"
	if w.name == "bob" && o.r.IntN(3) == 0 {
		verdict.Facts = map[string]any{"skills": []string{"triage"}}
	}
	if o.r.IntN(60) == 0 {
		verdict.Status = "policy"
	}
	o.emit(verdict)
	calls := 1 + int(o.lognormal(4, 1))
	for range min(calls, 150) {
		server := w.servers[o.r.IntN(len(w.servers))]
		at = at.Add(time.Duration(o.lognormal(80, 0.8)) * time.Millisecond)
		o.read(w, id, at, server, "list", o.lognormal(6000, 1.3))
	}
	for range o.poisson(1.2) {
		at = at.Add(time.Second)
		o.write(w, id, at, w.servers[o.r.IntN(len(w.servers))], "update", "write", o.lognormal(300, 1))
	}
	if o.r.Float64() < w.destructive {
		for range 1 + o.poisson(1.5) {
			at = at.Add(time.Second)
			o.write(w, id, at, w.servers[0], "delete", "irreversible", 40)
		}
	}
	if o.r.IntN(40) == 0 {
		refusal := o.event(w, id, at, core.EventRefusal)
		refusal.Status = "policy"
		o.emit(refusal)
	}
	end := o.event(w, id, at, core.EventEnd)
	end.Status, end.Duration = "ok", time.Duration(o.lognormal(900, 0.9))*time.Millisecond
	o.emit(end)
}

func (o *office) status(percent int) string {
	if o.r.IntN(100) < percent {
		return "tool_error"
	}
	return "ok"
}

func (o *office) read(w worker, id string, at time.Time, server, tool string, bytes float64) {
	e := o.event(w, id, at, core.EventCall)
	e.Server, e.Tool, e.Effect, e.Status = server, tool+[]string{"", "_all", "_one"}[o.r.IntN(3)], "read", o.status(3)
	e.Bytes, e.Duration = int64(bytes), time.Duration(o.lognormal(80, 0.8))*time.Millisecond
	e.Facts = map[string]any{"arguments_bytes": 40 + o.r.IntN(60)}
	o.emit(e)
}

func (o *office) write(w worker, id string, at time.Time, server, tool, effect string, bytes float64) {
	e := o.event(w, id, at, core.EventCall)
	e.Server, e.Tool, e.Effect = server, tool, effect
	e.Facts = map[string]any{"arguments_bytes": int(bytes)}
	o.emit(e)
	e.Kind, e.Status, e.Bytes, e.Duration = core.EventAnswer, o.status(3), 80, time.Duration(o.lognormal(120, 0.8))*time.Millisecond
	e.Facts = nil
	o.emit(e)
}

// simulateProgram simulates one execution whose calls are those that f makes.
func (o *office) simulateProgram(w worker, at time.Time, f func(id string)) {
	id := o.id()
	o.emit(o.event(w, id, at, core.EventRequest))
	f(id)
	e := o.event(w, id, at.Add(time.Minute), core.EventEnd)
	e.Status = "ok"
	o.emit(e)
}
