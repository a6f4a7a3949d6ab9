//go:build !linux

package procgroup

import (
	"time"

	"retort/internal/core"
)

// There are no control groups here.
type (
	// Groups are the engine's own control groups.
	Groups struct{}
	// Group is the group of one child.
	Group struct{}
)

// OpenGroups gives none.
func OpenGroups() *Groups { return nil }

// Close does nothing.
func (*Groups) Close() {}

// Words say nothing.
func (*Group) Words() string { return "" }

// Limit does nothing.
func (*Group) Limit(int64, core.Limits, int) {}

// Exhausted is never known.
func (*Group) Exhausted() bool { return false }

// Used is never known.
func (*Group) Used() int64 { return 0 }

// Peak is never known.
func (*Group) Peak() int64 { return 0 }

// End does nothing.
func (*Group) End(time.Duration) {}

// Remove does nothing.
func (*Group) Remove() {}
