package typescript

import (
	"context"

	"github.com/microsoft/typescript-go/tsc"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
	"retort/internal/pipeline/check/source"
)

// treeOf converts a program's syntax tree to the form that package rules judges.
func treeOf(src *tsc.Source) *rules.SyntaxTree {
	nodes := src.Tree()
	t := &rules.SyntaxTree{Language: rules.Script, Source: src.Text(), Nodes: make([]rules.TreeNode, len(nodes))}
	for i, n := range nodes {
		kind, _ := rules.KindOf(n.Kind)
		t.Nodes[i] = rules.TreeNode{Kind: kind, Text: n.Text, Start: int32(n.Start), End: int32(n.End), Size: int32(n.Size), Bind: int32(n.Bind)}
	}
	return t
}

// judgeSource applies the rules to a program and returns their report. It is empty for a program with syntax errors.
func (s *compilerService) judgeSource(src *tsc.Source) (rules.RuleReport, error) {
	if len(src.Errors()) > 0 {
		return rules.RuleReport{}, nil
	}
	return rules.JudgeTree(treeOf(src))
}

// findingPlace returns the position of a rule's finding.
func (p *scriptProgram) findingPlace(f rules.RuleFinding) (line, column, width int) {
	line, column = p.originalPosition(f.Start)
	return line, column, p.findingWidth(checkFinding{start: f.Start, end: f.End})
}

// checkPolicy returns an error if the program violates a rule that its strictness level enforces.
func (p *scriptProgram) checkPolicy() *core.Error {
	e, width := p.report.RefusalError(p.src.Level, p.findingPlace)
	if e != nil {
		e.Frame = source.CodeFrame(p.src.Code, e.Line, e.Column, width)
	}
	return e
}

// JudgeProgram returns the findings of the rules in a program. It does not check the program against the tools.
func (c *ScriptChecker) JudgeProgram(ctx context.Context, src ProgramSource) (rules.RuleReport, *core.Error) {
	compiler, err := c.compilers.takeProcess(ctx)
	if err != nil {
		return rules.RuleReport{}, (&scriptProgram{src: src}).failureError(err)
	}
	defer c.compilers.returnProcess(compiler)
	p, refusal := parseProgram(ctx, compiler, src, core.NewToolset(nil))
	if refusal != nil {
		return rules.RuleReport{}, refusal
	}
	return p.report, nil
}
