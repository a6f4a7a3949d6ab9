//go:build !linux

package process

// scratch is a stub: interpreters without full confinement exist only on Linux.
type scratch struct{ dir string }

func newScratch() (scratch, error) { return scratch{}, nil }

func (scratch) remove() {}
