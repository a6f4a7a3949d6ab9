package guest

import (
	"container/heap"
	"time"
)

// timers holds the pending timers of a program, ordered by their due time and then by creation.
type timers struct {
	queue timerQueue
	byID  map[int]*timer
	made  int
}

type timer struct {
	id, seq int
	due     time.Time
	index   int // in the queue
}

func newTimers() *timers { return &timers{byID: map[int]*timer{}} }

func (t *timers) add(id int, due time.Time) {
	t.remove(id)
	t.made++
	next := &timer{id: id, seq: t.made, due: due}
	t.byID[id] = next
	heap.Push(&t.queue, next)
}

func (t *timers) remove(id int) {
	if found, ok := t.byID[id]; ok {
		delete(t.byID, id)
		heap.Remove(&t.queue, found.index)
	}
}

// next returns when the next timer is due.
func (t *timers) next() (due time.Time, ok bool) {
	if len(t.queue) == 0 {
		return time.Time{}, false
	}
	return t.queue[0].due, true
}

// take removes the next timer if it is due at now.
func (t *timers) take(now time.Time) (id int, ok bool) {
	if due, pending := t.next(); !pending || due.After(now) {
		return 0, false
	}
	id = t.queue[0].id
	t.remove(id)
	return id, true
}

// timerQueue implements heap.Interface.
type timerQueue []*timer

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
	t := x.(*timer)
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
