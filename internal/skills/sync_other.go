//go:build !unix

package skills

import "os"

// syncFolder does nothing on systems that cannot sync a folder.
func syncFolder(*os.Root, string) error { return nil }
