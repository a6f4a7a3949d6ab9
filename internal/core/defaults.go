package core

import "time"

// Defaults for settings, shared with the packages that must work without settings. DefaultLimits in
// run.go has the defaults for one execution, such as its memory.
const (
	DefaultResultTokens     = 2000 // tokens of a result with its output
	DefaultDefinitionTokens = 4000 // tokens of the definition of one tool

	DefaultSearchLimit = 10 // tools that a search returns

	DefaultApprovalTimeout = 10 * time.Minute
	DefaultQuestions       = 50 // that one execution may ask
	DefaultDeclined        = 5  // denials in a row, after which one execution may not ask again

	DefaultPIIExpiry = 30 * 24 * time.Hour // for which the tokens of an unused session are kept

	DefaultNetworkRequests = 100       // a minute, to one domain
	DefaultNetworkBytes    = 100 << 20 // of one execution

	DefaultModelTokens  = 4096 // tokens of one answer
	DefaultModelTimeout = 2 * time.Minute
	DefaultTaskAttempts = 3
	DefaultTaskTools    = 10
	DefaultTaskTokens   = 100_000
	DefaultJobSlots     = 4
	DefaultWaitingJobs  = 1000
	DefaultJobExpiry    = 24 * time.Hour // for which an ended job is kept
	DefaultHTTPBody     = 4 << 20
	DefaultHTTPHeader   = 64 << 10
	DefaultConnections  = 4096
	DefaultSessions     = 256 // of one principal
	DefaultAllSessions  = 16_384
	DefaultExecutions   = 64   // of one principal under way
	DefaultHTTPRequests = 3000 // a minute, of one principal
	DefaultSessionIdle  = 4 * time.Hour
	DefaultReadTimeout  = 30 * time.Second // of a request
	DefaultDrainTimeout = 30 * time.Second // of a listener that ends
)

// DefaultCommand returns the usual command name of a runtime, such as python3 for python.
func DefaultCommand(runtime string) string {
	if runtime == "python" {
		return "python3"
	}
	return runtime
}
