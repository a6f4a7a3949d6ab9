package tsc

import (
	"regexp"
	"slices"
	"strings"

	"github.com/microsoft/typescript-go/internal/ast"
	"github.com/microsoft/typescript-go/internal/checker"
)

// isWidened reports whether the error arises only because the value's static type is wider than the required one. The
// value itself may still fit.
func (d *describer) isWidened(f *ast.Diagnostic, n *ast.Node, target *Target) bool {
	switch f.Code() {
	case 2362, 2363: // an operand of arithmetic
		return d.mayBeNumber(n)
	case 2339, 2551: // a member of some types of a union
		args := f.MessageArgs()
		return len(args) > 1 && isPrimitives(args[1])
	}
	for next := f; next != nil; next = explanation(next) {
		if args := next.MessageArgs(); len(args) > 1 && mayFit(args[0], d.spelledOut(args[1], target)) {
			return true
		}
	}
	return false
}

// explanation returns the diagnostic that follows d in a chain of messages and gives the reason for d. It returns nil
// if none is found.
func explanation(d *ast.Diagnostic) *ast.Diagnostic {
	if chain := d.MessageChain(); len(chain) > 0 {
		return chain[0]
	}
	return nil
}

func (d *describer) mayBeNumber(n *ast.Node) bool {
	t := d.types.GetTypeAtLocation(n)
	return t != nil && t.Flags()&checker.TypeFlagsUnion != 0 && slices.ContainsFunc(t.Types(), func(t *checker.Type) bool {
		return t.Flags()&checker.TypeFlagsNumberLike != 0
	})
}

// isPrimitives reports whether a type is a union of primitive types only.
func isPrimitives(s string) bool {
	parts := alternatives(s)
	return len(parts) > 1 && !slices.ContainsFunc(parts, func(p string) bool {
		return !slices.Contains([]string{"string", "number", "boolean", "null", "undefined"}, p)
	})
}

// mayFit reports whether a value of one type (the argument from) could also be of another type (the argument to). It
// compares the types as text. It returns true in two cases: both types are unions with a common alternative, or the
// first type allows any string or number and the second has a literal string or number.
func mayFit(from, to string) bool {
	allowed := alternatives(to)
	given := alternatives(from)
	return slices.ContainsFunc(given, func(g string) bool {
		switch g {
		case "null", "undefined":
			return false
		case "string":
			return slices.ContainsFunc(allowed, isString) || len(given) > 1 && slices.Contains(allowed, g)
		case "number":
			return slices.ContainsFunc(allowed, isNumber) || len(given) > 1 && slices.Contains(allowed, g)
		}
		return len(given) > 1 && slices.Contains(allowed, g)
	})
}

// alternatives returns the member types of a union. s is the text of the union, or of an array whose items have that
// union as their type.
func alternatives(s string) []string {
	s = strings.TrimSuffix(s, "[]")
	if strings.HasPrefix(s, "(") && strings.HasSuffix(s, ")") {
		s = s[1 : len(s)-1]
	}
	if strings.ContainsAny(s, "{(<") {
		return []string{s}
	}
	return strings.Split(s, " | ")
}

func isString(s string) bool { return strings.HasPrefix(s, `"`) }
func isNumber(s string) bool { return s != "" && (s[0] >= '0' && s[0] <= '9' || s[0] == '-') }

var plainName = regexp.MustCompile(`^([A-Za-z_$][\w$]*)(\[\])?$`)

// spelledOut returns the type behind the alias s, if the file that declares target defines that alias. Otherwise it
// returns s.
func (d *describer) spelledOut(s string, target *Target) string {
	m := plainName.FindStringSubmatch(s)
	if target == nil || m == nil {
		return s
	}
	_, rest, found := strings.Cut(d.files[target.File], "type "+m[1]+" = ")
	if !found {
		return s
	}
	declared, _, _ := strings.Cut(rest, ";")
	return strings.TrimSpace(declared)
}
