//go:build cgo

package confine

// WantsProc returns true: with cgo, a confined process finds its own threads only through /proc.
const WantsProc = true
