//go:build !unix

package docker

import (
	"errors"
	"os"
)

// lockFile is not there on this system, where no engine is taken to be dead.
func lockFile(*os.File) error { return errors.ErrUnsupported }
