package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/relay"
	"retort/internal/pipeline/report"
	"retort/internal/policy"
)

// rehearse runs a program without its effects: calls that only read are made, the others are recorded. The request is
// answered with the recorded calls. If a person approves exactly these, the program runs.
func (p *Pipeline) rehearse(ctx context.Context, req core.Request, f *flight) core.Outcome {
	recorded := &plan{rehearsal: true, touched: map[string]bool{}, mask: func(raw json.RawMessage) json.RawMessage { return raw }}
	o := p.perform(ctx, req, f, recorded)
	if o.Status != core.StatusOK || len(recorded.effects) == 0 {
		return o
	}
	f.tell(o)
	return p.perform(ctx, req, f, approved(recorded.effects))
}

// plan holds the effects of a program: those that a dry run finds, or those that a person approved, each of which may
// happen once. It is safe for concurrent use.
type plan struct {
	rehearsal bool
	mask      func(json.RawMessage) json.RawMessage // what the model may see of arguments

	mu      sync.Mutex
	effects []core.Intended
	size    int             // of their arguments, in bytes
	left    map[string]int  // of those that were approved, by what they are
	touched map[string]bool // files that a dry run would have written
}

// maxPlan bounds the arguments of one plan, in bytes: a person has to read them.
const maxPlan = 4 << 20

func approved(effects []core.Intended) *plan {
	p := &plan{effects: effects, left: map[string]int{}}
	for _, e := range effects {
		p.left[keyOf(e)]++
	}
	return p
}

func keyOf(e core.Intended) string {
	key, _ := json.Marshal([]string{e.Server, e.Tool, e.Pin, string(e.Arguments)})
	return string(key)
}

// record notes a call that was not made.
func (p *plan) record(t *core.Tool, c core.Call, d policy.Decision) *core.Error {
	e := intended(t, c)
	e.Effect, e.Reason, e.Shown = d.Effect.Kind.String(), d.Effect.Reason, p.mask(e.Arguments)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.size += len(e.Arguments); p.size > maxPlan {
		return core.Errorf(core.KindLimit, "pipeline.dryrun", "the effects of this program are more than a person can be shown (%d bytes)", maxPlan).
			WithHint("do less in one program")
	}
	p.effects = append(p.effects, e)
	return nil
}

func intended(t *core.Tool, c core.Call) core.Intended {
	return core.Intended{Server: c.Server, Tool: c.Tool, Arguments: canonjson.OrRaw(c.Arguments), Pin: t.Pin}
}

// takes reports whether a call is one of those that were approved and have not been
// made. From then on it counts as made.
func (p *plan) takes(t *core.Tool, c core.Call) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := keyOf(intended(t, c))
	if p.left[key] == 0 {
		return false
	}
	p.left[key]--
	return true
}

// noting wraps functions so that files they would change are noted.
func (p *plan) noting(f relay.Function) relay.Function {
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		answer, err := f(ctx, raw)
		var a struct{ Path, From, To string }
		if err == nil && json.Unmarshal(raw, &a) == nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			for _, name := range []string{a.Path, a.From, a.To} {
				if name != "" && len(p.touched) < maxTouched {
					p.touched[name] = true
				}
			}
		}
		return answer, err
	}
}

const maxTouched = 20

// writers lists the functions with which programs change files.
var writers = []string{"write_file", "make_dir", "remove_file", "rename_file"}

// rehearsed adds to an Outcome what did not happen.
func (x *execution) rehearsed(o core.Outcome) core.Outcome {
	o.DryRun = true
	report.Effects(&o, forModel(x.plan.effects), x.reporting())
	if len(x.plan.touched) > 0 {
		var names []string
		for name := range x.plan.touched {
			names = append(names, name)
		}
		slices.Sort(names)
		o.Warnings = append(o.Warnings, "files are as before the dry run; the program would change "+strings.Join(names, ", "))
	}
	o.Warnings = append(o.Warnings, x.commands.warning()...)
	if o.Error != nil && len(x.plan.effects) > 0 && o.Status == core.StatusError && o.Error.Hint == "" {
		o.Error = o.Error.WithHint("calls that may have effects were answered with made-up values of the shape that the tool declares, {} if it declares none: the program may need their real answers")
	}
	return o
}

func forModel(effects []core.Intended) []core.Intended {
	return core.Approval{Question: core.Question{Effects: effects}}.ForModel().Effects
}

// tell answers the request before the flight has ended, as soon as it waits for a
// person.
func (f *flight) tell(o core.Outcome) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.interim, f.channel = &o, nil
}

// told returns the Outcome of a dry run that waits for approval the first time it is called, then nil.
func (f *flight) told() *core.Outcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	o := f.interim
	f.interim = nil
	return o
}

// proposed returns the Outcome of a dry run whose effects wait for approval.
func (p *Pipeline) proposed(f *flight, o core.Outcome, waiting []core.Approval) core.Outcome {
	if err := p.detach(f); err != nil {
		p.Flights.land(f)
		o.Warnings = append(o.Warnings, "it cannot be approved, because its calls could not be noted: "+err.Error())
		return o
	}
	o.Approvals = shown(waiting)
	o.Warnings = append(o.Warnings, fmt.Sprintf("nothing was changed. To run the program with exactly these effects call resume_execution with the execution_id: a person is asked. Or the person runs in a terminal: retort approvals approve %s", waiting[0].ID))
	return o
}
