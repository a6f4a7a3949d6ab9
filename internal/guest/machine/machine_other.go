//go:build !linux

package machine

import "os"

// Main is for Linux: machines have no other kernel.
func Main() { os.Exit(1) }
