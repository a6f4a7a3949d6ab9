package python

import (
	"context"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// place returns the position of a rule's finding in the program as it was written.
func (p *program) place(f rules.Finding) (line, column, width int) {
	before := p.code[:min(f.Start, len(p.code))]
	start := strings.LastIndexAny(before, "\n\r") + 1
	line = strings.Count(before, "\n") + strings.Count(before, "\r") + 1
	marked, _, _ := strings.Cut(p.code[len(before):min(max(f.End, f.Start), len(p.code))], "\n")
	return line + p.lines, utf8.RuneCountInString(before[start:]) + 1 + p.indent, utf8.RuneCountInString(marked)
}

// judgeTree applies the rules to the program, and refuses it if they deny it.
func (p *program) judgeTree(level rules.Level) *core.Error {
	var err error
	if p.report, err = rules.Judge(p.tree); err != nil {
		return failure(err)
	}
	e, width := p.report.Refusal(level, p.place)
	if e != nil {
		e.Frame = source.Frame(p.written, e.Line, e.Column, width)
	}
	return e
}

// Judge returns what the rules find in a program, whether or not it matches the tools.
func (c *Checker) Judge(ctx context.Context, code string) (rules.Report, *core.Error) {
	var report rules.Report
	_, refusal := c.parse(ctx, code, core.NewToolset(nil), func(p *program) *core.Error {
		refusal := p.judgeTree(rules.Permissive)
		report = p.report
		return refusal
	})
	return report, refusal
}
