package rules

import (
	"regexp"
	"sync"
)

// compileLazily returns a function that compiles a regular expression on first use. Compiling at the start would slow
// down every process, and every sandbox is a process of this binary.
func compileLazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
