//go:build !linux

package process

// scratchDir does nothing on this system: interpreters without full confinement exist only on Linux.
type scratchDir struct{ dir string }

func newScratch() (scratchDir, error) { return scratchDir{}, nil }

func (scratchDir) remove() {}
