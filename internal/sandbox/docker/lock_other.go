//go:build !unix

package docker

import (
	"errors"
	"os"
)

// lockFile returns an error: on this system no engine is taken to be dead.
func lockFile(*os.File) error { return errors.ErrUnsupported }
