package audit

// QueueLength returns the number of entries that are not on disk yet, and the error if writing fails.
func (l *Log) QueueLength() (queued int, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.failed != nil
}
