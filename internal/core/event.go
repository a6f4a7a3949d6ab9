package core

import (
	"encoding/json"
	"time"
)

// EventKind classifies the entries of the audit log. New versions only add kinds.
type EventKind string

// Values of EventKind. Each execution has one EventRequest first and one EventEnd last.
const (
	EventStart    EventKind = "start"     // the engine began to write
	EventStop     EventKind = "stop"      // the engine stopped
	EventRequest  EventKind = "request"   // an execution was asked for
	EventVerdict  EventKind = "verdict"   // the gate let a program pass, or refused it
	EventQuestion EventKind = "question"  // a person is asked
	EventDecision EventKind = "decision"  // what became of the question
	EventCall     EventKind = "call"      // a call that may have effects is about to leave; one that reads has come back
	EventAnswer   EventKind = "answer"    // a call that may have effects has come back
	EventRefusal  EventKind = "refusal"   // a call did not leave
	EventReveal   EventKind = "reveal"    // a person, or the model, was shown personal values
	EventEnd      EventKind = "end"       // of an execution
	EventSettings EventKind = "settings"  // they are others than when the engine ran the last time; or their files changed: applied, refused
	EventPin      EventKind = "pin"       // the definition of a tool has changed, or was trusted
	EventSkill    EventKind = "skill"     // one was saved or removed
	EventErasure  EventKind = "erasure"   // something was forgotten for good
	EventLogin    EventKind = "login"     // at an upstream
	EventSearch   EventKind = "search"    // a search for tools, or a request for definitions
	EventFile     EventKind = "file"      // of a workspace, read or written by a model itself
	EventAnomaly  EventKind = "anomaly"   // something unusual
	EventClock    EventKind = "clock"     // a person accepts the clock, although it is behind the audit log
	EventAsked    EventKind = "asked"     // a server's question to the client during a call, and its result
	EventGap      EventKind = "gap"       // what came between could not be written
	EventKept     EventKind = "retention" // old entries were moved to archives, or deleted
	EventNetwork  EventKind = "network"   // a program reaches for a host itself: allowed, refused, ended
	EventToken    EventKind = "token"     // one for calls over the network was created, revoked, or refused as it does not count
	EventTask     EventKind = "task"      // one was put into the queue, began, came to a phase, or ended
	EventCommand  EventKind = "command"   // a program starts a command: started, ended, failed, refused
)

// AuditEvent holds the content of one entry of the audit log. Its plain fields never contain values of a program, a
// tool or a person.
type AuditEvent struct {
	Kind      EventKind
	At        time.Time // when it was recorded, if zero
	Execution string
	Session   string
	Principal string
	Client    string
	Server    string
	Tool      string
	Effect    string // "read", "write", "destructive"
	Status    string // of an end: its Status; of other kinds: "ok", or how it went
	Risk      *int   // 0 to 100
	Duration  time.Duration
	Bytes     int64
	Tokens    *TokenStats
	Facts     map[string]any  // further details, readable by everyone who can read the audit log
	Body      json.RawMessage // what can be read with the key of the execution: code, arguments, messages
}

// EventRecorder writes the audit log.
type EventRecorder interface {
	// Record writes an event to the audit log. If durable is set, it returns when this event and all earlier ones are
	// on disk. Otherwise it does not wait, and the event is on disk no later than the next durable one. If it returns
	// an error, the event was not recorded, and the action that the event announces must not happen.
	Record(e AuditEvent, durable bool) *Error
	// Digest returns a digest of a text. It identifies the text without revealing it.
	Digest(text []byte) string
}
