//go:build !cgo

package confine

// WantsProc is false because without cgo a confined process does not need /proc.
const WantsProc = false
