//go:build !unix

package skills

import "os"

// syncFolder does nothing where folders cannot be synced by themselves.
func syncFolder(*os.Root, string) error { return nil }
