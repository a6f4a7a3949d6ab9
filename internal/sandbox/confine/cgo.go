//go:build cgo

package confine

// WantsProc is true because with cgo a confined process finds its own threads only through /proc.
const WantsProc = true
