package python

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"retort/internal/run"
)

// facts are what a guest says is in a program. The guest has read untrusted code:
// nothing of this is taken on trust, beyond that a lie may let a program pass,
// which then fails where it runs.
type facts struct {
	Error    *syntaxError
	Version  string   // of the interpreter: "3.11"
	Imports  []module // in the order of the text
	Uses     []use    // in the order of the text
	Names    []name   // that nothing binds and the environment does not have
	Computes bool     // it reads names that it computes
	Star     bool     // it imports everything from a module that is no server
	Asks     bool     // it asks, by catching NameError, whether names exist
	Tree     *sentTree
}

type syntaxError struct {
	Name, Message string
	place
}

// place is a position with the width of what stands there, in code points.
type place struct{ Line, Column, Width int }

// module is one imported module, or one name imported from it.
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

// use is a chain of names, as in github.list_issues. Its root is a name that
// nothing binds (Free), or what an import of servers or client binds: then the
// path begins with that.
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
	DoubleStar bool `json:"double_star"` // there is **kwargs
	place
}

type keyword struct {
	Name  string
	Value argument
	place
}

// argument is what is plain to see of a value.
type argument struct {
	Kind string          // str int float bool none list dict, or "" if unknown
	JSON json.RawMessage // of a literal
	Keys []keyword       // of a dict
	Open bool            // the dict has other keys
	place
}

// Bounds on facts.
const (
	maxFacts = 32 << 20
	maxItems = 5000
	maxText  = 2000 // bytes of one name or message
	maxPath  = 32
	maxArgs  = 1000
)

var errFacts = errors.New("what the interpreter says of the program makes no sense")

// decode reads facts of a program with this many lines.
func decode(raw json.RawMessage, lines int) (*facts, error) {
	if len(raw) > maxFacts {
		return nil, errFacts
	}
	f := &facts{}
	d := json.NewDecoder(bytes.NewReader(raw))
	if err := d.Decode(f); err != nil {
		return nil, errFacts
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errFacts
	}
	if len(f.Imports) > maxItems || len(f.Uses) > maxItems || len(f.Names) > maxItems || !f.valid(lines) {
		return nil, errFacts
	}
	return f, nil
}

func (f *facts) valid(lines int) bool {
	if f.Error != nil && !(short(f.Error.Name, f.Error.Message) && f.Error.valid(lines+1)) {
		return false
	}
	for _, i := range f.Imports {
		if !short(i.Module, i.Name) || !short(i.Near...) || len(i.Near) > maxPath || !i.place.valid(lines) {
			return false
		}
	}
	for _, n := range f.Names {
		if !short(n.Name) || n.Name == "" || !n.place.valid(lines) {
			return false
		}
	}
	for _, u := range f.Uses {
		if len(u.Path) == 0 || len(u.Path) > maxPath || !short(u.Path...) || !u.place.valid(lines) || u.Call != nil && !u.Call.valid(lines) {
			return false
		}
	}
	return true
}

func (p place) valid(lines int) bool {
	const wide = 1 << 24
	return p.Line >= 1 && p.Line <= lines && p.Column >= 1 && p.Column < wide && p.Width >= 0 && p.Width < wide
}

func (c *call) valid(lines int) bool {
	if len(c.Args) > maxArgs || len(c.Keywords) > maxArgs || !c.place.valid(lines) {
		return false
	}
	for _, a := range c.Args {
		if !a.valid(lines) {
			return false
		}
	}
	return validKeywords(c.Keywords, lines, true)
}

func validKeywords(list []keyword, lines int, deep bool) bool {
	for _, k := range list {
		if !short(k.Name) || !k.place.valid(lines) || deep && !k.Value.valid(lines) {
			return false
		}
	}
	return true
}

func (a argument) valid(lines int) bool {
	return short(a.Kind) && len(a.Keys) <= maxArgs && a.place.valid(lines) && validKeywords(a.Keys, lines, false)
}

func short(texts ...string) bool {
	for _, text := range texts {
		if len(text) > maxText {
			return false
		}
	}
	return true
}

// failure is the error for a program that could not be checked.
func failure(err error) *run.Error {
	var e *run.Error
	if errors.As(err, &e) {
		return e
	}
	return run.Errorf(run.KindInternal, "gate.python", "the program could not be parsed: %w", err)
}
