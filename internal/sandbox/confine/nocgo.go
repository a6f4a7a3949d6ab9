//go:build !cgo

package confine

// WantsProc says that a process that goes on behind its walls needs a /proc.
const WantsProc = false
