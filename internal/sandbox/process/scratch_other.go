//go:build !linux

package process

// scratchDir does nothing on this system. It is needed only where interpreters can run without full confinement,
// which is Linux.
type scratchDir struct{ dir string }

func newScratch() (scratchDir, error) { return scratchDir{}, nil }

func (scratchDir) remove() {}
