//go:build !linux

package procgroup

import (
	"time"

	"retort/internal/core"
)

// There are no control groups here.
type (
	// GroupSet does nothing on this system: control groups exist only on Linux.
	GroupSet struct{}
	// ChildGroup does nothing on this system: control groups exist only on Linux.
	ChildGroup struct{}
)

// OpenGroups returns nil: this system has no control groups.
func OpenGroups() *GroupSet { return nil }

// Close does nothing.
func (*GroupSet) Close() {}

// DescribeLimits returns "".
func (*ChildGroup) DescribeLimits() string { return "" }

// SetLimits does nothing.
func (*ChildGroup) SetLimits(int64, core.Limits, int) {}

// IsOutOfMemory returns false.
func (*ChildGroup) IsOutOfMemory() bool { return false }

// UsedBytes returns 0.
func (*ChildGroup) UsedBytes() int64 { return 0 }

// PeakBytes returns 0.
func (*ChildGroup) PeakBytes() int64 { return 0 }

// KillAll does nothing.
func (*ChildGroup) KillAll(time.Duration) {}

// Remove does nothing.
func (*ChildGroup) Remove() {}
