//go:build !linux

package process

import (
	"context"

	"retort/internal/run"
)

// The runtime in the child limits memory by itself here, and the deadline ends
// everything else.

type footing struct{}

func (*child) foresee(run.Limits, int) {}
func (*child) limit(run.Limits, int)   {}
func (*child) outgrew(run.Limits) bool { return false }
func (*child) before() int64           { return 0 }
func limitHelper(int, int64)           {}
func highWater(int) int64              { return 0 }

// measures says that wire.Serve has to tell when a program has computed for too long.
const measures = false

func (c *child) watch(run.Limits, int, context.CancelCauseFunc) (stop func()) { return func() {} }
