//go:build unix

package main

import (
	"os"
	"slices"
	"syscall"
)

// detach moves this process out of the terminal from which the tests were started. Otherwise commands would ask their
// questions at that terminal. Scripts can still give a terminal to a command.
func detach() {
	if len(os.Args) > 1 && slices.Contains([]string{"run", "call", "approvals"}, os.Args[1]) {
		_, _ = syscall.Setsid()
	}
}
