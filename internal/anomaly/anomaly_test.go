package anomaly

import (
	"testing"
	"time"

	"retort/internal/core"
)

// watcherSetup holds an AnomalyWatcher under test, its findings and its last judgement. It passes events to the
// watcher as the pipeline does.
type watcherSetup struct {
	*AnomalyWatcher
	found []AnomalyFinding
	last  Judgement
}

func watching(o Options) *watcherSetup {
	w := &watcherSetup{}
	w.AnomalyWatcher = New(o, func(f AnomalyFinding) { w.found = append(w.found, f) })
	return w
}

func (w *watcherSetup) event(e core.AuditEvent) {
	if e.Kind == core.EventCall && e.Effect != "read" {
		w.last = w.Judge(e)
	}
	w.ObserveEvent(e)
}

func (w *watcherSetup) of(k Kind) (found []AnomalyFinding) {
	for _, f := range w.found {
		if f.Kind == k {
			found = append(found, f)
		}
	}
	return found
}

const (
	seeds   = 20
	history = 30
)

func officeOptions() Options { return Options{Zone: time.FixedZone("east", 2*60*60)} }

// TestFalseAlarms checks that ordinary office activity causes almost no findings.
func TestFalseAlarms(t *testing.T) {
	alarms, by := 0, map[Kind]int{}
	for seed := range uint64(seeds) {
		w := watching(officeOptions())
		o := newOffice(seed, w.event)
		o.days(0, history)
		alarms += len(w.found)
		each := map[string]int{}
		for _, f := range w.found {
			by[f.Kind]++
			if each[f.Principal]++; each[f.Principal] > 1 {
				t.Errorf("seed %d: more than one for %q in %d days: %s: %s", seed, f.Principal, history, f.Kind, f.Words)
			}
		}
	}
	t.Logf("%d false alarms in %d months of principals: %v", alarms, seeds*len(workers), by)
	if alarms > 15 {
		t.Errorf("%d false alarms", alarms)
	}
}

// plantedAnomaly describes unusual activity of one worker that a test adds to the history of an office.
type plantedAnomaly struct {
	name string
	kind Kind
	who  string
	do   func(o *office, w worker, at time.Time)
}

