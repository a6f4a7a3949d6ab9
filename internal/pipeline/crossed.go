package pipeline

import (
	"slices"
	"sync"

	"retort/internal/privacy/redact"
)

// allowedCrossings holds which personal data a person has allowed a program to send to a server that it does not come
// from. A person is asked once for each pair of servers and type of data in a run.
type allowedCrossings struct {
	mu      sync.Mutex
	reasons map[string]serverCrossings // by the reason that a question gives
	allowed []serverCrossings
}

type serverCrossings struct {
	server    string
	crossings []redact.BorderCrossing
}

// maxReasons bounds how many different reasons are kept. Questions with further ones are asked again.
const maxReasons = 1000

// reasonFor returns the reason for asking a person about a call to a server, without what a person has allowed in this
// run. It returns "" if nothing is left.
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

// covers reports whether a person has allowed a crossing. The caller must hold mu.
func (a *allowedCrossings) covers(server string, c redact.BorderCrossing) bool {
	return slices.ContainsFunc(a.allowed, func(given serverCrossings) bool {
		return given.server == server && slices.ContainsFunc(given.crossings, func(old redact.BorderCrossing) bool {
			other := func(from string) bool { return !slices.Contains(old.From, from) }
			return old.Type == c.Type && old.Inside == c.Inside && !slices.ContainsFunc(c.From, other)
		})
	})
}

// allow records that a person has allowed what a reason says.
func (a *allowedCrossings) allow(reason string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if given, ok := a.reasons[reason]; ok {
		a.allowed = append(a.allowed, given)
		delete(a.reasons, reason)
	}
}
