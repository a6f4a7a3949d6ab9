package admin

import (
	"retort/internal/engine"
	"retort/internal/pipeline/approval"
)

// ListApprovals returns the programs and calls that wait for a person's approval. It asks all engines of this
// configuration that run on this machine.
func ListApprovals(c engine.Config) ([]approval.FoundApproval, error) {
	s, err := openStores(c)
	if err != nil {
		return nil, err
	}
	return approval.FindWaiting(s.DataDir().Approvals())
}
