//go:build linux && !amd64

package vm

// kilohertz returns 0: machines have x86-64 processors.
func kilohertz() int64 { return 0 }
