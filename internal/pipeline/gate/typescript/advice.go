package typescript

import (
	"fmt"
	"strings"

	"github.com/microsoft/typescript-go/tsc"

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
		d.Lack.Near = misspelt(d.Lack)
		if !d.Erased && isTelling(t.Learned, d.Lack) {
			advice = append(advice, finding{message: p.unseen(t, d.Lack), start: d.Start, end: d.End, server: t.Server, tool: t.Name, advice: true})
		}
	}
	return others, advice
}

// How many answers there must be before one that lacks a field tells anything: few where
// the name of a field is misspelt. Else the next one may have it, the more so if others
// lately brought something new.
const (
	fewAnswers  = 3
	someAnswers = 5
)

// misspelt is the member that is meant, as far as the names tell.
func misspelt(l *tsc.Lack) string {
	const most = 3 // characters more or less
	if near := run.Nearest(l.Name, l.Has, 1); l.Near == "" && len(near) > 0 && max(len(near[0])-len(l.Name), len(l.Name)-len(near[0])) <= most {
		return near[0]
	}
	return l.Near
}

func isTelling(learned *run.Learned, l *tsc.Lack) bool {
	switch n := learned.Observations; {
	case l.Partly:
		return false
	case l.Near != "":
		return n >= fewAnswers
	}
	return !l.Tried && learned.Observations >= someAnswers && 2*learned.Steady >= learned.Observations
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
	text := fmt.Sprintf("%q was never seen in %d answers of %s", l.Name, t.Learned.Observations, p.tools.Qualified(t))
	switch {
	case l.Near != "":
		return text + fmt.Sprintf(". Did you mean '%s'?", l.Near)
	case l.List:
		return text + ": the value is a list there"
	case len(l.Has) == 0:
		return text + ": the value is of type " + l.Type
	}
	const shown = 6
	return text + "; there are " + strings.Join(l.Has[:min(shown, len(l.Has))], ", ")
}
