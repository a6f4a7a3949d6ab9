package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy"
	"retort/internal/privacy/redact"
)

// recordEvent adds an entry to the audit log that belongs to no execution.
func (p *Pipeline) recordEvent(kind core.EventKind, session, status string, facts map[string]any, body requestBody) *core.Error {
	if p.Recorder == nil {
		return nil
	}
	r := &executionRecord{
		to: p.Recorder, about: core.AuditEvent{Session: session, Principal: p.Policy.Principal()},
		begun: make(chan struct{}),
	}
	close(r.begun)
	var err error
	if r.screen, err = p.privacySession(session); err != nil {
		r.blind = true
	}
	e := r.newEvent(kind)
	e.Status, e.Facts = status, facts
	body.Name = r.maskText(body.Name)
	e.Body = bodyOf(body)
	return r.recordEvent(e, false)
}

// RecordLookup records in the audit log a search for tools or a request for definitions. query is the question or the
// names.
func (p *Pipeline) RecordLookup(how, query string, found int) *core.Error {
	return p.recordEvent(core.EventSearch, "", how, map[string]any{"found": found}, requestBody{Name: query})
}

// RecordSkillChange records in the audit log that a skill was saved or removed.
func (p *Pipeline) RecordSkillChange(skill, how string) *core.Error {
	return p.recordEvent(core.EventSkill, "", how, map[string]any{"skill": skill}, requestBody{})
}

// executionRecord writes the audit log entries of one execution. Without a recorder it does nothing.
type executionRecord struct {
	to      core.EventRecorder
	tracer  core.Tracer
	about   core.AuditEvent // what all entries have in common
	screen  *redact.Session // nil hides nothing
	blind   bool            // personal data cannot be hidden, so no values are recorded
	began   time.Time
	begun   chan struct{} // closed when the first entry is made; screen and refused are there then
	refused *core.Error   // why it could not be made

	mu        sync.Mutex
	calls     int
	refusals  int
	unreached int // refused attempts of a program to reach addresses
	personal  redact.TypeCounts
	tokens    tokenRun
}

// maxRefusals bounds how many refused calls get their own audit log entry, because a program can cause refusals at no
// cost.
const maxRefusals = 100

// beginRecord writes the first audit log entry of an execution, for its request, while the program is being checked.
// body may still contain personal data. If writing fails, all later entries of the execution fail, too.
func (p *Pipeline) beginRecord(req core.ExecutionRequest, what map[string]any, body requestBody) *executionRecord {
	r := &executionRecord{to: p.Recorder, tracer: p.Tracer, began: time.Now(), begun: make(chan struct{})}
	r.about = core.AuditEvent{Execution: req.ID, Session: req.Session, Principal: p.Policy.Principal(), Client: req.Client}
	go func() {
		defer close(r.begun)
		if r.to != nil {
			r.refused = p.recordRequest(r, req, what, body)
		}
	}()
	return r
}

// waitReady waits until the first entry is written. It returns the error if that failed.
func (r *executionRecord) waitReady() *core.Error {
	<-r.begun
	return r.refused
}

func (p *Pipeline) recordRequest(r *executionRecord, req core.ExecutionRequest, what map[string]any, body requestBody) *core.Error {
	var err error
	if r.screen, err = p.privacySession(req.Session); err != nil {
		r.blind = true
	}
	what["limits"] = map[string]any{
		"timeout_ms": req.Limits.Timeout.Milliseconds(), "memory": req.Limits.Memory, "tool_calls": req.Limits.ToolCalls,
	}
	if req.Sandbox != "" {
		what["sandbox"] = req.Sandbox
	}
	if req.DryRun {
		what["dry_run"] = true
	}
	for name, value := range map[string]string{"model": req.Model, "model_version": req.ModelVersion} {
		if value != "" {
			what[name] = value
		}
	}
	if body.Code != "" {
		sum := sha256.Sum256([]byte(body.Code))
		what["code_sha256"] = hex.EncodeToString(sum[:])
	}
	body.Code, body.Arguments = r.hideText(body.Code), r.maskJSON(body.Arguments)
	e := r.newEvent(core.EventRequest)
	e.Facts, e.Body = what, bodyOf(body)
	return r.to.Record(e, false)
}

