package typescript

import (
	"cmp"
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
		if !d.Erased && isTelling(t.Learned, d.Lack) {
			advice = append(advice, finding{message: p.unseen(t, d.Lack), start: d.Start, end: d.End, server: t.Server, tool: t.Name, advice: true})
		}
	}
	return others, advice
}

// How many answers there must be before one that lacks a field tells anything.
const (
	fewAnswers  = 3
	someAnswers = 5
)

// isTelling weighs what answers without a field say: of a name that is misspelt much, of
// others less. The next answer may well have it if others lately brought something new, if
// they differ much, or if the program itself does not count on it.
func isTelling(learned *run.Learned, l *tsc.Lack) bool {
	n := learned.Observations
	switch misspelt := run.Misspelt(l.Name, l.Has) != "" || l.Near != "" && len(l.Has) == 0; {
	case l.Partly:
		return false
	case misspelt && l.Loose:
		return n >= someAnswers
	case misspelt:
		return n >= fewAnswers
	}
	return !l.Tried && !l.Loose && n >= someAnswers && 2*learned.Steady >= n
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
	near := cmp.Or(run.Misspelt(l.Name, l.Has), l.Near)
	switch {
	case near != "":
		return text + fmt.Sprintf(". Did you mean '%s'?", near)
	case l.List:
		return text + ": the value is a list there"
	case len(l.Has) == 0:
		return text + ": the value is of type " + l.Type
	}
	const shown = 6
	return text + "; there are " + strings.Join(l.Has[:min(shown, len(l.Has))], ", ")
}
