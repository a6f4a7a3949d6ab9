package rules

import (
	"regexp"
	"sync"
)

// compileLazily returns a function that compiles a regular expression on first use. Compiling at program start would
// slow down every process, including the sandboxes, which run the same binary.
func compileLazily(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
