// Package cel evaluates conditions with the syntax and semantics of CEL, the Common Expression Language
// (https://cel.dev).
//
// It supports comparisons, arithmetic, boolean operators, the ternary operator, in, has, strings, lists, and the
// macros over lists and maps. Compile rejects everything else: unsigned integers, bytes, times, map literals, and
// calls of matches whose pattern is not a literal.
package cel

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
)

const (
	maxText  = 4096    // bytes of an expression
	maxNest  = 64      // levels of an expression
	maxSteps = 200_000 // of one evaluation; a step is an operation, an item or 64 bytes of text
)

// ConditionExpr holds a compiled condition. It is safe for concurrent use.
type ConditionExpr struct {
	root  evalNode
	names []string
}

// Error describes a syntax or type error in an expression, with its position.
type Error struct {
	At      int // byte offset
	Message string
	Hint    string // what to write instead; may be empty
}

func (e *Error) Error() string { return e.Message }

// Compile compiles a condition that may use the given variables. Its error is an *Error.
func Compile(text string, variables ...string) (*ConditionExpr, error) {
	if len(text) > maxText {
		return nil, &Error{Message: fmt.Sprintf("the condition is longer than %d bytes", maxText)}
	}
	tokens, err := lexTokens(text)
	if err != nil {
		return nil, err
	}
	p := &exprParser{tokens: tokens, variables: variables}
	root, err := p.parseCondition()
	if err != nil {
		return nil, err
	}
	slices.Sort(p.names)
	return &ConditionExpr{root: root.eval, names: slices.Compact(p.names)}, nil
}

// VariableNames returns the sorted names of all fields and keys that the expression reads.
func (e *ConditionExpr) VariableNames() []string { return e.names }

// IsTrue evaluates the expression and returns its boolean result. JSON values among the variables must come from
// DecodeJSON. It returns an error if the result is not a boolean, a field is missing or the evaluation takes too many
// steps.
func (e *ConditionExpr) IsTrue(variables map[string]any) (bool, error) {
	v, err := e.root(&evalMachine{variables: variables, steps: maxSteps})
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, fmt.Errorf("the value is %s, not true or false", typeName(v))
	}
	return b, nil
}

// evalNode evaluates a compiled part of an expression. The result is nil or a bool, int64, float64, string, []any or
// map[string]any.
type evalNode func(m *evalMachine) (any, error)

// evalMachine holds the state of one evaluation.
type evalMachine struct {
	variables map[string]any
	scope     *macroBinding
	steps     int
}

// macroBinding holds the current value of a macro's variable, which is visible only inside the macro.
type macroBinding struct {
	name  string
	value any
	outer *macroBinding
}

var errSteps = errors.New("the condition takes too many steps")

func (m *evalMachine) spendSteps(n int) error {
	if m.steps -= n; m.steps < 0 {
		return errSteps
	}
	return nil
}

// chargeTexts counts the cost of reading the texts towards the maximum number of steps of an evaluation. Each text
// costs one step, and one more for every 64 bytes.
func (m *evalMachine) chargeTexts(texts ...string) error {
	n := 0
	for _, s := range texts {
		n += 1 + len(s)/64
	}
	return m.spendSteps(n)
}

func (m *evalMachine) lookupName(name string) (any, error) {
	for b := m.scope; b != nil; b = b.outer {
		if b.name == name {
			return b.value, nil
		}
	}
	v, ok := m.variables[name]
	if !ok {
		return nil, fmt.Errorf("there is no %s", name)
	}
	return v, nil
}

// didYouMean returns a hint for an unknown name: the most similar known name or, if none is similar, all known names.
func didYouMean(name string, known []string) string {
	if near := core.NearestNames(name, known, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	return "valid names are " + strings.Join(known, ", ")
}
