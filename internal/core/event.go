package core

import (
	"encoding/json"
	"time"
)

// EventKind classifies the entries of the audit log. New versions only add kinds.
type EventKind string

// Values of EventKind. Each execution has one EventRequest first and one EventEnd last.
const (
	EventStart    EventKind = "start"     // an engine began to write to the audit log
	EventStop     EventKind = "stop"      // the engine stopped
	EventRequest  EventKind = "request"   // an execution or a call was requested
	EventVerdict  EventKind = "verdict"   // a program passed the checks, or was rejected
	EventQuestion EventKind = "question"  // a person is asked
	EventDecision EventKind = "decision"  // the answer to a question, or its expiry
	EventCall     EventKind = "call"      // a call that may have effects is about to be sent, or a call that only reads has ended
	EventAnswer   EventKind = "answer"    // a call that may have effects has ended
	EventRefusal  EventKind = "refusal"   // a call was refused and not sent
	EventReveal   EventKind = "reveal"    // a person or the model was shown personal data
	EventEnd      EventKind = "end"       // an execution ended
	EventSettings EventKind = "settings"  // the settings differ from the last run, or a change of their files was applied or refused
	EventPin      EventKind = "pin"       // the definition of a tool changed, or was trusted
	EventSkill    EventKind = "skill"     // a skill was saved or removed
	EventErasure  EventKind = "erasure"   // data was erased for good
	EventLogin    EventKind = "login"     // a login at an upstream server, or a logout
	EventSearch   EventKind = "search"    // a search for tools, or a request for definitions
	EventFile     EventKind = "file"      // a model read or wrote a file of a workspace by itself, or files were exported or copied with the original values
	EventAnomaly  EventKind = "anomaly"   // something unusual
	EventClock    EventKind = "clock"     // a person confirmed the clock although it is behind the audit log
	EventAsked    EventKind = "asked"     // a server's question to the client during a call, and the answer
	EventGap      EventKind = "gap"       // entries before this one could not be written
	EventKept     EventKind = "retention" // old entries were moved to archives, or deleted
	EventNetwork  EventKind = "network"   // a network connection of a program was allowed, refused, or ended
	EventToken    EventKind = "token"     // an access token was created, revoked, or refused
	EventTask     EventKind = "task"      // a job was added to the queue, began, reached a phase, or ended
	EventCommand  EventKind = "command"   // a command of a program was started, refused, failed, or ended
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
	Effect    string // "read", "write", "irreversible"
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
