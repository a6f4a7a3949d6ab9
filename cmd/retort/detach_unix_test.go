//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

// detach leaves the terminal that the tests were started from, which would else be
// asked. A command that a script gives a terminal keeps it.
func detach() {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "call", "approvals"}, os.Args[1]) {
		_, _ = syscall.Setsid()
	}
}
