//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

// detach moves this process out of the terminal that the tests were started from. Otherwise commands would ask their
// questions at that terminal. It does not affect a terminal that a script provides to a command.
func detach() {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "call", "approvals"}, os.Args[1]) {
		_, _ = syscall.Setsid()
	}
}
