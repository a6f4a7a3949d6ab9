//go:build !linux

package procgroup

import (
	"time"

	"retort/internal/core"
)

type (
	// GroupSet has no function on this system, because control groups exist only on Linux.
	GroupSet struct{}
	// ChildGroup has no function on this system, because control groups exist only on Linux.
	ChildGroup struct{}
)

// OpenGroups returns nil, because this system has no control groups.
func OpenGroups() *GroupSet { return nil }

// Close does nothing, because this system has no control groups.
func (*GroupSet) Close() {}

// DescribeLimits returns "", because no control group limits the child.
func (*ChildGroup) DescribeLimits() string { return "" }

// SetLimits does nothing, because this system has no control groups.
func (*ChildGroup) SetLimits(int64, core.Limits, int) {}

// IsOutOfMemory returns false, because this system has no control groups.
func (*ChildGroup) IsOutOfMemory() bool { return false }

// UsedBytes returns 0, because this system has no control groups.
func (*ChildGroup) UsedBytes() int64 { return 0 }

// PeakBytes returns 0, because this system has no control groups.
func (*ChildGroup) PeakBytes() int64 { return 0 }

// KillAll does nothing, because this system has no control groups.
func (*ChildGroup) KillAll(time.Duration) {}

// Remove does nothing, because this system has no control groups.
func (*ChildGroup) Remove() {}
