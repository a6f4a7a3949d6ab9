//go:build unix

package seal

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// nonBlocking is the open flag that keeps opening a named pipe from waiting for a process at its other end.
const nonBlocking = syscall.O_NONBLOCK

// openFile opens a file without blocking and without following a symbolic link.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	for {
		fd, err := syscall.Open(path, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW|syscall.O_CLOEXEC, uint32(perm.Perm()))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return nil, &fs.PathError{Op: "open", Path: path, Err: err}
		}
		// A regular file never waits, and one that is no longer non-blocking is not given to the poller.
		_ = syscall.SetNonblock(fd, false)
		return os.NewFile(uintptr(fd), path), nil
	}
}

// syncDir makes the entries of a directory durable. It returns no error if the file system cannot sync directories.
func syncDir(dir *os.File) error {
	err := dir.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil
	}
	return err
}
