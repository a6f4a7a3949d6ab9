package cel

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

func overloadError(what string, values ...any) error {
	types := make([]string, len(values))
	for i, v := range values {
		types[i] = typeName(v)
	}
	return fmt.Errorf("%s is not for %s", what, strings.Join(types, " and "))
}

func typeName(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "double"
	case string:
		return "string"
	case []any:
		return "list"
	}
	return "map"
}

func constantNode(v any) evalNode { return func(*evalMachine) (any, error) { return v, nil } }

func variableNode(name string) evalNode {
	return func(m *evalMachine) (any, error) { return m.lookupName(name) }
}

// evalBoth evaluates both operands of an operator.
func evalBoth(m *evalMachine, a, b evalNode) (x, y any, err error) {
	if err = m.spendSteps(1); err != nil {
		return nil, nil, err
	}
	if x, err = a(m); err != nil {
		return nil, nil, err
	}
	y, err = b(m)
	return x, y, err
}

func conditionalNode(test, yes, no evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		v, err := test(m)
		if err != nil {
			return nil, err
		}
		switch v {
		case true:
			return yes(m)
		case false:
			return no(m)
		}
		return nil, overloadError("?:", v)
	}
}

// logicNode returns a node for && or ||. If one operand decides the result, an error in the other operand is ignored.
// Only the error that the evaluation took too many steps is never ignored.
func logicNode(sign string, a, b evalNode) evalNode {
	decides := sign == "||"
	return func(m *evalMachine) (any, error) {
		x, err := a(m)
		if err == nil && x == decides {
			return decides, nil
		}
		if errors.Is(err, errSteps) {
			return nil, err
		}
		y, other := b(m)
		switch {
		case errors.Is(other, errSteps):
			return nil, other
		case other == nil && y == decides:
			return decides, nil
		case err != nil || other != nil:
			return nil, cmp.Or(err, other)
		case x == !decides && y == !decides:
			return !decides, nil
		}
		return nil, overloadError(sign, x, y)
	}
}

func negateNode(sign string, a evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		v, err := a(m)
		if err != nil {
			return nil, err
		}
		switch x := v.(type) {
		case bool:
			if sign == "!" {
				return !x, nil
			}
		case int64:
			if sign == "-" && x != math.MinInt64 {
				return -x, nil
			}
		case float64:
			if sign == "-" {
				return -x, nil
			}
		}
		return nil, overloadError(sign, v)
	}
}

func relationNode(sign string, a, b evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		x, y, err := evalBoth(m, a, b)
		if err != nil {
			return nil, err
		}
		switch sign {
		case "==", "!=":
			same, err := equalValues(m, x, y)
			return same == (sign == "=="), err
		case "in":
			return containsValue(m, x, y)
		}
		c, ok, err := compareValues(m, sign, x, y)
		if err != nil || !ok {
			return false, err
		}
		return sign[0] == '<' && c < 0 || sign[0] == '>' && c > 0 || len(sign) == 2 && c == 0, nil
	}
}

// equalValues compares values of any types. Values of different types are unequal, except that numbers of different
// types are compared by value.
func equalValues(m *evalMachine, x, y any) (bool, error) {
	if err := m.spendSteps(1); err != nil {
		return false, err
	}
	switch a := x.(type) {
	case int64, float64:
		if i, ok := x.(int64); ok {
			if j, ok := y.(int64); ok {
				return i == j, nil
			}
		}
		f, _ := asFloat(x)
		g, ok := asFloat(y)
		return ok && f == g, nil
	case string:
		b, ok := y.(string)
		return ok && a == b, m.chargeTexts(a)
	case []any:
		b, ok := y.([]any)
		if !ok || len(a) != len(b) {
			return false, nil
		}
		for i := range a {
			if same, err := equalValues(m, a[i], b[i]); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	case map[string]any:
		b, ok := y.(map[string]any)
		return ok && len(a) == len(b) && sameEntries(m, a, b), m.spendSteps(0)
	}
	return x == y && !isNested(y), nil
}

func isNested(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

func sameEntries(m *evalMachine, a, b map[string]any) bool {
	for key, v := range a {
		w, ok := b[key]
		if !ok {
			return false
		}
		if same, err := equalValues(m, v, w); err != nil || !same {
			return false
		}
	}
	return true
}

func asFloat(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case float64:
		return x, true
	}
	return 0, false
}

// compareValues orders two numbers, strings or booleans. ok is false if one of them is NaN, which has no order.
func compareValues(m *evalMachine, sign string, x, y any) (order int, ok bool, err error) {
	switch a := x.(type) {
	case string:
		if b, ok := y.(string); ok {
			return strings.Compare(a, b), true, m.chargeTexts(a)
		}
	case bool:
		if b, ok := y.(bool); ok {
			rank := map[bool]int{true: 1}
			return rank[a] - rank[b], true, nil
		}
	case int64:
		if b, ok := y.(int64); ok {
			return cmp.Compare(a, b), true, nil
		}
	}
	f, ok := asFloat(x)
	g, also := asFloat(y)
	if !ok || !also {
		return 0, false, overloadError(sign, x, y)
	}
	return cmp.Compare(f, g), !math.IsNaN(f) && !math.IsNaN(g), nil
}

func containsValue(m *evalMachine, x, y any) (any, error) {
	switch in := y.(type) {
	case []any:
		for _, item := range in {
			if same, err := equalValues(m, x, item); err != nil || same {
				return same, err
			}
		}
		return false, nil
	case map[string]any:
		key, ok := x.(string)
		if ok {
			_, ok = in[key]
		}
		return ok, nil
	}
	return nil, overloadError("in", x, y)
}

func arithmeticNode(sign string, a, b evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		x, y, err := evalBoth(m, a, b)
		if err != nil {
			return nil, err
		}
		switch v := x.(type) {
		case int64:
			if w, ok := y.(int64); ok {
				return computeIntegers(sign, v, w)
			}
		case float64:
			if w, ok := y.(float64); ok && sign != "%" {
				return map[string]float64{"+": v + w, "-": v - w, "*": v * w, "/": v / w}[sign], nil
			}
		case string:
			if w, ok := y.(string); ok && sign == "+" {
				return v + w, m.chargeTexts(v, w)
			}
		case []any:
			if w, ok := y.([]any); ok && sign == "+" {
				return slices.Concat(v, w), m.spendSteps(len(v) + len(w))
			}
		}
		return nil, overloadError(sign, x, y)
	}
}

