package pipeline

import (
	"fmt"
	"sync"
	"time"

	"retort/internal/core"
)

// Bounds on the questions that servers ask in all executions together. perMinute and perHour are multiples of the
// setting approval.questions, for one server of one principal. allServers is how many times as many questions all
// servers together may ask. maxAskers bounds the number of counters in memory.
const (
	perMinute   = 1 // one server, of one principal, within a minute
	perHour     = 4 // the same, within an hour
	allServers  = 2 // so many times as much, all servers together
	maxAskers   = 10_000
	everyServer = "" // represents all servers
)

// questionCounts counts the questions that servers ask in all executions of an engine. The zero value is ready. It is safe
// for concurrent use.
type questionCounts struct {
	mu     sync.Mutex
	askers map[askingServer]*askerCounts
}

// askingServer names a server that asks questions, and the principal on whose behalf it asks.
type askingServer struct{ principal, server string }

// askerCounts counts the questions that one server asks on behalf of one principal, in the current minute and in the
// current hour.
type askerCounts struct{ minute, hour timeSpan }

// timeSpan counts the questions of one minute or one hour: it holds the start of this period and the number of
// questions asked in it.
type timeSpan struct {
	since time.Time
	asked int
}

// countWithin returns the number of questions asked in the current period of the given length. If the last period is
// over, it begins a new one, whose number is 0.
func (s *timeSpan) countWithin(length time.Duration, now time.Time) int {
	if now.Sub(s.since) >= length {
		*s = timeSpan{since: now}
	}
	return s.asked
}

// countQuestion counts a question of a server. If the question would exceed a bound, it is not counted, and
// countQuestion returns the reason for refusing it. The argument questions is the value of the setting
// approval.questions.
func (s *questionCounts) countQuestion(principal, server string, questions int, now time.Time) (refusal string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, all := s.countsOf(askingServer{principal, server}, now), s.countsOf(askingServer{principal, everyServer}, now)
	switch {
	case one.minute.countWithin(time.Minute, now) >= perMinute*questions:
		return fmt.Sprintf(
			"%s has asked the client %d times within a minute; ask again after a minute (approval.questions)", server,
			one.minute.asked,
		)
	case one.hour.countWithin(time.Hour, now) >= perHour*questions:
		return fmt.Sprintf(
			"%s has asked the client %d times within an hour; ask again after an hour (%d times approval.questions)",
			server, one.hour.asked, perHour,
		)
	case all.minute.countWithin(time.Minute, now) >= allServers*perMinute*questions:
		return fmt.Sprintf(
			"servers have asked the client %d times within a minute; ask again after a minute (%d times approval.questions)",
			all.minute.asked, allServers*perMinute,
		)
	case all.hour.countWithin(time.Hour, now) >= allServers*perHour*questions:
		return fmt.Sprintf(
			"servers have asked the client %d times within an hour; ask again after an hour (%d times approval.questions)",
			all.hour.asked, allServers*perHour,
		)
	}
	for _, c := range []*askerCounts{one, all} {
		c.minute.asked++
		c.hour.asked++
	}
	return ""
}

// countsOf returns the counters for the questions of one server. It creates them if the server has not asked before.
// The caller must hold mu.
func (s *questionCounts) countsOf(a askingServer, now time.Time) *askerCounts {
	if s.askers == nil {
		s.askers = map[askingServer]*askerCounts{}
	}
	c := s.askers[a]
	if c == nil {
		if len(s.askers) >= maxAskers {
			s.forgetOld(now)
		}
		c = &askerCounts{}
		s.askers[a] = c
	}
	return c
}

// forgetOld removes counters that began more than an hour ago, because their periods are over. If there are still too
// many counters, it also removes others, in no particular order.
func (s *questionCounts) forgetOld(now time.Time) {
	for a, c := range s.askers {
		if now.Sub(c.hour.since) >= time.Hour || len(s.askers) >= maxAskers {
			delete(s.askers, a)
		}
	}
}

// refusedAsking records in the audit log that a server's question was kept from the client. The caller calls it only
// for the first refused question of each server in an execution, so that a server cannot flood the log.
func (x *execution) refusedAsking(a core.ServerRequest, why *core.Error) {
	about := x.newEvent(core.EventAsked)
	about.Server, about.Tool, about.Status = a.Server, a.Tool, "refused"
	about.Facts = map[string]any{"method": a.Method, "reason": why.Message}
	_ = x.recordEvent(about, false)
}