// requestBody is the body of an audit log entry about a request.
type requestBody struct {
	Code      string          `json:"code,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (r *executionRecord) newEvent(kind core.EventKind) core.AuditEvent {
	e := r.about
	e.Kind = kind
	return e
}

func (r *executionRecord) recordEvent(e core.AuditEvent, durable bool) *core.Error {
	if r.to == nil {
		return nil
	}
	if err := r.waitReady(); err != nil {
		return err
	}
	return r.to.Record(e, durable)
}

// maskText returns a text with secrets and personal data hidden, for the audit log.
func (r *executionRecord) maskText(s string) string {
	_ = r.waitReady() // the screen is there
	return r.hideText(s)
}

func (r *executionRecord) hideText(s string) string {
	switch {
	case r.blind:
		return "(hidden)"
	case r.screen == nil:
		return s
	}
	return r.screen.RedactText(s)
}

// hideJSON returns JSON with secrets and personal data hidden, for the audit log.
func (r *executionRecord) hideJSON(raw json.RawMessage) json.RawMessage {
	_ = r.waitReady()
	return r.maskJSON(raw)
}

func (r *executionRecord) maskJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || !r.blind && r.screen == nil {
		return raw
	}
	if r.blind {
		return json.RawMessage(`"(hidden)"`)
	}
	out, err := r.screen.RedactOutgoing(raw)
	if err != nil {
		return json.RawMessage(`"(hidden)"`)
	}
	return out
}

func bodyOf(v any) json.RawMessage {
	body, err := json.Marshal(v)
	if err != nil || string(body) == "{}" {
		return nil
	}
	return body
}

// errorBody is the body of an audit log entry about an error or a result.
type errorBody struct {
	Error     string          `json:"error,omitempty"`
	Reasons   []string        `json:"reasons,omitempty"`
	Artifacts []string        `json:"artifacts,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Output    string          `json:"output,omitempty"`
}

// maxOutput bounds the size of the result, and of the console output, in an entry's body, in bytes. Anything larger
// is left out completely, because personal data might not be recognised in a part.
const maxOutput = 64 << 10

// recordVerdict records in the audit log the result of checking the program.
func (r *executionRecord) recordVerdict(v check.Verdict, refusal *core.Error) *core.Error {
	if r.to == nil {
		return nil
	}
	e := r.newEvent(core.EventVerdict)
	if refusal != nil {
		e.Status, e.Facts = string(refusal.Kind), map[string]any{"line": refusal.Line}
		e.Body = bodyOf(errorBody{Error: r.maskText(refusal.Message)})
		return r.recordEvent(e, false)
	}
	var reach []string
	for _, u := range v.Risk.Uses {
		reach = append(reach, u.Tool)
	}
	var skills []string
	for _, s := range v.Skills {
		skills = append(skills, s.Name)
	}
	e.Status, e.Risk = "ok", &v.Risk.Score
	e.Facts = map[string]any{"level": v.Risk.Level, "tools": firstNames(reach, maxReach), "warnings": len(v.Warnings)}
	if len(skills) > 0 {
		e.Facts["skills"] = firstNames(skills, maxReach)
	}
	if v.Risk.Unknown {
		e.Facts["any_tool"] = true
	}
	e.Body = bodyOf(errorBody{Reasons: v.Risk.Reasons})
	return r.recordEvent(e, false)
}

// recordAutoApproval records in the audit log that the settings approved a program automatically.
func (r *executionRecord) recordAutoApproval(risk rules.ProgramRisk) *core.Error {
	e := r.newEvent(core.EventDecision)
	e.Status, e.Risk = "automatic", &risk.Score
	e.Facts = map[string]any{"by": "settings", "level": risk.Level}
	return r.recordEvent(e, false)
}

// maxReach bounds the number of names in one audit log entry.
const maxReach = 50

func firstNames(names []string, n int) []string { return names[:min(n, len(names))] }

// approvedBy maps whether a call needed a person's approval to the text in its audit log entry.
var approvedBy = map[bool]string{true: "person", false: "automatic"}

// recordCall records a call in the audit log. A call that may have effects is recorded before it is sent; a call that
// only reads is recorded when the caller passes its result to came.
func (r *executionRecord) recordCall(
	t *core.Tool, c core.ToolCall, d policy.AccessDecision,
) (came func(core.CallResult, error), refused *core.Error) {
	if r.to == nil {
		return func(core.CallResult, error) {}, nil
	}
	if err := r.waitReady(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.calls++
	n := r.calls
	r.mu.Unlock()
	left := r.callEvent(t, c, d)
	if d.Effect.Kind > core.EffectRead {
		left.Facts["approval"] = approvedBy[c.Approved]
	}
	left.Facts["call"], left.Facts["arguments"], left.Facts["pin"] = n, r.to.Digest(c.Arguments), t.Pin
	if c.Crosses != "" {
		left.Facts["crosses"] = true
	}
	start := time.Now()
	if d.Effect.Kind == core.EffectRead {
		return func(result core.CallResult, err error) {
			_ = r.recordEvent(r.withAnswer(left, start, result, err), false)
		}, nil
	}
	left.Body = bodyOf(requestBody{Arguments: r.hideJSON(c.Arguments)})
	if err := r.recordEvent(left, true); err != nil {
		return nil, err.AtTool(c.Server, c.Tool)
	}
	answer := r.about
	answer.Kind, answer.Server, answer.Tool, answer.Effect = core.EventAnswer, t.Server, t.Name, left.Effect
	answer.Facts = map[string]any{"call": n}
	return func(result core.CallResult, err error) {
		_ = r.recordEvent(r.withAnswer(answer, start, result, err), false)
	}, nil
}

// withAnswer returns the audit log entry of a call with the call's result added.
func (r *executionRecord) withAnswer(e core.AuditEvent, start time.Time, result core.CallResult, err error) core.AuditEvent {
	e.Duration, e.Status = time.Since(start), "ok"
	if err != nil {
		failed := core.AsError(err)
		e.Status = string(failed.Kind)
		if e.Kind == core.EventAnswer && errors.Is(err, core.ErrOutcomeUnknown) {
			e.Status, e.Facts["error"] = string(core.StatusOutcomeUnknown), failed.Kind
		}
		e.Body = mergeBody(e.Body, errorBody{Error: r.maskText(failed.Message)})
		return e
	}
	e.Bytes = int64(len(result.Value))
	e.Facts["result"] = r.to.Digest(result.Value)
	return e
}

func mergeBody(body json.RawMessage, s errorBody) json.RawMessage {
	if len(body) == 0 {
		return bodyOf(s)
	}
	return body
}

// countPersonal adds personal data found in a server's answer to the counts that the execution's last audit log entry
// contains.
func (r *executionRecord) countPersonal(found redact.TypeCounts) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range found {
		r.personal.Add(c.Type, c.N)
	}
}

