// Package anomaly detects unusual activity. It receives the events of the audit log in order, learns what is usual
// for each principal, server, tool and skill, and reports deviations as text with the evidence. It does no I/O and
// reads no clock. Its memory is bounded. It reports nothing about a principal until it has enough data to compare
// with, unless a single event is clear by itself.
package anomaly

import (
	"cmp"
	"encoding/json"
	"time"

	"retort/internal/core"
)

// Kind names a kind of unusual activity. Settings use the same names. New versions only add kinds.
type Kind string

// Values of Kind.
const (
	Rate              Kind = "rate"                   // unusually many calls or executions
	Size              Kind = "size"                   // unusually large result or arguments
	Duration          Kind = "duration"               // unusually slow call or skill
	Failures          Kind = "errors"                 // a large share of calls fails
	FirstUse          Kind = "first_use"              // the principal uses a tool for the first time
	IrreversibleBurst Kind = core.AnomalyIrreversible // many irreversible calls
	Exfiltration      Kind = "exfiltration"           // much data is read from one server, and data is sent to another
	Denials           Kind = "denials"                // many refused calls
	Probing           Kind = "probing"                // privacy tokens are guessed or enumerated
	Night             Kind = "night"                  // activity at an hour that is usually inactive
	Blacklist         Kind = "blacklist"              // a program tried to reach a blacklisted host
	Volume            Kind = "volume"                 // very much data was exchanged with one host
)

// AllKinds lists all kinds.
func AllKinds() []Kind {
	return []Kind{Rate, Size, Duration, Failures, FirstUse, IrreversibleBurst, Exfiltration, Denials, Probing, Night, Blacklist, Volume}
}

// AnomalyAction says how the engine reacts to a finding.
type AnomalyAction string

// Values of AnomalyAction, mildest first. Each one except Off includes those before it.
const (
	Off     AnomalyAction = "off"
	Note    AnomalyAction = "note"    // it is recorded, logged and added to the Outcome
	Alert   AnomalyAction = "alert"   // an alert is also sent
	Approve AnomalyAction = "approve" // calls of the principal that may have effects also require a person's approval
	// Stop also keeps the execution from making further calls. Later calls of the principal are treated as with
	// Approve.
	Stop AnomalyAction = "stop"
)

// AnomalyFinding describes one unusual observation.
type AnomalyFinding struct {
	Kind      Kind            `json:"kind"`
	Action    AnomalyAction   `json:"action"`
	Severity  string          `json:"severity"` // "low", "medium" or "high"
	At        time.Time       `json:"at"`
	Principal string          `json:"principal,omitempty"`
	Session   string          `json:"session,omitempty"`
	Execution string          `json:"execution_id,omitempty"` // ID of the execution in which it was found
	Server    string          `json:"server,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Skill     string          `json:"skill,omitempty"`
	Words     string          `json:"words"` // one sentence for people
	Evidence  FindingEvidence `json:"evidence"`

	ended bool // whether the execution has ended
	sure  bool // it is reported even if nothing is known about the past
}

// FindingEvidence has the numbers that a finding is based on. Their unit depends on the kind of the finding: calls,
// bytes, seconds, a share or an hour.
type FindingEvidence struct {
	Now        float64  `json:"now"`
	Median     float64  `json:"median"`
	Deviation  float64  `json:"deviation,omitempty"` // median absolute deviation, as a factor
	Highest    float64  `json:"highest"`
	Samples    int      `json:"samples"`
	Days       int      `json:"days"`                 // days with activity
	Runs       int      `json:"executions"`           // executions of the principal
	Last       []string `json:"last_ids,omitempty"`   // IDs of executions, newest first
	Suppressed int      `json:"suppressed,omitempty"` // findings of the same kind and subject since the last report
}

// ToEvent returns the finding as an entry of the audit log.
func (f AnomalyFinding) ToEvent() core.AuditEvent {
	e := core.AuditEvent{
		Kind: core.EventAnomaly, Session: f.Session, Principal: f.Principal, Server: f.Server, Tool: f.Tool,
		Status: string(f.Kind),
	}
	if !f.ended { // nothing of an execution comes after its end
		e.Execution = f.Execution
	}
	v := f.Evidence
	e.Facts = map[string]any{
		"action": f.Action, "severity": f.Severity, "now": v.Now, "median": v.Median, "highest": v.Highest,
		"samples": v.Samples, "days": v.Days, "executions": v.Runs, "ids": v.Last,
	}
	if v.Suppressed > 0 {
		e.Facts["suppressed"] = v.Suppressed
	}
	if f.Skill != "" {
		e.Facts["skill"] = f.Skill
	}
	e.Body, _ = json.Marshal(map[string]string{"words": f.Words}) // of strings
	return e
}

// LearningThresholds says how much data is required before anything is reported. Zero fields mean the default.
type LearningThresholds struct {
	Days       int // days with activity of a principal; default 5
	Nights     int // the same, before hours of the day are judged; default 10
	Executions int // of a principal; default 30
	Calls      int // of a tool or server; default 30
}

func (l LearningThresholds) withDefaults() LearningThresholds {
	return LearningThresholds{cmp.Or(l.Days, 5), cmp.Or(l.Nights, 10), cmp.Or(l.Executions, 30), cmp.Or(l.Calls, 30)}
}

// StateLimits bounds how much is kept in memory. Zero fields mean the default.
type StateLimits struct {
	Principals int // default 256
	Series     int // of tools and skills, for each principal; default 512
	Total      int // of all principals; default 16384
	Executions int // running executions; default 1024
}

func (l StateLimits) withDefaults() StateLimits {
	return StateLimits{cmp.Or(l.Principals, 256), cmp.Or(l.Series, 512), cmp.Or(l.Total, 16384), cmp.Or(l.Executions, 1024)}
}

// Options selects what is detected and how the engine reacts to findings. The zero value records every finding.
type Options struct {
	Zone     *time.Location         // time zone of the users; nil: UTC
	Actions  map[Kind]AnomalyAction // a missing kind has the action Note
	Learning LearningThresholds
	Limits   StateLimits
}

func (o Options) actionFor(k Kind) AnomalyAction { return cmp.Or(o.Actions[k], Note) }
