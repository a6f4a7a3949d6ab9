//go:build !linux

package vminit

import "errors"

// Main returns an error: machines have a Linux kernel.
func Main() error { return errors.New("the first process of a virtual machine needs Linux") }