// sawPersonal reports whether any server's answer contained personal data.
func (r *executionRecord) sawPersonal() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.personal) > 0
}

// recordRefusal records a refused call in the audit log, at most maxRefusals times per execution.
func (r *executionRecord) recordRefusal(c core.ToolCall, err *core.Error) {
	r.mu.Lock()
	r.refusals++
	n := r.refusals
	r.mu.Unlock()
	if r.to == nil || n > maxRefusals {
		return
	}
	e := r.newEvent(core.EventRefusal)
	e.Server, e.Tool, e.Status = c.Server, c.Tool, string(err.Kind)
	if errors.Is(err, redact.ErrUnknown) || errors.Is(err, redact.ErrProbing) {
		e.Facts = map[string]any{"cause": "unknown_token"}
	}
	e.Body = bodyOf(errorBody{Error: r.maskText(err.Message)})
	_ = r.recordEvent(e, false)
}

// recordEnd records the end of the execution in the audit log. When it returns, all entries of the execution are
// durable.
func (r *executionRecord) recordEnd(o core.Outcome) core.Outcome {
	if r.to == nil {
		return o
	}
	e := r.endEvent(o)
	e.Facts["calls"], e.Facts["result"] = r.calls, r.to.Digest(o.Result)
	if len(r.personal) > 0 {
		seen := map[string]int{}
		for _, c := range r.personal {
			seen[string(c.Type)] = c.N
		}
		e.Facts["personal"] = seen
	}
	var s errorBody
	if o.Error != nil {
		s.Error = r.maskText(o.Error.Message)
	}
	for _, a := range o.Artifacts {
		s.Artifacts = append(s.Artifacts, a.Path)
	}
	if len(o.Result) <= maxOutput {
		s.Result = r.hideJSON(o.Result)
	}
	if len(o.Output) <= maxOutput {
		s.Output = r.maskText(o.Output)
	}
	e.Body = bodyOf(s)
	if err := r.recordEvent(e, true); err != nil {
		o.Warnings = append(o.Warnings, err.Message)
	}
	return o
}

// endEvent returns the audit log entry for the end of an execution. It contains no values of the program.
func (r *executionRecord) endEvent(o core.Outcome) core.AuditEvent {
	e := r.newEvent(core.EventEnd)
	e.Status, e.Risk, e.Tokens, e.Duration, e.Bytes = string(o.Status), o.Stats.Risk, o.Stats.Tokens, time.Since(r.began), int64(len(o.Result))
	e.Facts = map[string]any{"calls": o.Stats.ToolCalls, "output_bytes": len(o.Output)}
	for name, value := range map[string]string{"sandbox": o.Stats.Sandbox, "runtime": o.Stats.Runtime} {
		if value != "" {
			e.Facts[name] = value
		}
	}
	for name, n := range map[string]int{
		"refusals": r.refusals, "cache_hits": o.Stats.CacheHits, "artifacts": len(o.Artifacts),
		"memory_bytes": int(o.Stats.MemoryBytes),
	} {
		if n > 0 {
			e.Facts[name] = n
		}
	}
	if o.Error != nil {
		e.Facts["error"] = o.Error.Kind
	}
	return e
}

// recordReveal records in the audit log that hidden values are about to be shown.
func (r *executionRecord) recordReveal(toModel bool, text string) *core.Error {
	e := r.newEvent(core.EventReveal)
	e.Status, e.Facts = "person", map[string]any{"personal": countCategories(text)}
	if toModel {
		e.Status = "model"
	}
	e.Body = bodyOf(requestBody{Arguments: bodyOf(map[string]string{"text": r.maskText(text)})})
	return r.recordEvent(e, true)
}

var tokenPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\[([A-Z][A-Z0-9_]*)_[0-9]+\]`)
})

// countCategories counts the tokens of each type in a text.
func countCategories(text string) map[string]int {
	found := map[string]int{}
	for _, m := range tokenPattern().FindAllStringSubmatch(text, -1) {
		found[strings.ToLower(m[1])]++
	}
	return found
}

// recordSkill records in the audit log that a skill was saved.
func (r *executionRecord) recordSkill(name, version string) *core.Error {
	e := r.newEvent(core.EventSkill)
	e.Status, e.Facts = "saved", map[string]any{"skill": name, "version": version}
	return r.recordEvent(e, false)
}
