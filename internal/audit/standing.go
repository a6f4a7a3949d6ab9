package audit

// Backlog returns how many entries are not on disk yet, and whether writing fails.
func (l *Log) Backlog() (queued int, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.failed != nil
}
