//go:build !linux

package process

import "retort/internal/core"

// The runtime in the child limits memory by itself here, and the deadline ends
// everything else. A guestChild is no warmpool.ProgramWatcher here, so the wire measures the computing time.

type baselineMemory struct{}

func (*guestChild) presetLimits(core.Limits, int)   {}
func (*guestChild) setLimits(core.Limits, int)      {}
func (*guestChild) exceededMemory(core.Limits) bool { return false }
func (*guestChild) residentBefore() int64           { return 0 }
func limitHelper(int, int64)                        {}
func highWater(int) int64                           { return 0 }
