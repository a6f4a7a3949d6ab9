//go:build !linux

package vminit

import "errors"

// Main returns an error: machines have a Linux kernel.
func Main() error { return errors.New("a machine's first process is for Linux") }
