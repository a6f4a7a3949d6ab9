package rules

import (
	"fmt"
	"strings"

	"retort/internal/core"
)

// PlaceFunc returns the place of a finding in the program as the user wrote it: the line and column where it begins,
// counted from 1, and its width. The width is the number of code points of the finding on that line.
type PlaceFunc func(f RuleFinding) (line, column, width int)

// RefusalError returns the error for a program that is refused at strictness level l because of its findings. It
// returns nil for a program that is not refused. The error describes the most severe finding in full and some others
// in one line each. The result width is the number of code points that the most severe finding covers on its line.
func (r RuleReport) RefusalError(l StrictnessLevel, at PlaceFunc) (e *core.Error, width int) {
	worst := -1
	for k, f := range r.Findings {
		if l.findingAction(f) == Deny && (worst < 0 || f.Severity > r.Findings[worst].Severity) {
			worst = k
		}
	}
	if worst < 0 {
		return nil, 0
	}
	first := r.Findings[worst]
	rule, _ := RuleOf(first.Rule)
	e = &core.Error{Kind: core.KindPolicy, Op: "gate.rules", Message: first.messageText(), Hint: rule.Hint}
	e.Line, e.Column, width = at(first)
	e.Message += r.otherFindings(l, first.Rule, at)
	return e, width
}

const (
	maxOthers   = 4 // findings that are described in addition to the first, and warnings
	maxWarnings = 4
)

// otherFindings describes further findings because of which the program is refused: at most one for each rule, and
// none for the rule that the error already describes.
func (r RuleReport) otherFindings(l StrictnessLevel, rule string, at PlaceFunc) string {
	var b strings.Builder
	said := map[string]bool{rule: true}
	for _, f := range r.Findings {
		if said[f.Rule] || l.findingAction(f) != Deny {
			continue
		}
		if said[f.Rule] = true; len(said) > 1+maxOthers {
			fmt.Fprintf(&b, "\nand more")
			break
		}
		line, _, _ := at(f)
		fmt.Fprintf(&b, "\nalso: line %d: %s", line, f.messageText())
	}
	return b.String()
}

// messageText describes a finding and names its rule.
func (f RuleFinding) messageText() string {
	rule, _ := RuleOf(f.Rule)
	if f.Detail == "" {
		return fmt.Sprintf("%s (rule %s)", rule.Message, f.Rule)
	}
	return fmt.Sprintf("%s: %s (rule %s)", rule.Message, f.Detail, f.Rule)
}

// ListWarnings returns the warnings about a program that is not refused at strictness level l, one line each.
func (r RuleReport) ListWarnings(l StrictnessLevel, at PlaceFunc) []string {
	var list []string
	said := map[string]bool{}
	for _, f := range r.Findings {
		if l.findingAction(f) == Ignore || said[f.Rule] || len(list) == maxWarnings {
			continue
		}
		said[f.Rule] = true
		line, _, _ := at(f)
		list = append(list, fmt.Sprintf("line %d: %s", line, f.messageText()))
	}
	return list
}
