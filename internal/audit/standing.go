package audit

// QueueLength returns the number of entries in the write queue, which are not on disk yet. It also reports whether
// writing fails at present.
func (l *Log) QueueLength() (queued int, failed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue), l.failed != nil
}
