package typescript

import (
	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/check/source"
)

// usesLearned reports whether a program names tools whose result types are inferred from earlier results.
func (r *programReach) usesLearned() bool {
	for s, needs := range r.servers {
		for _, t := range s.Tools {
			if t.Learned != nil && (needs.whole || needs.tools[t]) {
				return true
			}
		}
	}
	return false
}

// splitAdvice separates the compiler's diagnostics about fields of inferred result types from all others, which it
// returns unchanged. It converts the diagnostics about these fields to findings that are only warnings, and drops
// those for which there is little evidence.
func (p *scriptProgram) splitAdvice(diagnostics []tsc.Diagnostic) (others []tsc.Diagnostic, advice []checkFinding) {
	for _, d := range diagnostics {
		t := p.learnedToolOf(d)
		if t == nil {
			others = append(others, d)
			continue
		}
		l := d.Lack
		u := source.UnknownField{Tool: t, Name: l.Name, Has: l.Has, Near: l.Near, List: l.List, Type: l.Type, Loose: l.Loose, Tried: l.Tried}
		if !d.Erased && !l.Partly && u.IsTelling() {
			advice = append(advice, checkFinding{
				message: u.WarningText(p.tools.QualifiedName(t)), start: d.Start, end: d.End, server: t.Server, tool: t.Name,
				advice: true,
			})
		}
	}
	return others, advice
}

// learnedToolOf returns the tool whose inferred result type lacks the member that a diagnostic is about, or nil.
func (p *scriptProgram) learnedToolOf(d tsc.Diagnostic) *core.Tool {
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
