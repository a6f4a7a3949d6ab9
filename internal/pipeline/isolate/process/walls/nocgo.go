//go:build !cgo

package walls

// WantsProc says that a process that goes on behind its walls needs a /proc.
const WantsProc = false
