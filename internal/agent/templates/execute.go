package templates

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template/parse"
)

// Limits for rendering one text.
const (
	maxOutput = 1 << 20 // maximum size of the text, in bytes
	maxSteps  = 100_000
)

// parseTemplate parses a template. It returns an error for syntax that this package does not support.
func parseTemplate(name, text string) (*parse.Tree, error) {
	names := map[string]any{}
	for f := range builtinFuncs() {
		names[f] = func() {}
	}
	trees, err := parse.Parse(name, text, "", "", names)
	if err != nil {
		return nil, err
	}
	t := trees[name]
	if t == nil {
		t = &parse.Tree{Name: name, ParseName: name, Root: &parse.ListNode{NodeType: parse.NodeList}}
	}
	if len(trees) > 1 {
		return nil, fmt.Errorf("%s: define and block are not supported", name)
	}
	return t, nil
}

// templateWriter executes one template.
type templateWriter struct {
	tree  *parse.Tree
	out   strings.Builder
	vars  []scopedVariable
	steps int
}

type scopedVariable struct {
	name  string
	value any
}

// renderFailure is the value with which a templateWriter panics to report an error. The error contains the position in
// the template.
type renderFailure struct{ err error }

// loopExit is the value with which the template actions break and continue panic. The loop recovers from the panic.
type loopExit struct{ again bool }

func executeTemplate(t *parse.Tree, data any) (text string, err error) {
	w := &templateWriter{tree: t, vars: []scopedVariable{{"$", data}}}
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(renderFailure)
			if !ok {
				panic(r)
			}
			err = f.err
		}
	}()
	w.writeList(data, t.Root)
	return w.out.String(), nil
}

// failAt stops the rendering with an error at a node of the template.
func (w *templateWriter) failAt(n parse.Node, format string, args ...any) {
	where, _ := w.tree.ErrorContext(n)
	panic(renderFailure{fmt.Errorf("%s: %s", where, fmt.Sprintf(format, args...))})
}

func (w *templateWriter) writeText(n parse.Node, text string) {
	if w.out.Len()+len(text) > maxOutput {
		w.failAt(n, "the text is longer than %d bytes", maxOutput)
	}
	w.out.WriteString(text)
}

func (w *templateWriter) writeList(dot any, l *parse.ListNode) {
	if l == nil {
		return
	}
	for _, n := range l.Nodes {
		w.countStep(n)
		w.writeNode(dot, n)
	}
}

func (w *templateWriter) countStep(n parse.Node) {
	if w.steps++; w.steps > maxSteps {
		w.failAt(n, "it takes too long")
	}
}

func (w *templateWriter) writeNode(dot any, n parse.Node) {
	switch n := n.(type) {
	case *parse.TextNode:
		w.writeText(n, string(n.Text))
	case *parse.CommentNode:
	case *parse.ActionNode:
		if v := w.evalPipe(dot, n.Pipe); len(n.Pipe.Decl) == 0 {
			w.writeText(n, textOf(v))
		}
	case *parse.IfNode:
		w.writeBranch(dot, &n.BranchNode, false)
	case *parse.WithNode:
		w.writeBranch(dot, &n.BranchNode, true)
	case *parse.RangeNode:
		w.writeLoop(dot, &n.BranchNode)
	case *parse.BreakNode:
		panic(loopExit{})
	case *parse.ContinueNode:
		panic(loopExit{again: true})
	default:
		w.failAt(n, "%s is not supported here", n)
	}
}

func (w *templateWriter) writeBranch(dot any, b *parse.BranchNode, with bool) {
	defer w.openScope()()
	v := w.evalPipe(dot, b.Pipe)
	switch {
	case !isTruthy(v):
		w.writeList(dot, b.ElseList)
	case with:
		w.writeList(v, b.List)
	default:
		w.writeList(dot, b.List)
	}
}

// openScope opens a scope for variables. The returned function closes it.
func (w *templateWriter) openScope() func() {
	n := len(w.vars)
	return func() { w.vars = w.vars[:n] }
}

func (w *templateWriter) writeLoop(dot any, b *parse.BranchNode) {
	defer w.openScope()()
	decl := b.Pipe.Decl
	keys, values := w.loopItems(b, w.evalCommands(dot, b.Pipe))
	if len(values) == 0 {
		w.writeList(dot, b.ElseList)
		return
	}
	for i, v := range values {
		w.countStep(b)
		end := w.openScope()
		switch len(decl) {
		case 1:
			w.vars = append(w.vars, scopedVariable{decl[0].Ident[0], v})
		case 2:
			w.vars = append(w.vars, scopedVariable{decl[0].Ident[0], keys[i]}, scopedVariable{decl[1].Ident[0], v})
		}
		on := w.runIteration(v, b.List)
		end()
		if !on {
			return
		}
	}
}

