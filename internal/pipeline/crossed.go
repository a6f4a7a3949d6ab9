package pipeline

import (
	"slices"
	"sync"

	"retort/internal/privacy/redact"
)

// allowedCrossings records which personal data a person has allowed a program to send to servers that it did not come
// from. So a person is asked only once in a run for each pair of servers and type of data. It is safe for concurrent
// use.
type allowedCrossings struct {
	mu      sync.Mutex
	reasons map[string]serverCrossings // crossings in open questions, by the reason that the question gives
	allowed []serverCrossings
}

// serverCrossings holds crossings to one server.
type serverCrossings struct {
	server    string
	crossings []redact.BorderCrossing
}

// maxReasons bounds the number of questions whose crossings are kept. An answer to a further question is not
// remembered.
const maxReasons = 1000

// reasonFor returns the reason for asking a person about a call to a server. It leaves out crossings that a person has
// allowed in this run, and returns "" if none are left.
func (a *allowedCrossings) reasonFor(server string, crossings []redact.BorderCrossing) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	crossings = slices.DeleteFunc(slices.Clone(crossings), func(c redact.BorderCrossing) bool {
		return a.covers(server, c)
	})
	if len(crossings) == 0 {
		return ""
	}
	reason := redact.CrossingReason(server, crossings)
	if a.reasons == nil {
		a.reasons = map[string]serverCrossings{}
	}
	if len(a.reasons) < maxReasons {
		a.reasons[reason] = serverCrossings{server, crossings}
	}
	return reason
}

// covers reports whether a person has already allowed a crossing to a server. The caller must hold mu.
func (a *allowedCrossings) covers(server string, c redact.BorderCrossing) bool {
	return slices.ContainsFunc(a.allowed, func(given serverCrossings) bool {
		return given.server == server && slices.ContainsFunc(given.crossings, func(old redact.BorderCrossing) bool {
			other := func(from string) bool { return !slices.Contains(old.From, from) }
			return old.Type == c.Type && old.Inside == c.Inside && !slices.ContainsFunc(c.From, other)
		})
	})
}

// allow records that a person has allowed the crossings of the question with this reason.
func (a *allowedCrossings) allow(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if given, ok := a.reasons[reason]; ok {
		a.allowed = append(a.allowed, given)
		delete(a.reasons, reason)
	}
}
