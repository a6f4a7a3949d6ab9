//go:build !linux

package process

// scratch does nothing on this system: interpreters without full confinement exist only on Linux.
type scratch struct{ dir string }

func newScratch() (scratch, error) { return scratch{}, nil }

func (scratch) remove() {}
