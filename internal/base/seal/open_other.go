//go:build !unix

package seal

import (
	"io/fs"
	"os"
)

const nonBlocking = 0

// openFile opens a file that the caller has just found to be regular.
func openFile(path string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, flag, perm)
}

// syncDir does nothing: this system makes names durable by itself.
func syncDir(*os.File) error { return nil }
