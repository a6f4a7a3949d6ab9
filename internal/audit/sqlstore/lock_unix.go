//go:build unix

package sqlstore

import (
	"errors"
	"syscall"
)

// wouldBlock reports whether another process holds the lock.
func wouldBlock(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
