//go:build !cgo

package confine

// WantsProc reports whether a process that continues inside the sandbox needs a /proc.
const WantsProc = false
