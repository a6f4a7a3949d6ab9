//go:build !unix

package procgroup

import "os"

// IsAbandoned returns false, because on this system no engine is considered dead.
func IsAbandoned(*os.File) bool { return false }
