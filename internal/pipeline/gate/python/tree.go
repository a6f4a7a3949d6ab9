package python

import (
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"retort/internal/pipeline/gate/rules"
	"retort/internal/pipeline/gate/source"
	"retort/internal/run"
)

// sentTree is a syntax tree as the guest sends it: see tree.py.
type sentTree struct {
	Kinds []string
	Nodes string // numbers, width of them for each node
	Texts []string
}

// width is how many numbers a node has: kind, size, line, column, end line, end
// column, variable, text.
const width = 8

// treeOf is a program's syntax tree as the rules read it. The guest may have sent
// anything; Judge says whether it is a tree.
func treeOf(code string, sent *sentTree) (*rules.Tree, error) {
	if sent == nil {
		return nil, rules.ErrLarge
	}
	kinds := make([]rules.Kind, len(sent.Kinds))
	for i, name := range sent.Kinds {
		kinds[i], _ = rules.KindOf(name)
	}
	t := &rules.Tree{Language: rules.Python, Source: code, Nodes: make([]rules.Node, 0, len(sent.Nodes)/(3*width))}
	lines := lineStarts(code)
	rest := sent.Nodes
	for rest != "" && len(t.Nodes) < rules.MaxNodes {
		var n [width]int
		for k := range n {
			n[k], rest = number(rest)
		}
		node := rules.Node{Size: int32(n[1]), Bind: int32(n[6])}
		if n[0] < 0 || n[0] >= len(kinds) || n[7] < 0 || n[7] > len(sent.Texts) {
			return nil, rules.ErrTree
		}
		if node.Kind = kinds[n[0]]; n[7] > 0 {
			node.Text = sent.Texts[n[7]-1]
		}
		node.Start = int32(offset(lines, len(code), n[2], n[3]))
		node.End = max(node.Start, int32(offset(lines, len(code), n[4], n[5])))
		t.Nodes = append(t.Nodes, node)
	}
	return t, nil
}

// number reads a number of at most nine digits; -1 is none.
func number(s string) (int, string) {
	n, k := 0, 0
	for ; k < len(s) && s[k] != ' '; k++ {
		if s[k] < '0' || s[k] > '9' || k == 9 {
			return -1, ""
		}
		n = 10*n + int(s[k]-'0')
	}
	if k == 0 {
		return -1, ""
	}
	return n, strings.TrimPrefix(s[k:], " ")
}

// lineStarts are the offsets of lines as Python counts them.
func lineStarts(code string) []int {
	starts := []int{0}
	for i := range len(code) {
		if code[i] == '\n' || code[i] == '\r' {
			starts = append(starts, i+1)
		}
	}
	return starts
}

func offset(lines []int, size, line, column int) int {
	if line < 1 || line > len(lines) || column < 0 {
		return 0
	}
	return min(lines[line-1]+column, size)
}

// place is where a finding of the rules is in the program as it was written.
func (p *program) place(f rules.Finding) (line, column, width int) {
	before := p.code[:min(f.Start, len(p.code))]
	start := strings.LastIndexAny(before, "\n\r") + 1
	line = strings.Count(before, "\n") + strings.Count(before, "\r") + 1
	marked, _, _ := strings.Cut(p.code[len(before):min(max(f.End, f.Start), len(p.code))], "\n")
	return line + p.lines, utf8.RuneCountInString(before[start:]) + 1 + p.indent, utf8.RuneCountInString(marked)
}

// judgeTree has the rules judge the program, and refuses it if they deny it.
func (p *program) judgeTree(level rules.Level) *run.Error {
	t, err := treeOf(p.code, p.facts.Tree)
	if err == nil {
		p.report, err = rules.Judge(t)
	}
	if errors.Is(err, rules.ErrTree) {
		return failure(errFacts)
	}
	if err != nil {
		return run.Errorf(run.KindLimit, "gate.python", "%w", err).WithHint("build nested values and long expressions in several statements, and put data into a workspace file")
	}
	e, width := p.report.Refusal(level, p.place)
	if e != nil {
		e.Frame = source.Frame(p.written, e.Line, e.Column, width)
	}
	return e
}

// Judge says what the rules find in a program, whether or not it fits the tools.
func (c *Checker) Judge(ctx context.Context, code string) (rules.Report, *run.Error) {
	p, refusal := c.parse(ctx, code, run.NewToolset(nil))
	if refusal != nil {
		return rules.Report{}, refusal
	}
	refusal = p.judgeTree(rules.Permissive)
	return p.report, refusal
}
