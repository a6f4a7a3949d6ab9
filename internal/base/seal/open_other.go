//go:build !unix

package seal

import (
	"io/fs"
	"os"
)

const nonBlocking = 0

// openFile opens a file. The caller has just checked that it is a regular file.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// syncDir does nothing, because this system makes directory entries durable by itself.
func syncDir(*os.File) error { return nil }
