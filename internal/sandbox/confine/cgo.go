//go:build cgo

package confine

// WantsProc says that a process that goes on behind its walls needs a /proc: with
// cgo, its threads can be found nowhere else.
const WantsProc = true
