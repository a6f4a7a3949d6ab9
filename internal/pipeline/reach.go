package pipeline

import (
	"sync"

	"retort/internal/egress"
	"retort/internal/policy"
)

// networkReach determines which addresses the current policy allows a program to reach. It is safe for concurrent
// use.
type networkReach struct {
	whole *egress.Network
	view  *policy.PrincipalView

	mu  sync.Mutex
	by  *policy.Policy // that now was made from
	now *egress.Network
}

// currentNetwork returns the network that the current policy allows. It returns the same Network each time until the
// policy changes. If the policy's rules are invalid, the Network allows no address.
func (r *networkReach) currentNetwork() *egress.Network {
	r.mu.Lock()
	defer r.mu.Unlock()
	if p := r.view.InForce(); r.now == nil || p != r.by {
		r.by, r.now = p, narrowedNetwork(r.whole, r.view)
	}
	return r.now
}

func narrowedNetwork(whole *egress.Network, view *policy.PrincipalView) *egress.Network {
	if whole == nil {
		return nil
	}
	n, err := NarrowNetwork(whole, view)
	if err != nil {
		n, _ = whole.WithScopes(egress.AccessScope{Allow: []string{}}) // it has nothing that could be wrong
	}
	return n
}

// NarrowNetwork returns a Network that allows only the addresses that both whole and the policy levels of a principal
// allow. Its errors have kind invalid_arguments.
func NarrowNetwork(whole *egress.Network, view *policy.PrincipalView) (*egress.Network, error) {
	var scopes []egress.AccessScope
	for _, h := range view.ListHostRules() {
		scopes = append(scopes, egress.AccessScope(h))
	}
	return whole.WithScopes(scopes...)
}
