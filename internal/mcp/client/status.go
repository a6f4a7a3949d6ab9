package client

import (
	"time"

	"retort/internal/core"
)

// ServerState is the state of the connection to a server.
type ServerState string

// StateIdle and the following constants are the values of ServerState.
const (
	StateIdle       ServerState = "idle"       // not used yet, or ended and not needed since then
	StateConnecting ServerState = "connecting" // the server is being started or restarted
	StateReady      ServerState = "ready"
	StateFailing    ServerState = "failing" // the last connection failed; the next use waits a moment and tries again
	StateOpen       ServerState = "open"    // connections failed too often; all uses fail immediately until RetryAt
	StateInvalid    ServerState = "invalid" // the server cannot be used as it is configured
	StateClosed     ServerState = "closed"
)

// ServerStatus describes the connection to a server, as far as it is known without contacting the server.
type ServerStatus struct {
	Server     string
	State      ServerState
	Transport  string // transport of the last connection: "stdio", "http", "sse" or "dial"
	Protocol   string // negotiated protocol version; empty before the first connection
	Name       string // name that the server's implementation gives itself
	Version    string // version that the server's implementation gives itself
	Since      time.Time
	Connects   int // number of successful connections
	Restarts   int // number of successful connections after the first one
	Failures   int // number of failures in a row
	RetryAt    time.Time
	LastError  *core.Error
	Connect    time.Duration // duration of the last connection attempt
	Latency    time.Duration // time that the last answered request took
	PID        int           // process id of the server's process; 0 if the server is not a process
	Stderr     []string      // last lines of standard error, truncated and without terminal sequences
	Rubbish    NonProtocolOutput
	Unanswered int // number of unanswered pings in a row, since a call was not answered
	Isolation  Isolation
	Instances  int // number of instances in addition to the one that this status describes
}

// NonProtocolOutput describes what a server has written to its protocol stream although it does not belong there:
// lines that are not JSON-RPC, and messages that answer no call.
type NonProtocolOutput struct {
	Lines   int      // number of skipped lines that are not messages
	Strays  int      // number of messages that answer no call
	Samples []string // the last few such lines
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
