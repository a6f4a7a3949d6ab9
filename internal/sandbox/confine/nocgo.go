//go:build !cgo

package confine

// WantsProc returns false: without cgo, a confined process does not need /proc.
const WantsProc = false
