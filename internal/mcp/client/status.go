package client

import (
	"time"

	"retort/internal/core"
)

// State is the state of the connection to a server.
type State string

// The states of the connection to a server.
const (
	StateIdle       State = "idle"       // not used yet, or ended and not needed since
	StateConnecting State = "connecting" // starting or being restarted
	StateReady      State = "ready"
	StateFailing    State = "failing" // failed; the next use waits a moment and tries again
	StateOpen       State = "open"    // failed too often: uses fail at once until RetryAt
	StateInvalid    State = "invalid" // cannot be used as configured
	StateClosed     State = "closed"
)

// Status is the state of a server, as known without contacting it.
type Status struct {
	Server     string
	State      State
	Transport  string // "stdio", "http", "sse" or "dial"; what answered last
	Protocol   string // negotiated version, empty before the first connection
	Name       string // of the implementation
	Version    string // of the implementation
	Since      time.Time
	Connects   int // successful ones
	Restarts   int // successful ones after the first
	Failures   int // in a row
	RetryAt    time.Time
	LastError  *core.Error
	Connect    time.Duration // how long the last connecting took
	Latency    time.Duration // of the last answered request
	PID        int           // of the child process, or 0
	Stderr     []string      // the last lines, cut and without terminal sequences
	Rubbish    NonProtocolOutput
	Unanswered int // pings in a row that it has not answered, after a call that it did not answer
	Isolation  Isolation
	Instances  int // beside the one that all else here is about
}

// NonProtocolOutput is output of a server on its protocol stream that is not JSON-RPC.
type NonProtocolOutput struct {
	Lines   int      // skipped lines that are no message
	Strays  int      // messages that answer no call of ours
	Samples []string // the last few lines
}

// Status returns the status of a server. The State of an unknown server is StateInvalid.
func (p *Pool) Status(server string) Status {
	n, err := p.instances(server)
	if err != nil {
		return Status{Server: server, State: StateInvalid, LastError: err}
	}
	st := n.main.status()
	st.Instances, st.Isolation = n.countInstances(), n.keep
	return st
}

// Connection returns how many connections to a server were made so far, and whether the last one is up.
func (p *Pool) Connection(server string) (count int, up bool) {
	n, err := p.instances(server)
	if err != nil {
		return 0, false
	}
	s := n.main
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connects, s.session != nil && !s.session.link.isDown()
}