var errOverflow = errors.New("an integer is too large for 64 bits")

func computeIntegers(sign string, a, b int64) (any, error) {
	switch sign {
	case "+":
		if c := a + b; c > a == (b > 0) {
			return c, nil
		}
	case "-":
		if c := a - b; c < a == (b > 0) {
			return c, nil
		}
	case "*":
		if a == 0 || b == 0 {
			return int64(0), nil
		}
		if c := a * b; c/b == a && (a != -1 || b != math.MinInt64) && (b != -1 || a != math.MinInt64) {
			return c, nil
		}
	default:
		switch {
		case b == 0:
			return nil, errors.New("division by zero")
		case a == math.MinInt64 && b == -1:
			return nil, errOverflow
		case sign == "/":
			return a / b, nil
		}
		return a % b, nil
	}
	return nil, errOverflow
}

// fieldsOf evaluates an operand that must be a map, and returns the fields of the map. If the operand is not a map,
// the error contains the argument what, which names the operation that needs a map.
func fieldsOf(m *evalMachine, operand evalNode, what string) (map[string]any, error) {
	v, err := operand(m)
	if err != nil {
		return nil, err
	}
	in, ok := v.(map[string]any)
	if !ok {
		return nil, overloadError(what, v)
	}
	return in, nil
}

func selectField(operand evalNode, field string) evalNode {
	return func(m *evalMachine) (any, error) {
		in, err := fieldsOf(m, operand, "."+field)
		if err != nil {
			return nil, err
		}
		found, ok := in[field]
		if !ok {
			return nil, fmt.Errorf("there is no %s", field)
		}
		return found, m.spendSteps(1)
	}
}

// hasField returns a node for the macro has, which tests whether a map has a field. For a value that is not a map,
// the node returns an error, as the CEL specification requires. The Go implementation cel-go returns false instead.
func hasField(operand evalNode, field string) evalNode {
	return func(m *evalMachine) (any, error) {
		in, err := fieldsOf(m, operand, "has")
		if err != nil {
			return nil, err
		}
		_, ok := in[field]
		return ok, m.spendSteps(1)
	}
}

func indexNode(operand, key evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		v, k, err := evalBoth(m, operand, key)
		if err != nil {
			return nil, err
		}
		switch in := v.(type) {
		case map[string]any:
			if name, ok := k.(string); ok {
				if found, ok := in[name]; ok {
					return found, nil
				}
			}
			return nil, errors.New("there is no such key")
		case []any:
			f, ok := asFloat(k)
			if !ok || f != math.Trunc(f) {
				return nil, overloadError("[]", v, k)
			}
			if f < 0 || f >= float64(len(in)) {
				return nil, errors.New("the index is out of range")
			}
			return in[int(f)], nil
		}
		return nil, overloadError("[]", v, k)
	}
}

func makeList(items []exprPart) evalNode {
	return func(m *evalMachine) (any, error) {
		list := make([]any, len(items))
		for i := range items {
			v, err := items[i].eval(m)
			if err != nil {
				return nil, err
			}
			list[i] = v
		}
		return list, m.spendSteps(1 + len(list))
	}
}

func evalText(m *evalMachine, what string, a evalNode) (string, error) {
	v, err := a(m)
	if err != nil {
		return "", err
	}
	s, ok := v.(string)
	if !ok {
		return "", overloadError(what, v)
	}
	return s, m.chargeTexts(s)
}

