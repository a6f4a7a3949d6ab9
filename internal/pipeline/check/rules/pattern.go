package rules

import (
	"regexp"
	"sync"
)

// compileLazily returns a function that compiles an expression on first use. Otherwise every start of the program would pay
// for it, and every sandbox starts the program.
func compileLazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
