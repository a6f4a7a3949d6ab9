package source

import (
	"cmp"
	"fmt"
	"strings"

	"retort/internal/core"
)

// UnknownField represents a field that a program reads from a tool's answer although no answer has had it so far.
type UnknownField struct {
	Tool *core.Tool // with the learned answer schema
	Name string     // of the field
	Has  []string   // fields of the value
	Near string     // the field that is probably meant, if known
	List bool       // the value is a list
	Type string     // of the value
	// Loose means that most fields of the object are optional. Tried means that the program also handles a missing
	// field.
	Loose, Tried bool
}

// Numbers of answers from which on a field that none of them has is reported.
const (
	fewAnswers  = 3
	someAnswers = 5
)

// IsTelling reports whether the past answers are enough evidence that the field does not exist. A misspelt name needs
// less evidence. More evidence is needed if recent answers had new fields, if the answers differ much, or if the
// program handles a missing field.
func (u UnknownField) IsTelling() bool {
	n := u.Tool.Learned.Observations
	switch misspelt := core.CorrectSpelling(u.Name, u.Has) != "" || u.Near != "" && len(u.Has) == 0; {
	case misspelt && u.Loose:
		return n >= someAnswers
	case misspelt:
		return n >= fewAnswers
	}
	return !u.Tried && !u.Loose && n >= someAnswers && 2*u.Tool.Learned.Steady >= n
}

// WarningText describes the problem with the field. tool is the tool's name in programs.
func (u UnknownField) WarningText(tool string) string {
	text := fmt.Sprintf("%q was never seen in %d answers of %s", u.Name, u.Tool.Learned.Observations, tool)
	near := cmp.Or(core.CorrectSpelling(u.Name, u.Has), u.Near)
	switch {
	case near != "":
		return text + fmt.Sprintf(". Did you mean '%s'?", near)
	case u.List:
		return text + ": the value is a list there"
	case len(u.Has) == 0:
		return text + ": the value is of type " + u.Type
	}
	const shown = 6
	return text + "; there are " + strings.Join(u.Has[:min(shown, len(u.Has))], ", ")
}