var plants = []plantedAnomaly{
	{"an intern deletes", IrreversibleBurst, "intern", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 42 {
				o.write(w, id, at.Add(time.Duration(i)*time.Second), "crm", "delete_record", "irreversible", 40)
			}
		})
	}},
	{"a job deletes more than ever", IrreversibleBurst, "cron", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 250 {
				o.write(w, id, at.Add(time.Duration(i)*time.Second), "database", "drop", "irreversible", 40)
			}
		})
	}},
	{"a server is read, and mail is sent", Exfiltration, "intern", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 40 {
				o.read(w, id, at.Add(time.Duration(i)*time.Second), "crm", "list", 200_000)
			}
			o.write(w, id, at.Add(time.Minute), "mail", "send", "irreversible", 50_000)
		})
	}},
	{"a server is read by one program, and another writes much", Exfiltration, "ann", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 60 {
				o.read(w, id, at.Add(time.Duration(i)*time.Second), "crm", "list", 900_000)
			}
		})
		o.simulateProgram(w, at.Add(2*time.Minute), func(id string) {
			for i := range 20 {
				o.write(w, id, at.Add(2*time.Minute+time.Duration(i)*time.Second), "drive", "update", "write", 300_000)
			}
		})
	}},
	{"calls without end", Rate, "ann", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 5000 {
				o.read(w, id, at.Add(time.Duration(i)*20*time.Millisecond), "crm", "list", 6000)
			}
		})
	}},
	{"executions without end", Rate, "intern", func(o *office, w worker, at time.Time) {
		for i := range 300 {
			o.simulateProgram(w, at.Add(time.Duration(i)*5*time.Second), func(string) {})
		}
	}},
	{"a huge answer", Size, "bob", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			o.read(w, id, at, "issues", "list", 400e6)
			o.read(w, id, at, "issues", "list", 400e6)
		})
	}},
	{"huge arguments", Size, "bob", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) { o.write(w, id, at, "issues", "update", "write", 30e6) })
	}},
	{"a tool that hangs", Duration, "bob", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			e := o.event(w, id, at, core.EventCall)
			e.Server, e.Tool, e.Effect, e.Status, e.Duration = "issues", "list", "read", "ok", 10*time.Minute
			o.emit(e)
		})
	}},
	{"a server that breaks", Failures, "bob", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 30 {
				e := o.event(w, id, at.Add(time.Duration(i)*time.Second), core.EventCall)
				e.Server, e.Tool, e.Effect, e.Status = "issues", "list", "read", "upstream_gone"
				o.emit(e)
			}
		})
	}},
	{"a skill that fails", Failures, "bob", func(o *office, w worker, at time.Time) {
		for i := range 20 {
			id, now := o.id(), at.Add(time.Duration(i)*time.Minute)
			o.emit(o.event(w, id, now, core.EventRequest))
			e := o.event(w, id, now, core.EventVerdict)
			e.Status, e.Facts = "ok", map[string]any{"skills": []any{"triage"}}
			o.emit(e)
			e = o.event(w, id, now, core.EventEnd)
			e.Status = "error"
			o.emit(e)
		}
	}},
	{"a tool never used before", FirstUse, "ann", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) { o.write(w, id, at, "crm", "merge_accounts", "irreversible", 40) })
	}},
	{"a server never used before", FirstUse, "ann", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) { o.read(w, id, at, "payroll", "list", 500) })
	}},
	{"refused again and again", Denials, "intern", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 25 {
				e := o.event(w, id, at.Add(time.Duration(i)*time.Second), core.EventRefusal)
				e.Status = "policy"
				o.emit(e)
			}
		})
	}},
	{"people say no", Denials, "bob", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 25 {
				e := o.event(w, id, at.Add(time.Duration(i)*time.Second), core.EventDecision)
				e.Status = "denied"
				o.emit(e)
			}
		})
	}},
	{"tokens are guessed", Probing, "intern", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			for i := range 6 {
				e := o.event(w, id, at.Add(time.Duration(i)*time.Second), core.EventRefusal)
				e.Status, e.Facts = "policy", map[string]any{"cause": UnknownToken}
				o.emit(e)
			}
		})
	}},
	{"tokens are gone through", Probing, "intern", func(o *office, w worker, at time.Time) {
		o.simulateProgram(w, at, func(id string) {
			e := o.event(w, id, at, core.EventCall)
			e.Server, e.Tool, e.Effect, e.Facts = "chat", "update", "write", map[string]any{"arguments_bytes": 900, TokenRun: 60}
			o.emit(e)
		})
	}},
	{"work at night", Night, "ann", func(o *office, w worker, _ time.Time) {
		at := o.at(history, 2)
		for i := range 4 {
			o.simulateExecution(w, at.Add(time.Duration(i)*5*time.Minute))
		}
	}},
}

// TestPlantedAnomalies checks that each planted anomaly is found in several different histories, and that the finding
// names the principal and has evidence.
func TestPlantedAnomalies(t *testing.T) {
	for _, plant := range plants {
		t.Run(plant.name, func(t *testing.T) {
			for seed := range uint64(3) {
				w := watching(officeOptions())
				o := newOffice(seed, w.event)
				o.days(0, history)
				before := len(w.of(plant.kind))
				plant.do(o, by(plant.who), o.at(history, by(plant.who).from+1))
				found := w.of(plant.kind)[before:]
				if len(found) == 0 || len(found) > 4 {
					t.Fatalf("seed %d: found %d: %+v", seed, len(found), w.found)
				}
				f := found[0]
				if f.Principal != plant.who || f.Words == "" || f.Evidence.Days < 20 || len(f.Evidence.Last) == 0 {
					t.Errorf("seed %d: %+v", seed, f)
				}
				if seed == 0 {
					t.Logf("%s: %s", f.Severity, f.Words)
				}
			}
		})
	}
}

func by(name string) worker {
	for _, w := range workers {
		if w.name == name {
			return w
		}
	}
	return worker{}
}
