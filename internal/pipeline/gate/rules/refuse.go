package rules

import (
	"fmt"
	"strings"

	"retort/internal/run"
)

// Place is where a finding is in the program as it was written: line and column
// from 1 on, and its width on its first line, in code points.
type Place func(f Finding) (line, column, width int)

// Refusal is the error for a program that the level denies, nil if it does not.
// The gravest finding is told in full, some more in a line each.
func (r Report) Refusal(l Level, at Place) (e *run.Error, width int) {
	worst := -1
	denied := 0
	for k, f := range r.Findings {
		if l.On(f.Severity) != Deny {
			continue
		}
		if denied++; worst < 0 || f.Severity > r.Findings[worst].Severity {
			worst = k
		}
	}
	if worst < 0 {
		return nil, 0
	}
	first := r.Findings[worst]
	rule, _ := RuleOf(first.Rule)
	e = &run.Error{Kind: run.KindPolicy, Op: "gate.rules", Message: first.message(), Hint: rule.Hint}
	e.Line, e.Column, width = at(first)
	e.Message += r.others(l, worst, at)
	if denied > 1+maxOthers {
		e.Message += fmt.Sprintf("\nand %d more", denied-1-maxOthers)
	}
	return e, width
}

const (
	maxOthers   = 4 // findings that are told beside the first, and warnings
	maxWarnings = 4
)

func (r Report) others(l Level, but int, at Place) string {
	var b strings.Builder
	said := 0
	for k, f := range r.Findings {
		if k == but || l.On(f.Severity) != Deny || said == maxOthers {
			continue
		}
		said++
		line, _, _ := at(f)
		fmt.Fprintf(&b, "\nalso: line %d: %s", line, f.message())
	}
	return b.String()
}

// message says what a finding is, with its rule.
func (f Finding) message() string {
	rule, _ := RuleOf(f.Rule)
	if f.Detail == "" {
		return fmt.Sprintf("%s (rule %s)", rule.Message, f.Rule)
	}
	return fmt.Sprintf("%s: %s (rule %s)", rule.Message, f.Detail, f.Rule)
}

// Warnings are what the level says of a program that it does not deny, a line each.
func (r Report) Warnings(l Level, at Place) []string {
	var list []string
	said := map[string]bool{}
	for _, f := range r.Findings {
		if l.On(f.Severity) == Ignore || said[f.Rule] || len(list) == maxWarnings {
			continue
		}
		said[f.Rule] = true
		line, _, _ := at(f)
		list = append(list, fmt.Sprintf("line %d: %s", line, f.message()))
	}
	return list
}
