//go:build linux && !amd64

package vm

// counterKHz returns 0: machines have x86-64 processors.
func counterKHz() int64 { return 0 }
