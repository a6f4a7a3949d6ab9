package client

import (
	"time"

	"retort/internal/core"
)

// ServerState is the state of the connection to a server.
type ServerState string

// The values of ServerState.
const (
	StateIdle       ServerState = "idle"       // not used yet, or ended and not needed since
	StateConnecting ServerState = "connecting" // starting or being restarted
	StateReady      ServerState = "ready"
	StateFailing    ServerState = "failing" // failed; the next use waits a moment and tries again
	StateOpen       ServerState = "open"    // failed too often: uses fail at once until RetryAt
	StateInvalid    ServerState = "invalid" // cannot be used as configured
	StateClosed     ServerState = "closed"
)

// ServerStatus describes the connection to a server, as far as it is known without contacting the server.
type ServerStatus struct {
	Server     string
	State      ServerState
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

// NonProtocolOutput describes what a server has written to its protocol stream although it does not belong there:
// lines that are not JSON-RPC, and messages that answer no call.
type NonProtocolOutput struct {
	Lines   int      // skipped lines that are no message
	Strays  int      // messages that answer no call of ours
	Samples []string // the last few lines
}

// StatusOf returns the status of a server. The State of an unknown server is StateInvalid.
func (p *Pool) StatusOf(server string) ServerStatus {
	n, err := p.findInstances(server)
	if err != nil {
		return ServerStatus{Server: server, State: StateInvalid, LastError: err}
	}
	st := n.main.currentStatus()
	st.Instances, st.Isolation = n.countInstances(), n.keep
	return st
}

// Connection returns how many connections to a server were made so far, and whether the last one is up.
func (p *Pool) Connection(server string) (count int, up bool) {
	n, err := p.findInstances(server)
	if err != nil {
		return 0, false
	}
	s := n.main
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.connects, s.session != nil && !s.session.link.isDown()
}
