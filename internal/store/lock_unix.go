//go:build unix

package store

import (
	"errors"
	"syscall"
)

// wouldBlock reports whether a lock was not had because another process has it.
func wouldBlock(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
