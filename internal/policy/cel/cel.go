// Package cel evaluates conditions in the syntax and meaning of CEL, the Common
// Expression Language (https://cel.dev): comparisons, arithmetic, boolean operators,
// the ternary, in, has, strings, lists, and the macros over lists and maps. What it
// leaves out is refused by Compile: unsigned integers, bytes, times, literal maps,
// patterns of matches that are not written out.
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

// Expr represents a compiled expression. It is safe for concurrent use.
type Expr struct {
	root  evalNode
	names []string
}

// Error describes what is wrong with an expression, and where.
type Error struct {
	At      int // byte offset
	Message string
	Hint    string // what to write instead; may be empty
}

func (e *Error) Error() string { return e.Message }

// Compile reads a condition over variables. Its error is an *Error.
func Compile(text string, variables ...string) (*Expr, error) {
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
	return &Expr{root: root.eval, names: slices.Compact(p.names)}, nil
}

// Names returns the fields and keys that the expression asks for, sorted.
func (e *Expr) Names() []string { return e.names }

// True evaluates the expression. Variables have values that Value makes. What
// is not true or false, misses a field or takes too long is an error.
func (e *Expr) True(variables map[string]any) (bool, error) {
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

// evalNode represents one operation. Values are nil, bool, int64, float64, string, []any and map[string]any.
type evalNode func(m *evalMachine) (any, error)

// evalMachine represents one evaluation.
type evalMachine struct {
	variables map[string]any
	scope     *macroBinding
	steps     int
}

// macroBinding represents the variable of a macro, inside of which it is known.
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

// chargeTexts charges for a text that is looked at.
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

// didYouMean returns the hint for a name that is not known.
func didYouMean(name string, known []string) string {
	if near := core.NearestNames(name, known, 1); len(near) > 0 {
		return "did you mean " + near[0] + "?"
	}
	return "known are " + strings.Join(known, ", ")
}
