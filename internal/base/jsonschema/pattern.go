package jsonschema

import (
	"regexp"
	"regexp/syntax"
)

// maxPatterns bounds the total size of the compiled patterns of a schema, in instructions.
const maxPatterns = 200_000

// pattern is a compiled regular expression. re is nil if Go's package regexp does not support the expression.
type pattern struct {
	source string
	re     *regexp.Regexp
	size   int // in instructions, about
}

// newPattern compiles a pattern and returns the remaining budget of instructions.
func newPattern(source string, budget int) (*pattern, int) {
	p := &pattern{source: source}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return p, budget
	}
	p.size = instructions(tree)
	if budget -= 20 + p.size; budget < 0 {
		return p, 0
	}
	p.re, _ = regexp.Compile(source)
	return p, budget
}

func instructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += instructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// match reports whether s matches the pattern. It counts steps, because the time grows with the length of s and the
// size of the pattern.
func (p *pattern) match(e *evaluation, s string) bool {
	if p.re == nil {
		return true
	}
	return !e.spendSteps(1+len(s)*p.size/32) || p.re.MatchString(s)
}
