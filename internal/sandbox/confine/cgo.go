//go:build cgo

package confine

// WantsProc reports that a process that continues inside the sandbox needs a /proc: with cgo, its threads can only be
// found there.
const WantsProc = true
