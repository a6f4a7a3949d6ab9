package typescript

import (
	"fmt"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/pipeline/gate/source"
	"retort/internal/run"
)

// learned says that a program names tools whose answers are only known from earlier ones.
func (r *reach) learned() bool {
	for s, needs := range r.servers {
		for _, t := range s.Tools {
			if t.Learned != nil && (needs.whole || needs.tools[t]) {
				return true
			}
		}
	}
	return false
}

// advised takes out of diagnostics those that are about fields which no answer had so far.
func (p *program) advised(diagnostics []tsc.Diagnostic) (others []tsc.Diagnostic, advice []finding) {
	for _, d := range diagnostics {
		t := p.answering(d)
		if t == nil {
			others = append(others, d)
			continue
		}
		if !d.Lack.Partly && !d.Erased {
			advice = append(advice, finding{message: p.unseen(t, d.Lack), start: d.Start, end: d.End, server: t.Server, tool: t.Name, advice: true})
		}
	}
	return others, advice
}

// answering is the tool of whose learned type a diagnostic misses a member, or nil.
func (p *program) answering(d tsc.Diagnostic) *run.Tool {
	if d.Lack == nil {
		return nil
	}
	s := p.serverOf(d.Lack.File)
	if s == nil {
		return nil
	}
	for _, t := range s.Tools {
		if t.Learned != nil && "/"+toolPath(s, t)+".d.ts" == d.Lack.File {
			return t
		}
	}
	return nil
}

// unseen says what is wrong with a field.
func (p *program) unseen(t *run.Tool, l *tsc.Lack) string {
	answers := fmt.Sprintf("%d answers", t.Learned.Observations)
	if t.Learned.Observations == 1 {
		answers = "the one answer"
	}
	text := fmt.Sprintf("%q was never seen in %s of %s", l.Name, answers, p.tools.Qualified(t))
	switch {
	case l.Near != "":
		return text + fmt.Sprintf(". Did you mean '%s'?", l.Near)
	case l.List:
		return text + ": the value is a list there"
	case len(l.Has) == 0:
		return text + ": the value is of type " + l.Type
	}
	if near := run.Nearest(l.Name, l.Has, 1); len(near) > 0 {
		return text + fmt.Sprintf(". Did you mean '%s'?", near[0])
	}
	return text + "; there are " + source.OrList(l.Has)
}
