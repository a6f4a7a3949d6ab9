//go:build unix

package sqlstore

import (
	"errors"
	"syscall"
)

// wouldBlock reports whether a lock could not be acquired because another process holds it.
func wouldBlock(err error) bool { return errors.Is(err, syscall.EWOULDBLOCK) }

func isReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }
