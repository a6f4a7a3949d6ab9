package guest

import (
	"container/heap"
	"time"
)

// timerSet holds the pending timers of a program, ordered by due time and, for equal times, by creation.
type timerSet struct {
	queue timerQueue
	byID  map[int]*pendingTimer
	made  int
}

type pendingTimer struct {
	id, seq int
	due     time.Time
	index   int // index of the timer in the queue
}

func newTimers() *timerSet { return &timerSet{byID: map[int]*pendingTimer{}} }

func (t *timerSet) addTimer(id int, due time.Time) {
	t.removeTimer(id)
	t.made++
	next := &pendingTimer{id: id, seq: t.made, due: due}
	t.byID[id] = next
	heap.Push(&t.queue, next)
}

func (t *timerSet) removeTimer(id int) {
	if found, ok := t.byID[id]; ok {
		delete(t.byID, id)
		heap.Remove(&t.queue, found.index)
	}
}

// nextDue returns when the next timer is due.
func (t *timerSet) nextDue() (due time.Time, ok bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].due, true
}

// takeDue removes and returns the next timer if it is due at now.
func (t *timerSet) takeDue(now time.Time) (id int, ok bool) {
	if due, pending := t.nextDue(); !pending || due.After(now) {
		return 0, false
	}
	id = t.queue[0].id
	t.removeTimer(id)
	return id, true
}

// timerQueue implements heap.Interface.
type timerQueue []*pendingTimer

func (q timerQueue) Len() int { return len(q) }

func (q timerQueue) Less(i, j int) bool {
	if q[i].due.Equal(q[j].due) {
		return q[i].seq < q[j].seq
	}
	return q[i].due.Before(q[j].due)
}

func (q timerQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *timerQueue) Push(x any) {
	t := x.(*pendingTimer)
	t.index = len(*q)
	*q = append(*q, t)
}

func (q *timerQueue) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
