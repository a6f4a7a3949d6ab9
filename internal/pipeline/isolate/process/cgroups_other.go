//go:build !linux

package process

import "retort/internal/run"

// There are no control groups here.
type (
	groups struct{}
	group  struct{}
)

func openGroups() *groups                   { return nil }
func (*groups) close()                      {}
func (*groups) add() *group                 { return nil }
func (*group) words() string                { return "" }
func (*group) limit(int64, run.Limits, int) {}
func (*group) exhausted() bool              { return false }
func (*group) remove()                      {}
