package source

import (
	"cmp"
	"fmt"
	"strings"

	"retort/internal/core"
)

// UnknownField describes a field that a program reads from a tool's result although no earlier result had it.
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

// The number of earlier results that must lack a field before a warning about its use is given.
const (
	fewAnswers  = 3
	someAnswers = 5
)

// IsTelling reports whether the earlier results are enough evidence that the field does not exist. For a name that is
// probably misspelt, a few results are enough; if most fields of the object are optional, some more are needed. Any
// other name needs as many results, and the latest half of them must have brought no new fields. It is never reported
// if the program handles a missing field or most fields of the object are optional.
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

// WarningText returns the warning about the field. tool is the name by which programs call the tool.
func (u UnknownField) WarningText(tool string) string {
	text := fmt.Sprintf("%q never occurred in %d results of %s", u.Name, u.Tool.Learned.Observations, tool)
	near := cmp.Or(core.CorrectSpelling(u.Name, u.Has), u.Near)
	switch {
	case near != "":
		return text + fmt.Sprintf(". Did you mean '%s'?", near)
	case u.List:
		return text + ": the value at that place is a list"
	case len(u.Has) == 0:
		return text + ": the value has the type " + u.Type
	}
	const shown = 6
	return text + "; there are " + strings.Join(u.Has[:min(shown, len(u.Has))], ", ")
}
