//go:build !linux

package process

// scratchDir does nothing on this system, because only on Linux interpreters can run without full confinement.
type scratchDir struct{ dir string }

func newScratch() (scratchDir, error) { return scratchDir{}, nil }

func (scratchDir) remove() {}
