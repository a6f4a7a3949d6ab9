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

// programFacts lists the imports, tool calls and unbound names of a program.
type programFacts struct {
	Imports  []importedModule // in the order of the text
	Uses     []nameChain      // in the order of the text
	Names    []usedName       // that nothing binds and the environment does not have
	Computes bool             // it reads names that it computes
	Star     bool             // it imports everything from a module that is no server
	Asks     bool             // it asks, by catching NameError, whether names exist

	taken func() []takenKey // keys read by a literal
}

type syntaxError struct {
	Name, Message string
	sourcePlace
}

// sourcePlace holds the position of a piece of text, and its width in code points.
type sourcePlace struct{ Line, Column, Width int }

// importedModule describes one imported module, or one name imported from it.
type importedModule struct {
	Module, Name string
	Known        bool // the interpreter has it
	Lacks        bool // it has no such name
	Near         []string
	Guarded      bool // the program catches its absence
	sourcePlace
}

type usedName struct {
	Name string
	sourcePlace
}

// nameChain describes a chain of names such as github.list_issues. If Free is set, the program does not bind the
// first name. Otherwise the first name is imported from the package servers or client, and Path begins with the full
// name of the import.
type nameChain struct {
	Path []string
	Free bool
	Call *callFact // nil if it is not called
	node nodeID
	sourcePlace
}

type callFact struct {
	Args       []argumentFact
	Star       bool // there is *args
	Keywords   []keywordFact
	DoubleStar bool // there is **kwargs
	node       nodeID
	first      nodeID // of the first argument; 0 for a call without arguments
	sourcePlace
}

type keywordFact struct {
	Name  string
	Value argumentFact
	sourcePlace
}

// argumentFact describes what the checker can tell about an argument's value without running the program.
type argumentFact struct {
	Kind string          // str bytes int float bool none list dict, or "" if unknown
	JSON json.RawMessage // of a literal
	Keys []keywordFact   // of a dict
	Open bool            // the dict has other keys
	sourcePlace
}

// guestFacts holds what the guest (the interpreter in the sandbox) reports on a program, except the syntax tree. A
// second report follows after the program is compiled; only its field Error is used. The reports are not trusted,
// because the guest has read untrusted code. The worst effect of a false report is that a program passes the check
// and fails when it runs.
type guestFacts struct {
	Error    *syntaxError
	Version  string // of the interpreter: "3.11"
	Builtins string // the names of its builtins, in words
	Own      string // the other names that programs find without binding them
	Unknown  []string
	Lacks    []missingName
	Large    bool // the program has too large a tree to be sent
}

// missingName describes a name that a module does not have, with similar names that it has.
type missingName struct {
	Module, Name string
	Near         []string
}

// Bounds on what the interpreter in the sandbox reports about a program, and on the number of findings of each kind.
const (
	maxTold  = 1 << 20 // bytes
	maxItems = 5000    // of each sort
	maxText  = 2000    // bytes of one name or message
	maxNear  = 32
)

var errFacts = errors.New("the interpreter's report on the program is invalid")

// errMuch is the error for a program with too many or too long names.
var errMuch = fmt.Errorf("it has too many names, or one of more than %d bytes", maxText)

// decodeFacts parses the report of the guest, which is the interpreter in the sandbox. lines is the number of lines
// in the program.
func decodeFacts(raw json.RawMessage, lines int) (*guestFacts, error) {
	t := &guestFacts{}
	if len(raw) <= maxTold && json.Unmarshal(raw, t) != nil {
		return nil, errFacts
	}
	if e := t.Error; len(raw) > maxTold || len(t.Unknown) > maxItems || len(t.Lacks) > maxItems || e != nil && !areShort(e.Name, e.Message) {
		return nil, errMuch
	}
	if e := t.Error; e != nil && !(1 <= e.Line && e.Line <= lines+1 && 1 <= e.Column && e.Column < 1<<24) {
		return nil, errFacts
	}
	for _, l := range t.Lacks {
		if len(l.Near) > maxNear {
			return nil, errFacts
		}
		if !areShort(l.Near...) {
			return nil, errMuch
		}
	}
	return t, nil
}

func areShort(texts ...string) bool {
	for _, text := range texts {
		if len(text) > maxText {
			return false
		}
	}
	return true
}

// hasShortNames reports whether all names are short enough for a message.
func (f *programFacts) hasShortNames() bool {
	for _, i := range f.Imports {
		if !areShort(i.Module, i.Name) {
			return false
		}
	}
	for _, n := range f.Names {
		if !areShort(n.Name) {
			return false
		}
	}
	for _, u := range f.Uses {
		if !areShort(u.Path...) {
			return false
		}
	}
	return true
}

// failureError converts an error of parsing to the error for the client: of kind limit if the program is too large,
// otherwise of kind internal.
func failureError(err error) *core.Error {
	var e *core.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, rules.ErrLarge), errors.Is(err, rules.ErrDeep):
		return core.Errorf(core.KindLimit, "gate.python", "%w", err).WithHint(
			"build nested values and long expressions in several statements, and put data into a workspace file",
		)
	case errors.Is(err, errMuch):
		return core.Errorf(core.KindLimit, "gate.python", "the program could not be checked: %w", err).WithHint("use fewer and shorter names")
	case errors.Is(err, rules.ErrTree):
		err = errFacts
	}
	return core.Errorf(core.KindInternal, "gate.python", "the program could not be parsed: %w", err)
}

// firstName returns the part of a dotted name before the first dot.
func firstName(dotted string) string {
	first, _, _ := strings.Cut(dotted, ".")
	return first
}

// isASCII reports whether text is ASCII. In such text, columns in bytes equal columns in code points.
func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
