package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"retort/internal/core"
)

// Problem describes one error in a configuration file.
type Problem struct {
	Position
	Message string
	Hint    string // what to write instead; may be ""
}

func (p Problem) String() string {
	s := p.Position.String() + ": " + p.Message
	if p.Hint != "" {
		s += "; " + p.Hint
	}
	return s
}

// Problems lists all errors that Load found, sorted by file and position. Load returns them wrapped in a *core.Error;
// errors.As finds them there.
type Problems []Problem

// Error returns one line for each problem.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// sortedError returns the problems as an error, sorted by file and position, or nil if no problem was found.
func (ps Problems) sortedError() error {
	if len(ps) == 0 {
		return nil
	}
	sorted := slices.Clone(ps)
	var files []string
	for _, p := range ps {
		if !slices.Contains(files, p.File) {
			files = append(files, p.File)
		}
	}
	slices.SortStableFunc(sorted, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(slices.Index(files, a.File), slices.Index(files, b.File)),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &core.Error{Kind: core.KindInvalidArguments, Op: "config.load", Message: sorted.Error(), Err: sorted}
}

func (ps *Problems) addProblem(at Position, hint, format string, args ...any) {
	*ps = append(*ps, Problem{Position: at, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// addSyntaxError adds the error that a parser returned.
func (ps *Problems) addSyntaxError(file string, err error) {
	var e *syntaxError
	if errors.As(err, &e) {
		ps.addProblem(Position{file, e.line, e.column}, "", "%s", e.message)
	}
}
