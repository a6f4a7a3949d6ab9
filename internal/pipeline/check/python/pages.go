package python

import (
	"slices"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
)

// pagedCall describes a call of pages: the tool that it reads, and the arguments for that tool.
type pagedCall struct {
	tool *core.Tool
	call *callFact // without the tool
}

// pagedCalls returns the calls of pages whose tool is known.
func (p *pythonProgram) pagedCalls() []pagedCall {
	tools := map[nodeID]*core.Tool{}
	for _, u := range p.facts.Uses {
		if t := p.toolOf(u); t != nil && u.Call == nil {
			tools[u.node] = t
		}
	}
	var found []pagedCall
	for _, u := range p.facts.Uses {
		if u.Call == nil || !p.isPages(u) {
			continue
		}
		if t := tools[u.Call.first]; t != nil && len(u.Call.Args) > 0 {
			c := *u.Call
			c.Args = c.Args[1:]
			found = append(found, pagedCall{t, &c})
		}
	}
	return found
}

// isPages reports whether a chain of names refers to Retort's own function pages.
func (p *pythonProgram) isPages(u nameChain) bool {
	if u.Free && len(u.Path) == 1 {
		return u.Path[0] == "pages" && p.starTool("pages") == nil
	}
	path := p.simplifyPath(u.Path)
	return slices.Equal(path, []string{"client", "pages"}) || slices.Equal(path, []string{"servers", "client", "pages"})
}

// learnedAnswers returns the calls of tools whose result types are inferred, and of pages of such tools. With each call
// comes the inferred schema of its value.
func (p *pythonProgram) learnedAnswers() map[nodeID]learnedAnswer {
	isLearned := func(t *core.Tool) bool { return t != nil && t.Learned != nil && len(t.OutputSchema) == 0 }
	calls := map[nodeID]learnedAnswer{}
	for _, u := range p.facts.Uses {
		if t := p.toolOf(u); isLearned(t) && u.Call != nil {
			calls[u.Call.node] = learnedAnswer{t, answerOf(t.Learned.Schema)}
		}
	}
	for _, c := range p.pagedCalls() {
		path, ok := bindings.ItemsPath(c.tool)
		if !ok || !isLearned(c.tool) {
			continue
		}
		at := answerOf(c.tool.Learned.Schema)
		for _, name := range path {
			at = at.stepInto(name)
		}
		calls[c.call.node] = learnedAnswer{c.tool, at}
	}
	return calls
}

// learnedAnswer holds the inferred schema of the value of a call.
type learnedAnswer struct {
	tool   *core.Tool
	schema answerSchema
}
