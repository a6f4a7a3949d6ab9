//go:build !linux

package procgroup

import (
	"time"

	"retort/internal/core"
)

// There are no control groups here.
type (
	// Groups does nothing on this system: control groups exist only on Linux.
	Groups struct{}
	// Group does nothing on this system: control groups exist only on Linux.
	Group struct{}
)

// OpenGroups returns nil.
func OpenGroups() *Groups { return nil }

// Close does nothing.
func (*Groups) Close() {}

// Words returns "".
func (*Group) Words() string { return "" }

// Limit does nothing.
func (*Group) Limit(int64, core.Limits, int) {}

// Exhausted returns false.
func (*Group) Exhausted() bool { return false }

// Used returns 0.
func (*Group) Used() int64 { return 0 }

// Peak returns 0.
func (*Group) Peak() int64 { return 0 }

// End does nothing.
func (*Group) End(time.Duration) {}

// Remove does nothing.
func (*Group) Remove() {}
