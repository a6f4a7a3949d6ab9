package typescript

import (
	"context"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// treeOf returns a program's syntax tree in the form that the rules read.
func treeOf(src *tsc.Source) *rules.Tree {
	nodes := src.Tree()
	t := &rules.Tree{Language: rules.Script, Source: src.Text(), Nodes: make([]rules.Node, len(nodes))}
	for i, n := range nodes {
		kind, _ := rules.KindOf(n.Kind)
		t.Nodes[i] = rules.Node{Kind: kind, Text: n.Text, Start: int32(n.Start), End: int32(n.End), Size: int32(n.Size), Bind: int32(n.Bind)}
	}
	return t
}

// judged returns the rules' report on a program.
func (s *service) judged(src *tsc.Source) (rules.Report, error) {
	if len(src.Errors()) > 0 {
		return rules.Report{}, nil
	}
	return rules.Judge(treeOf(src))
}

// place returns the position of a rule's finding.
func (p *program) place(f rules.Finding) (line, column, width int) {
	line, column = p.position(f.Start)
	return line, column, p.width(finding{start: f.Start, end: f.End})
}

// policy refuses a program that the rules deny.
func (p *program) policy() *core.Error {
	e, width := p.report.Refusal(p.src.Level, p.place)
	if e != nil {
		e.Frame = source.Frame(p.src.Code, e.Line, e.Column, width)
	}
	return e
}

// Judge returns what the rules find in a program, whether or not it matches the tools.
func (c *Checker) Judge(ctx context.Context, src Source) (rules.Report, *core.Error) {
	compiler, err := c.compilers.take(ctx)
	if err != nil {
		return rules.Report{}, (&program{src: src}).failure(err)
	}
	defer c.compilers.give(compiler)
	p, refusal := parse(ctx, compiler, src, core.NewToolset(nil))
	if refusal != nil {
		return rules.Report{}, refusal
	}
	return p.report, nil
}