// runIteration runs one iteration of a loop. It returns false if the loop must end.
func (w *templateWriter) runIteration(v any, l *parse.ListNode) (on bool) {
	defer func() {
		if r := recover(); r != nil {
			j, ok := r.(loopExit)
			if !ok {
				panic(r)
			}
			on = j.again
		}
	}()
	w.writeList(v, l)
	return true
}

// loopItems returns the keys and values that a loop ranges over. The members of an object are sorted by name.
func (w *templateWriter) loopItems(n parse.Node, v any) (keys, values []any) {
	switch v := v.(type) {
	case nil:
	case []any:
		for i, one := range v {
			keys, values = append(keys, float64(i)), append(values, one)
		}
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			keys, values = append(keys, k), append(values, v[k])
		}
	default:
		w.failAt(n, "range needs an array or object, but this is %s", kindOf(v))
	}
	return keys, values
}

// evalPipe returns the value of a pipeline and assigns it to the pipeline's variables.
func (w *templateWriter) evalPipe(dot any, p *parse.PipeNode) any {
	v := w.evalCommands(dot, p)
	for _, d := range p.Decl {
		if p.IsAssign {
			w.assignVariable(d, v)
		} else {
			w.vars = append(w.vars, scopedVariable{d.Ident[0], v})
		}
	}
	return v
}

func (w *templateWriter) assignVariable(d *parse.VariableNode, v any) {
	for i := len(w.vars) - 1; i >= 0; i-- {
		if w.vars[i].name == d.Ident[0] {
			w.vars[i].value = v
			return
		}
	}
	w.failAt(d, "there is no variable %s", d.Ident[0])
}

func (w *templateWriter) evalCommands(dot any, p *parse.PipeNode) (v any) {
	for i, c := range p.Cmds {
		v = w.evalCommand(dot, c, v, i > 0)
	}
	return v
}

// evalCommand returns the value of one command. last is the value of the previous command.
func (w *templateWriter) evalCommand(dot any, c *parse.CommandNode, last any, piped bool) any {
	name, isFunction := c.Args[0].(*parse.IdentifierNode)
	if !isFunction {
		if len(c.Args) > 1 || piped {
			w.failAt(c, "%s is no function", c.Args[0])
		}
		return w.evalArgument(dot, c.Args[0])
	}
	var args []any
	for _, a := range c.Args[1:] {
		args = append(args, w.evalArgument(dot, a))
	}
	if piped {
		args = append(args, last)
	}
	f := builtinFuncs()[name.Ident]
	if len(args) < f.least || len(args) > f.most {
		w.failAt(c, "%s does not take %d arguments", name.Ident, len(args))
	}
	v, err := f.call(args)
	if err != nil {
		w.failAt(c, "%s: %v", name.Ident, err)
	}
	return v
}

func (w *templateWriter) evalArgument(dot any, n parse.Node) any {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.NilNode:
		return nil
	case *parse.FieldNode:
		return w.lookupField(n, dot, n.Ident)
	case *parse.ChainNode:
		return w.lookupField(n, w.evalArgument(dot, n.Node), n.Field)
	case *parse.VariableNode:
		return w.lookupField(n, w.lookupVariable(n), n.Ident[1:])
	case *parse.PipeNode:
		return w.evalCommands(dot, n)
	case *parse.StringNode:
		return n.Text
	case *parse.BoolNode:
		return n.True
	case *parse.NumberNode:
		if n.IsFloat {
			return n.Float64
		}
	case *parse.IdentifierNode:
		return w.evalCommand(dot, &parse.CommandNode{NodeType: parse.NodeCommand, Pos: n.Pos, Args: []parse.Node{n}}, nil, false)
	}
	w.failAt(n, "%s is not supported here", n)
	return nil
}

func (w *templateWriter) lookupVariable(n *parse.VariableNode) any {
	for i := len(w.vars) - 1; i >= 0; i-- {
		if w.vars[i].name == n.Ident[0] {
			return w.vars[i].value
		}
	}
	w.failAt(n, "there is no variable %s", n.Ident[0])
	return nil
}

// lookupField returns the value at a path of member names. It returns an error for a missing member, because the name
// is probably misspelled.
func (w *templateWriter) lookupField(n parse.Node, v any, path []string) any {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			w.failAt(n, "%s has no member %s: it is %s", n, name, kindOf(v))
		}
		if v, ok = object[name]; !ok {
			w.failAt(n, ".%s does not exist here; the existing names are .%s", name, strings.Join(slices.Sorted(maps.Keys(object)), ", ."))
		}
	}
	return v
}
