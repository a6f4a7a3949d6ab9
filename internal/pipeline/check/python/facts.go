package python

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"retort/internal/core"
	"retort/internal/pipeline/check/rules"
)

// facts lists the calls and names of a program.
type facts struct {
	Imports  []module // in the order of the text
	Uses     []use    // in the order of the text
	Names    []name   // that nothing binds and the environment does not have
	Computes bool     // it reads names that it computes
	Star     bool     // it imports everything from a module that is no server
	Asks     bool     // it asks, by catching NameError, whether names exist

	taken func() []taken // keys read by a literal
}

type syntaxError struct {
	Name, Message string
	place
}

// place locates a piece of text and its width, in code points.
type place struct{ Line, Column, Width int }

// module describes one imported module, or one name imported from it.
type module struct {
	Module, Name string
	Known        bool // the interpreter has it
	Lacks        bool // it has no such name
	Near         []string
	Guarded      bool // the program catches its absence
	place
}

type name struct {
	Name string
	place
}

// use describes a chain of names, as in github.list_issues. Its root is an unbound name (Free), or a name bound by an
// import of servers or client, in which case the path begins with the imported path.
type use struct {
	Path []string
	Free bool
	Call *call // nil if it is not called
	place
}

type call struct {
	Args       []argument
	Star       bool // there is *args
	Keywords   []keyword
	DoubleStar bool // there is **kwargs
	node       nodeID
	place
}

type keyword struct {
	Name  string
	Value argument
	place
}

// argument holds what is known of a value without running the program.
type argument struct {
	Kind string          // str bytes int float bool none list dict, or "" if unknown
	JSON json.RawMessage // of a literal
	Keys []keyword       // of a dict
	Open bool            // the dict has other keys
	place
}

// told holds the guest's report on a program, except its tree. After the guest has compiled the program, only the
// error counts. The guest has read untrusted code, so its report is not trusted: a false report can at most let a
// program pass that then fails at run time.
type told struct {
	Error    *syntaxError
	Version  string // of the interpreter: "3.11"
	Builtins string // the names of its builtins, in words
	Own      string // the other names that programs find without binding them
	Unknown  []string
	Lacks    []lack
	Large    bool // the program has too large a tree to be sent
}

// lack describes a name that a module does not have, and its replacement.
type lack struct {
	Module, Name string
	Near         []string
}

// Bounds on the guest's report and on the findings.
const (
	maxTold  = 1 << 20 // bytes
	maxItems = 5000    // of each sort
	maxText  = 2000    // bytes of one name or message
	maxNear  = 32
)

var errFacts = errors.New("the interpreter's report on the program is invalid")

// errMuch reports a program with too many or too long names.
var errMuch = fmt.Errorf("it has too many names, or one of more than %d bytes", maxText)

// decode parses a guest's report on a program with this many lines.
func decode(raw json.RawMessage, lines int) (*told, error) {
	t := &told{}
	if len(raw) <= maxTold && json.Unmarshal(raw, t) != nil {
		return nil, errFacts
	}
	if e := t.Error; len(raw) > maxTold || len(t.Unknown) > maxItems || len(t.Lacks) > maxItems || e != nil && !short(e.Name, e.Message) {
		return nil, errMuch
	}
	if e := t.Error; e != nil && !(1 <= e.Line && e.Line <= lines+1 && 1 <= e.Column && e.Column < 1<<24) {
		return nil, errFacts
	}
	for _, l := range t.Lacks {
		if len(l.Near) > maxNear {
			return nil, errFacts
		}
		if !short(l.Near...) {
			return nil, errMuch
		}
	}
	return t, nil
}

func short(texts ...string) bool {
	for _, text := range texts {
		if len(text) > maxText {
			return false
		}
	}
	return true
}

// short reports whether all names are short enough for a message.
func (f *facts) short() bool {
	for _, i := range f.Imports {
		if !short(i.Module, i.Name) {
			return false
		}
	}
	for _, n := range f.Names {
		if !short(n.Name) {
			return false
		}
	}
	for _, u := range f.Uses {
		if !short(u.Path...) {
			return false
		}
	}
	return true
}

// failure returns the error for a program that could not be checked.
func failure(err error) *core.Error {
	var e *core.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, rules.ErrLarge), errors.Is(err, rules.ErrDeep):
		return core.Errorf(core.KindLimit, "gate.python", "%w", err).WithHint("build nested values and long expressions in several statements, and put data into a workspace file")
	case errors.Is(err, errMuch):
		return core.Errorf(core.KindLimit, "gate.python", "the program could not be checked: %w", err).WithHint("use fewer and shorter names")
	case errors.Is(err, rules.ErrTree):
		err = errFacts
	}
	return core.Errorf(core.KindInternal, "gate.python", "the program could not be parsed: %w", err)
}

// head returns the first name of a dotted one.
func head(dotted string) string {
	first, _, _ := strings.Cut(dotted, ".")
	return first
}

// isASCII reports whether text is ASCII, so that its columns are the same in bytes and in code points.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
