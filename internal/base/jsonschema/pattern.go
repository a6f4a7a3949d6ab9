package jsonschema

import (
	"regexp"
	"regexp/syntax"
)

// maxPatterns bounds the total size of a schema's compiled patterns, in instructions of the regular expression
// program.
const maxPatterns = 200_000

// compiledPattern represents a compiled regular expression. re is nil if Go's package regexp does not support the
// expression.
type compiledPattern struct {
	source string
	re     *regexp.Regexp
	size   int // approximate size in instructions of the regular expression program
}

// newPattern compiles a regular expression. budget is the number of instructions that the patterns of the schema may
// still use. newPattern also returns the remaining budget for further patterns.
func newPattern(source string, budget int) (*compiledPattern, int) {
	p := &compiledPattern{source: source}
	tree, err := syntax.Parse(source, syntax.Perl)
	if err != nil {
		return p, budget
	}
	p.size = countInstructions(tree)
	if budget -= 20 + p.size; budget < 0 {
		return p, 0
	}
	p.re, _ = regexp.Compile(source)
	return p, budget
}

func countInstructions(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)/2
	for _, sub := range re.Sub {
		n += countInstructions(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return n
}

// matchString reports whether s matches the pattern. It counts steps, because its time grows with the length of s and
// the size of the pattern.
func (p *compiledPattern) matchString(e *evaluator, s string) bool {
	if p.re == nil {
		return true
	}
	return !e.spendSteps(1+len(s)*p.size/32) || p.re.MatchString(s)
}
