package jobs

import "cmp"

// turns says who is next. A principal that has many tasks delays another one by the task
// whose end is awaited, and no more: among principals it goes round, and one that came over
// the network leaves a place to others. Priority counts among the tasks of one principal.
type turns struct {
	slots   int
	running map[string]int // of each principal
	total   int
	served  map[string]uint64 // the count of turns at the last one of each principal
	count   uint64
}

func newTurns(slots int) turns {
	return turns{slots: slots, running: map[string]int{}, served: map[string]uint64{}}
}

// share returns how many places a principal may have. Who sits at the machine may have all.
func (t *turns) share(principal string) int {
	if principal == "" {
		return t.slots
	}
	return max(1, t.slots-1)
}

// next is who begins, of those that wait; nil if there is no place for any.
func (t *turns) next(waiting []*jobEntry) *jobEntry {
	if t.total >= t.slots {
		return nil
	}
	var best *jobEntry
	for _, e := range waiting {
		if t.running[e.Principal] < t.share(e.Principal) && (best == nil || t.before(e, best)) {
			best = e
		}
	}
	return best
}

func (t *turns) before(a, b *jobEntry) bool {
	if a.Principal != b.Principal {
		order := cmp.Or(cmp.Compare(t.running[a.Principal], t.running[b.Principal]), cmp.Compare(t.served[a.Principal], t.served[b.Principal]))
		if order != 0 {
			return order < 0
		}
		return a.Submitted.Before(b.Submitted)
	}
	return ahead(a, b)
}

// ahead reports whether of two tasks of one principal a is sooner.
func ahead(a, b *jobEntry) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID)) < 0
}

// take gives a principal a place.
func (t *turns) take(principal string) {
	t.count++
	t.served[principal] = t.count
	t.running[principal]++
	t.total++
}

// give takes a place back.
func (t *turns) give(principal string) {
	t.total--
	if t.running[principal]--; t.running[principal] == 0 {
		delete(t.running, principal)
	}
}

// trim forgets when principals had their turns that wait for nothing.
func (t *turns) trim(waits map[string]int) {
	for principal := range t.served {
		if waits[principal] == 0 && t.running[principal] == 0 && len(t.served) > maxRemembered {
			delete(t.served, principal)
		}
	}
}

// maxRemembered bounds the principals of which the last turn is known.
const maxRemembered = 1024
