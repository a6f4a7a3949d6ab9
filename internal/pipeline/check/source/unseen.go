package source

import (
	"cmp"
	"fmt"
	"strings"

	"retort/internal/core"
)

// Unseen is a field that a program takes from what a tool answers, and that no answer had
// so far.
type Unseen struct {
	Tool *core.Tool // with what was learned
	Name string     // of the field
	Has  []string   // fields of the value
	Near string     // what is meant, if that is known
	List bool       // the value is a list
	Type string     // of the value
	// Loose says that most fields may be missing, Tried that the program is written for a
	// value without the field, too.
	Loose, Tried bool
}

// How many answers there must be before one that lacks a field tells anything.
const (
	fewAnswers  = 3
	someAnswers = 5
)

// Tells weighs what answers without a field say: of a name that is misspelt much, of
// others less. The next answer may well have it if others lately brought something new, if
// they differ much, or if the program itself does not count on it.
func (u Unseen) Tells() bool {
	n := u.Tool.Learned.Observations
	switch misspelt := core.Misspelt(u.Name, u.Has) != "" || u.Near != "" && len(u.Has) == 0; {
	case misspelt && u.Loose:
		return n >= someAnswers
	case misspelt:
		return n >= fewAnswers
	}
	return !u.Tried && !u.Loose && n >= someAnswers && 2*u.Tool.Learned.Steady >= n
}

// Words say what is wrong with the field, of a tool by the name that programs write.
func (u Unseen) Words(tool string) string {
	text := fmt.Sprintf("%q was never seen in %d answers of %s", u.Name, u.Tool.Learned.Observations, tool)
	near := cmp.Or(core.Misspelt(u.Name, u.Has), u.Near)
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
