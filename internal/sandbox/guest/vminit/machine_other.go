//go:build !linux

package vminit

import "errors"

// Main is for Linux: machines have no other kernel.
func Main() error { return errors.New("a machine's first process is for Linux") }
