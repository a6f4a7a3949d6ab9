package typescript

import "sync"

// memo keeps what was made for a key. When it is full it forgets everything:
// what is still in use is made once more.
type memo[K comparable, V any] struct {
	limit int
	mu    sync.Mutex
	made  map[K]V
}

func (m *memo[K, V]) get(key K, create func() V) V {
	m.mu.Lock()
	v, ok := m.made[key]
	m.mu.Unlock()
	if ok {
		return v
	}
	v = create()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.made == nil || len(m.made) >= m.limit {
		m.made = map[K]V{}
	}
	m.made[key] = v
	return v
}
