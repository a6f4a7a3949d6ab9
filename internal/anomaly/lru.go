package anomaly

import "container/list"

// lruCache holds the most recently used values, up to a maximum number.
type lruCache[K comparable, V any] struct {
	most  int
	order list.List // newest first
	by    map[K]*list.Element
}

type cacheEntry[K comparable, V any] struct {
	key   K
	value V
}

func newLRU[K comparable, V any](most int) *lruCache[K, V] {
	return &lruCache[K, V]{most: most, by: map[K]*list.Element{}}
}

// getValue returns the value of a key. ok is false for an unknown key.
func (l *lruCache[K, V]) getValue(key K) (v V, ok bool) {
	e, ok := l.by[key]
	if !ok {
		return v, false
	}
	l.order.MoveToFront(e)
	return e.Value.(*cacheEntry[K, V]).value, true
}

// putValue adds a value under a key that is not in the cache yet. If the cache is full, it first drops the least
// recently used value.
func (l *lruCache[K, V]) putValue(key K, v V) {
	if len(l.by) >= l.most {
		l.dropOldest()
	}
	l.by[key] = l.order.PushFront(&cacheEntry[K, V]{key, v})
}

// dropOldest removes the least recently used value.
func (l *lruCache[K, V]) dropOldest() {
	if e := l.order.Back(); e != nil {
		l.order.Remove(e)
		delete(l.by, e.Value.(*cacheEntry[K, V]).key)
	}
}

func (l *lruCache[K, V]) removeKey(key K) {
	if e, ok := l.by[key]; ok {
		l.order.Remove(e)
		delete(l.by, key)
	}
}

// eachValue calls f with each value, newest first.
func (l *lruCache[K, V]) eachValue(f func(K, V)) {
	for e := l.order.Front(); e != nil; e = e.Next() {
		k := e.Value.(*cacheEntry[K, V])
		f(k.key, k.value)
	}
}
