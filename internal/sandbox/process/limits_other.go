//go:build !linux

package process

import (
	"context"

	"retort/internal/core"
)

// The runtime in the child limits memory by itself here, and the deadline ends
// everything else.

type baselineMemory struct{}

func (*guestChild) presetLimits(core.Limits, int)   {}
func (*guestChild) setLimits(core.Limits, int)      {}
func (*guestChild) exceededMemory(core.Limits) bool { return false }
func (*guestChild) residentBefore() int64           { return 0 }
func limitHelper(int, int64)                        {}
func highWater(int) int64                           { return 0 }

// measures is false, because on this system watchLimits does not measure the processor time of programs.
// wire.ServeProgram, which exchanges messages with the guest, measures it instead.
const measures = false

func (c *guestChild) watchLimits(core.Limits, int, context.CancelCauseFunc) (stop func()) {
	return func() {}
}
