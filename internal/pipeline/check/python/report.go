package python

import (
	"context"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// findingPlace returns the position of a rule's finding in the original program.
func (p *pythonProgram) findingPlace(f rules.RuleFinding) (line, column, width int) {
	before := p.code[:min(f.Start, len(p.code))]
	start := strings.LastIndexAny(before, "\n\r") + 1
	line = strings.Count(before, "\n") + strings.Count(before, "\r") + 1
	marked, _, _ := strings.Cut(p.code[len(before):min(max(f.End, f.Start), len(p.code))], "\n")
	return line + p.lines, utf8.RuneCountInString(before[start:]) + 1 + p.indent, utf8.RuneCountInString(marked)
}

// judgeTree applies the rules to the program. It returns an error if the program violates a rule that is enforced at
// the given strictness level.
func (p *pythonProgram) judgeTree(level rules.StrictnessLevel) *core.Error {
	var err error
	if p.report, err = rules.JudgeTree(p.tree); err != nil {
		return failureError(err)
	}
	e, width := p.report.RefusalError(level, p.findingPlace)
	if e != nil {
		e.Frame = source.CodeFrame(p.written, e.Line, e.Column, width)
	}
	return e
}

// JudgeProgram returns the findings of the rules in a program. It does not check the program against the tools.
func (c *PythonChecker) JudgeProgram(ctx context.Context, code string) (rules.RuleReport, *core.Error) {
	var report rules.RuleReport
	_, refusal := c.parseProgram(ctx, code, core.NewToolset(nil), func(p *pythonProgram) *core.Error {
		refusal := p.judgeTree(rules.Permissive)
		report = p.report
		return refusal
	})
	return report, refusal
}
