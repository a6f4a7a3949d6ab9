package engine

import (
	"errors"
	"slices"
)

// closeStack closes what a constructor has opened, in reverse order. The zero value is an empty stack.
type closeStack struct{ closers []func() error }

// push adds a function that Close calls before all functions added earlier.
func (s *closeStack) push(closer func() error) { s.closers = append(s.closers, closer) }

// Close calls all functions, even if some fail, and returns their errors joined.
func (s *closeStack) Close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// closeOnError closes everything on the stack if *err is not nil. A constructor defers it, so that it leaves nothing
// open when it fails half way.
func (s *closeStack) closeOnError(err *error) {
	if *err != nil {
		_ = s.Close()
	}
}
