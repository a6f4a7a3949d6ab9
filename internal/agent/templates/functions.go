package templates

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// templateFunc represents a function that templates can call.
type templateFunc struct {
	least, most int // minimum and maximum number of arguments
	call        func(args []any) (any, error)
}

// builtinFuncs returns all functions that templates can call.
func builtinFuncs() map[string]templateFunc {
	texts := func(n int, f func(s []string) string) templateFunc {
		return templateFunc{n, n, func(args []any) (any, error) {
			var s []string
			for _, a := range args {
				s = append(s, textOf(a))
			}
			return f(s), nil
		}}
	}
	return map[string]templateFunc{
		"and":    {1, 10, func(args []any) (any, error) { return firstOf(args, false), nil }},
		"or":     {1, 10, func(args []any) (any, error) { return firstOf(args, true), nil }},
		"not":    {1, 1, func(args []any) (any, error) { return !isTruthy(args[0]), nil }},
		"eq":     {2, 2, func(args []any) (any, error) { return reflect.DeepEqual(args[0], args[1]), nil }},
		"ne":     {2, 2, func(args []any) (any, error) { return !reflect.DeepEqual(args[0], args[1]), nil }},
		"lt":     {2, 2, func(args []any) (any, error) { return compareNumbers(args, func(a, b float64) bool { return a < b }) }},
		"gt":     {2, 2, func(args []any) (any, error) { return compareNumbers(args, func(a, b float64) bool { return a > b }) }},
		"len":    {1, 1, func(args []any) (any, error) { return lengthOf(args[0]) }},
		"join":   {2, 2, joinList},
		"json":   {1, 1, func(args []any) (any, error) { return jsonOf(args[0]) }},
		"indent": texts(2, func(s []string) string { return strings.ReplaceAll(s[1], "\n", "\n"+s[0]) }),
		"quote":  texts(1, func(s []string) string { return "> " + strings.ReplaceAll(strings.TrimSpace(s[0]), "\n", "\n> ") }),
		"trim":   texts(1, func(s []string) string { return strings.TrimSpace(s[0]) }),
		"line":   texts(1, func(s []string) string { return strings.Join(strings.Fields(s[0]), " ") }),
	}
}

// firstOf returns the first argument for which isTruthy returns wanted. If no argument does, it returns the last
// argument.
func firstOf(args []any, wanted bool) any {
	for _, a := range args {
		if isTruthy(a) == wanted {
			return a
		}
	}
	return args[len(args)-1]
}

func compareNumbers(args []any, how func(a, b float64) bool) (any, error) {
	a, ok := args[0].(float64)
	b, also := args[1].(float64)
	if !ok || !also {
		return nil, fmt.Errorf("%s and %s cannot be compared", kindOf(args[0]), kindOf(args[1]))
	}
	return how(a, b), nil
}

func lengthOf(v any) (any, error) {
	switch v := v.(type) {
	case nil:
		return 0.0, nil
	case string:
		return float64(len(v)), nil
	case []any:
		return float64(len(v)), nil
	case map[string]any:
		return float64(len(v)), nil
	}
	return nil, fmt.Errorf("%s has no length", kindOf(v))
}

func joinList(args []any) (any, error) {
	list, ok := args[1].([]any)
	if !ok && args[1] != nil {
		return nil, errors.New("join needs an array: .tools | join \", \"")
	}
	var all []string
	for _, v := range list {
		all = append(all, textOf(v))
	}
	return strings.Join(all, textOf(args[0])), nil
}

func jsonOf(v any) (any, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// isTruthy reports whether the template actions {{if}} and {{with}} treat v as true. They do so for every value that
// is not empty.
func isTruthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0
	case string:
		return v != ""
	case []any:
		return len(v) > 0
	case map[string]any:
		return len(v) > 0
	}
	return true
}

func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	text, err := jsonOf(v)
	if err != nil {
		return ""
	}
	s, _ := text.(string)
	return s
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "nothing"
	case bool:
		return "a yes or no"
	case float64:
		return "a number"
	case string:
		return "a text"
	case []any:
		return "an array"
	}
	return "an object"
}
