//go:build !linux

package vminit

import "errors"

// Main returns an error, because a machine's first process runs only on Linux.
func Main() error { return errors.New("the first process of a virtual machine needs Linux") }
