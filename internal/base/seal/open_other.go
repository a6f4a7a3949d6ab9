//go:build !unix

package seal

import (
	"io/fs"
	"os"
)

const nonBlocking = 0

// openFile opens a file whose kind was looked at just before.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// syncDir: the system makes names durable by itself.
func syncDir(*os.File) error { return nil }
