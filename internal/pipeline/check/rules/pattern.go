package rules

import (
	"regexp"
	"sync"
)

// lazily compiles an expression when it is first used: else every start of the
// program would pay for it, and every sandbox is one.
func lazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
