package jobs

import "cmp"

// turnScheduler decides which waiting job starts next. A free slot goes to the principal with the fewest running jobs.
// If several principals have equally few, it goes to the one that was served longest ago. Therefore many jobs of one
// principal delay another principal by at most one job. Priorities only order the jobs of the same principal. A
// principal on the network never gets all slots.
type turnScheduler struct {
	slots   int
	running map[string]int // number of running jobs by principal
	total   int
	served  map[string]uint64 // value of count when the principal last got a slot, by principal
	count   uint64
}

func newTurns(slots int) turnScheduler {
	return turnScheduler{slots: slots, running: map[string]int{}, served: map[string]uint64{}}
}

// slotsFor returns the maximum number of slots that a principal may use at the same time. The user at this machine,
// whose principal is "", may use all slots. Every other principal must leave one slot free, unless there is only one.
func (t *turnScheduler) slotsFor(principal string) int {
	if principal == "" {
		return t.slots
	}
	return max(1, t.slots-1)
}

// nextEntry returns the waiting job that starts next. It returns nil if no slot is free, or if no waiting job may use
// one.
func (t *turnScheduler) nextEntry(waiting []*jobEntry) *jobEntry {
	if t.total >= t.slots {
		return nil
	}
	var best *jobEntry
	for _, e := range waiting {
		if t.running[e.Principal] < t.slotsFor(e.Principal) && (best == nil || t.comesBefore(e, best)) {
			best = e
		}
	}
	return best
}

func (t *turnScheduler) comesBefore(a, b *jobEntry) bool {
	if a.Principal != b.Principal {
		order := cmp.Or(cmp.Compare(t.running[a.Principal], t.running[b.Principal]), cmp.Compare(t.served[a.Principal], t.served[b.Principal]))
		if order != 0 {
			return order < 0
		}
		return a.Submitted.Before(b.Submitted)
	}
	return isAhead(a, b)
}

// isAhead reports whether job a is to start before job b. Both belong to the same principal.
func isAhead(a, b *jobEntry) bool {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.Submitted.Compare(b.Submitted), cmp.Compare(a.ID, b.ID)) < 0
}

// takeSlot counts a slot as used by a principal.
func (t *turnScheduler) takeSlot(principal string) {
	t.count++
	t.served[principal] = t.count
	t.running[principal]++
	t.total++
}

// releaseSlot counts a slot of a principal as free.
func (t *turnScheduler) releaseSlot(principal string) {
	t.total--
	if t.running[principal]--; t.running[principal] == 0 {
		delete(t.running, principal)
	}
}

// trimServed limits the memory of the scheduler. If served has more than maxRemembered principals, it drops those that
// have no running or waiting job. The argument waits maps each principal to the number of its waiting jobs.
func (t *turnScheduler) trimServed(waits map[string]int) {
	for principal := range t.served {
		if waits[principal] == 0 && t.running[principal] == 0 && len(t.served) > maxRemembered {
			delete(t.served, principal)
		}
	}
}

// maxRemembered bounds the number of principals in served.
const maxRemembered = 1024
