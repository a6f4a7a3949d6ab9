package pipeline

import (
	"fmt"
	"sync"
	"time"

	"retort/internal/core"
)

// Bounds on the questions of servers in all executions together, in multiples of approval.questions.
const (
	minutely    = 1 // one server, of one principal, within a minute
	hourly      = 4 // the same, within an hour
	allServers  = 2 // so many times as much, all servers together
	maxAskers   = 10_000
	everyServer = "" // represents all servers
)

// asking counts the questions that servers ask in all executions of an engine. The zero value is ready. It is safe
// for concurrent use.
type asking struct {
	mu     sync.Mutex
	askers map[asker]*askerCounts
}

// asker identifies a server that asks on behalf of a principal.
type asker struct{ principal, server string }

// askerCounts counts an asker's questions within the current minute and hour.
type askerCounts struct{ minute, hour span }

// span counts questions since a time.
type span struct {
	since time.Time
	asked int
}

// in returns the number of questions within the current period. A new period begins when length has passed.
func (s *span) in(length time.Duration, now time.Time) int {
	if now.Sub(s.since) >= length {
		*s = span{since: now}
	}
	return s.asked
}

// count counts a question, or returns why it may not be asked. questions is the setting approval.questions.
func (s *asking) count(principal, server string, questions int, now time.Time) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, all := s.of(asker{principal, server}, now), s.of(asker{principal, everyServer}, now)
	switch {
	case one.minute.in(time.Minute, now) >= minutely*questions:
		return fmt.Sprintf("%s has asked the client %d times within a minute; ask again after a minute (approval.questions)", server, one.minute.asked)
	case one.hour.in(time.Hour, now) >= hourly*questions:
		return fmt.Sprintf("%s has asked the client %d times within an hour; ask again after an hour (%d times approval.questions)", server, one.hour.asked, hourly)
	case all.minute.in(time.Minute, now) >= allServers*minutely*questions:
		return fmt.Sprintf("servers have asked the client %d times within a minute; ask again after a minute (%d times approval.questions)", all.minute.asked, allServers*minutely)
	case all.hour.in(time.Hour, now) >= allServers*hourly*questions:
		return fmt.Sprintf("servers have asked the client %d times within an hour; ask again after an hour (%d times approval.questions)", all.hour.asked, allServers*hourly)
	}
	for _, c := range []*askerCounts{one, all} {
		c.minute.asked++
		c.hour.asked++
	}
	return ""
}

// of returns the counts of an asker. The caller holds mu.
func (s *asking) of(a asker, now time.Time) *askerCounts {
	if s.askers == nil {
		s.askers = map[asker]*askerCounts{}
	}
	c := s.askers[a]
	if c == nil {
		if len(s.askers) >= maxAskers {
			s.forget(now)
		}
		c = &askerCounts{}
		s.askers[a] = c
	}
	return c
}

// forget drops expired counts, or any count if none has expired.
func (s *asking) forget(now time.Time) {
	for a, c := range s.askers {
		if now.Sub(c.hour.since) >= time.Hour || len(s.askers) >= maxAskers {
			delete(s.askers, a)
		}
	}
}

// refusedAsking records that a server's question did not reach the client. Only the first one of each server in an
// execution is recorded, so that a server cannot flood the audit log.
func (r *record) refusedAsking(a core.Asked, why *core.Error) {
	about := r.event(core.EventAsked)
	about.Server, about.Tool, about.Status = a.Server, a.Tool, "refused"
	about.Facts = map[string]any{"method": a.Method, "reason": why.Message}
	_ = r.add(about, false)
}
