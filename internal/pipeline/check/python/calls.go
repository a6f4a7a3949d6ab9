package python

import (
	"fmt"
	"strings"

	"retort/internal/core"
	"retort/internal/pipeline/bindings"
	"retort/internal/pipeline/check/source"
)

// checkedCall holds the state of checking one tool call.
type checkedCall struct {
	program *pythonProgram
	tool    *core.Tool
	name    string
	params  bindings.ToolParameters
	given   map[string]bool // by the schema's name
	open    bool            // more may be given than is plain to see
	found   []refusalFinding
}

// checkCall checks the arguments of a tool call against the tool's parameters.
func (p *pythonProgram) checkCall(t *core.Tool, c *callFact) []refusalFinding {
	k := &checkedCall{
		program: p, tool: t, name: t.Python, params: p.checker.toolParameters(t), given: map[string]bool{},
		open: c.Star || c.DoubleStar,
	}
	if s, ok := p.tools.FindServer(t.Server); ok {
		k.name = s.Python + "." + t.Python
	}
	if len(k.params.List) == 0 && k.params.Open {
		return nil
	}
	switch {
	case len(c.Args) == 1 && !c.Star && k.isWhole(c.Args[0]):
		k.checkDict(c.Args[0])
	case len(c.Args) == 1 && !c.Star && len(c.Keywords) == 0 && c.Args[0].Kind == "":
		return k.found // it may be all arguments as one dict
	default:
		k.checkPositional(c)
	}
	for _, argument := range c.Keywords {
		k.checkArgument(argument.Name, argument.sourcePlace, argument.Value)
	}
	if !k.open {
		k.reportMissing(c)
	}
	return k.found
}

func (k *checkedCall) addFinding(at sourcePlace, format string, args ...any) {
	k.found = append(k.found, refusalFinding{
		kind: core.KindType, message: fmt.Sprintf(format, args...), hint: k.program.toolSignature(k.tool),
		server: k.tool.Server, tool: k.tool.Name, sourcePlace: at,
	})
}

// isWhole reports whether a dict passed as the only positional argument is the tool's whole input, and not the value
// of its first parameter. The Python code in the sandbox that makes the call decides in the same way.
func (k *checkedCall) isWhole(a argumentFact) bool {
	if a.Kind != "dict" {
		return false
	}
	if len(k.params.List) == 0 || !k.params.List[0].Object {
		return true
	}
	for _, key := range a.Keys {
		if _, ok := k.byName(key.Name); !ok {
			return false
		}
	}
	return len(a.Keys) > 0 && !a.Open
}

func (k *checkedCall) checkDict(a argumentFact) {
	k.open = k.open || a.Open || len(a.Keys) == 0 && a.JSON == nil
	for _, key := range a.Keys {
		p, ok := k.byName(key.Name)
		if !ok {
			k.reportUnknown(key.Name, key.sourcePlace, func(p bindings.ToolParameter) string { return p.Name })
			continue
		}
		k.checkValue(p, key.Value)
	}
}

func (k *checkedCall) checkPositional(c *callFact) {
	params := k.params.List
	if len(c.Args) > len(params) {
		takes := fmt.Sprintf("%d positional arguments", len(params))
		switch len(params) {
		case 0:
			takes = "no arguments"
		case 1:
			takes = "1 positional argument"
		}
		k.addFinding(c.Args[len(params)].sourcePlace, "%s takes %s, but got %d", k.name, takes, len(c.Args))
	}
	if c.Star {
		return
	}
	for i, a := range c.Args[:min(len(c.Args), len(params))] {
		k.checkValue(params[i], a)
	}
}

// byName returns the parameter with this name in the schema.
func (k *checkedCall) byName(name string) (bindings.ToolParameter, bool) {
	for _, p := range k.params.List {
		if p.Name == name {
			return p, true
		}
	}
	return bindings.ToolParameter{}, false
}

// checkArgument checks a keyword argument. All spellings of its name are accepted.
func (k *checkedCall) checkArgument(name string, at sourcePlace, value argumentFact) {
	for _, p := range k.params.List {
		if p.Keyword != name && p.Name != name && p.Snake != name {
			continue
		}
		if k.given[p.Name] {
			k.addFinding(at, "%s got several values for %q", k.name, name)
			return
		}
		k.checkValue(p, value)
		return
	}
	k.reportUnknown(name, at, func(p bindings.ToolParameter) string { return p.Keyword })
}

func (k *checkedCall) reportUnknown(name string, at sourcePlace, spell func(bindings.ToolParameter) string) {
	if k.params.Open {
		return
	}
	meant := map[string]string{} // by how they are spelled
	var names []string
	for _, p := range k.params.List {
		names = append(names, spell(p))
		meant[spell(p)] = p.Name
	}
	message := fmt.Sprintf("%s has no argument %q", k.name, name)
	if near := core.NearestNames(name, names, 2); len(near) > 0 {
		message += ". Did you mean " + source.OrList(near) + "?"
		k.given[meant[near[0]]] = true // it is not missing as well
	}
	k.addFinding(at, "%s", message)
}

// checkValue checks the value of a parameter. A literal must have the parameter's type. None counts as if the
// argument were omitted.
func (k *checkedCall) checkValue(p bindings.ToolParameter, a argumentFact) {
	k.given[p.Name] = true
	switch {
	case a.Kind == "none" && (p.Null || !p.Required):
	case a.Kind == "none":
		k.addFinding(a.sourcePlace, "%s: expected %s, got None", p.Keyword, p.Type)
	case a.JSON != nil && !p.CanTake(a.JSON):
		k.addFinding(a.sourcePlace, "%s: expected %s, got %s", p.Keyword, p.Type, showLiteral(a))
	case a.JSON == nil && a.Kind != "" && !p.TakesKind(a.Kind):
		k.addFinding(a.sourcePlace, "%s: expected %s, got %s", p.Keyword, p.Type, a.Kind)
	}
}

// showLiteral returns the text by which an error message shows a literal.
func showLiteral(a argumentFact) string {
	const most = 40
	s := string(a.JSON)
	if len(s) > most {
		return a.Kind
	}
	switch s {
	case "true", "false":
		return strings.ToUpper(s[:1]) + s[1:]
	}
	return s
}

func (k *checkedCall) reportMissing(c *callFact) {
	var names []string
	for _, p := range k.params.List {
		if p.Required && !k.given[p.Name] {
			names = append(names, p.Keyword)
		}
	}
	if len(names) > 0 {
		k.addFinding(c.sourcePlace, "%s is called without %s", k.name, strings.Join(names, ", "))
	}
}
