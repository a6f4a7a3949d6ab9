package anomaly

import "container/list"

// lru keeps the values that were used last.
type lru[K comparable, V any] struct {
	most  int
	order list.List // newest first
	by    map[K]*list.Element
}

type kept[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) *lru[K, V] {
	return &lru[K, V]{most: most, by: map[K]*list.Element{}}
}

// get returns a value that is there.
func (l *lru[K, V]) get(key K) (v V, ok bool) {
	e, ok := l.by[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*kept[K, V]).value, true
}

// put keeps a value that is not there, for the oldest one where there is no room.
func (l *lru[K, V]) put(key K, v V) {
	if len(l.by) >= l.most {
		l.drop()
	}
	l.by[key] = l.order.PushFront(&kept[K, V]{key, v})
}

// drop forgets the oldest value.
func (l *lru[K, V]) drop() {
	if e := l.order.Back(); e != nil {
		l.order.Remove(e)
		delete(l.by, e.Value.(*kept[K, V]).key)
	}
}

func (l *lru[K, V]) remove(key K) {
	if e, ok := l.by[key]; ok {
		l.order.Remove(e)
		delete(l.by, key)
	}
}

// values calls f with each value, newest first.
func (l *lru[K, V]) values(f func(K, V)) {
	for e := l.order.Front(); e != nil; e = e.Next() {
		k := e.Value.(*kept[K, V])
		f(k.key, k.value)
	}
}