func textTest(name string, a, b evalNode) evalNode {
	test := map[string]func(s, part string) bool{
		"startsWith": strings.HasPrefix, "endsWith": strings.HasSuffix, "contains": strings.Contains,
	}[name]
	return func(m *evalMachine) (any, error) {
		s, err := evalText(m, name, a)
		if err != nil {
			return nil, err
		}
		part, err := evalText(m, name, b)
		if err != nil {
			return nil, err
		}
		return test(s, part), nil
	}
}

func unaryCall(name string, a evalNode) evalNode {
	f := map[string]func(any) (any, error){"size": sizeOf, "int": toInt, "double": toDouble, "string": toText}[name]
	return func(m *evalMachine) (any, error) {
		v, err := a(m)
		if err != nil {
			return nil, err
		}
		if s, ok := v.(string); ok {
			if err := m.chargeTexts(s); err != nil {
				return nil, err
			}
		}
		return f(v)
	}
}

func sizeOf(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return int64(utf8.RuneCountInString(x)), nil
	case []any:
		return int64(len(x)), nil
	case map[string]any:
		return int64(len(x)), nil
	}
	return nil, overloadError("size", v)
}

func toInt(v any) (any, error) {
	switch x := v.(type) {
	case int64:
		return x, nil
	case float64:
		if x > math.MinInt64 && x < math.MaxInt64 {
			return int64(x), nil
		}
		return nil, errOverflow
	case string:
		return strconv.ParseInt(x, 10, 64)
	}
	return nil, overloadError("int", v)
}

func toDouble(v any) (any, error) {
	if s, ok := v.(string); ok {
		return strconv.ParseFloat(s, 64)
	}
	if f, ok := asFloat(v); ok {
		return f, nil
	}
	return nil, overloadError("double", v)
}

func toText(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return x, nil
	case bool:
		return strconv.FormatBool(x), nil
	case int64:
		return strconv.FormatInt(x, 10), nil
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64), nil
	}
	return nil, overloadError("string", v)
}

// macroIteration evaluates a macro over the items of a list or the keys of a map.
type macroIteration struct {
	items    evalNode
	variable string
	body     evalNode
}

// eachItem binds the macro's variable to each item in turn and calls visit, until visit returns false or an error.
func (i macroIteration) eachItem(m *evalMachine, visit func(item any) (more bool, err error)) error {
	v, err := i.items(m)
	if err != nil {
		return err
	}
	list, ok := v.([]any)
	if in, isMap := v.(map[string]any); isMap {
		ok = true
		for _, key := range slices.Sorted(maps.Keys(in)) {
			list = append(list, key)
		}
	}
	if !ok {
		return overloadError("a macro", v)
	}
	outer := m.scope
	defer func() { m.scope = outer }()
	for _, item := range list {
		if err := m.spendSteps(1); err != nil {
			return err
		}
		m.scope = &macroBinding{i.variable, item, outer}
		if more, err := visit(item); err != nil || !more {
			return err
		}
	}
	return nil
}

func (i macroIteration) testItem(m *evalMachine) (bool, error) {
	v, err := i.body(m)
	if err != nil {
		return false, err
	}
	b, ok := v.(bool)
	if !ok {
		return false, overloadError("a macro's test", v)
	}
	return b, nil
}

// quantifierNode returns a node for all or exists. If one item decides the result, errors in other items are ignored.
func (i macroIteration) quantifierNode(all bool) evalNode {
	return func(m *evalMachine) (any, error) {
		result := all
		var failed error
		err := i.eachItem(m, func(any) (bool, error) {
			holds, err := i.testItem(m)
			switch {
			case errors.Is(err, errSteps):
				return false, err
			case err != nil:
				failed = err
			case holds != all:
				result, failed = !all, nil
				return false, nil
			}
			return true, nil
		})
		if err = cmp.Or(err, failed); err != nil {
			return nil, err
		}
		return result, nil
	}
}

func (i macroIteration) existsOne(m *evalMachine) (any, error) {
	count := 0
	err := i.eachItem(m, func(any) (bool, error) {
		holds, err := i.testItem(m)
		if holds {
			count++
		}
		return true, err
	})
	return count == 1, err
}

// mapNode returns a node for the macro filter or map. The node returns a list with one element for each item that
// meets the condition test. The element is the result of the expression value or, if value is nil, the item itself.
func (i macroIteration) mapNode(test, value evalNode) evalNode {
	return func(m *evalMachine) (any, error) {
		made := []any{}
		err := i.eachItem(m, func(item any) (bool, error) {
			if test != nil {
				if holds, err := (macroIteration{body: test}).testItem(m); err != nil || !holds {
					return true, err
				}
			}
			if value != nil {
				var err error
				if item, err = value(m); err != nil {
					return false, err
				}
			}
			made = append(made, item)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		return made, nil
	}
}
