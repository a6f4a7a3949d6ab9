//go:build !linux

package process

import (
	"context"

	"retort/internal/core"
)

// The runtime in the child limits memory by itself here, and the deadline ends
// everything else.

type footing struct{}

func (*child) foresee(core.Limits, int) {}
func (*child) limit(core.Limits, int)   {}
func (*child) outgrew(core.Limits) bool { return false }
func (*child) before() int64            { return 0 }
func limitHelper(int, int64)            {}
func highWater(int) int64               { return 0 }

// measures reports that watch does not measure processor time, so that wire.Serve must.
const measures = false

func (c *child) watch(core.Limits, int, context.CancelCauseFunc) (stop func()) { return func() {} }
