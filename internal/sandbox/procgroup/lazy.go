package procgroup

import "sync"

// LazySpawner creates a ChildSpawner on first use, so that a backend that is never used starts no thread and creates
// no groups. The zero value is ready to use. It is safe for concurrent use.
type LazySpawner struct {
	mu      sync.Mutex
	spawner *ChildSpawner
}

// Ensure returns the ChildSpawner and creates it on the first call. It must not be called after Close.
func (l *LazySpawner) Ensure() *ChildSpawner {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spawner == nil {
		l.spawner = New(OpenGroups())
	}
	return l.spawner
}

// Close closes the spawner if it was created. All children must have ended.
func (l *LazySpawner) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spawner != nil {
		l.spawner.Close()
	}
}
