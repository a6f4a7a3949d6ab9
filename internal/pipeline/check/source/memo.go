package source

import "sync"

// MemoCache caches values by key. A full cache is emptied, so that values may have to be computed again. It is safe
// for concurrent use.
type MemoCache[K comparable, V any] struct {
	limit int
	mu    *sync.Mutex
	made  map[K]V
}

// NewMemo returns a MemoCache for at most limit keys.
func NewMemo[K comparable, V any](limit int) MemoCache[K, V] {
	return MemoCache[K, V]{limit: limit, mu: &sync.Mutex{}, made: map[K]V{}}
}

// Find returns the value stored under key.
func (m *MemoCache[K, V]) Find(key K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.made[key]
	return v, ok
}

// Put stores v under key.
func (m *MemoCache[K, V]) Put(key K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.made) >= m.limit {
		clear(m.made)
	}
	m.made[key] = v
}

// Get returns the value stored under key. If no value is stored, it calls create, and stores and returns the result.
func (m *MemoCache[K, V]) Get(key K, create func() V) V {
	m.mu.Lock()
	v, ok := m.made[key]
	m.mu.Unlock()
	if ok {
		return v
	}
	v = create()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.made) >= m.limit {
		clear(m.made)
	}
	m.made[key] = v
	return v
}
