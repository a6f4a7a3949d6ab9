//go:build !linux

package process

import (
	"context"

	"retort/internal/run"
)

// The runtime in the child limits memory by itself here, and the deadline ends
// everything else.

func (*kind) limit(int, run.Limits) {}
func limitHelper(int, int64)        {}
func highWater(int) int64           { return 0 }

func (c *child) watch(run.Limits, context.CancelCauseFunc) (stop func()) { return func() {} }

func allowance(l run.Limits) int64 { return l.Memory }

func hasRoom() bool { return true }
