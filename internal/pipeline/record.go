package pipeline

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/check"
	"retort/internal/pipeline/check/rules"
	"retort/internal/policy"
	"retort/internal/privacy/redact"
)

// recordEvent adds an audit log entry that belongs to no execution.
func (p *Pipeline) recordEvent(kind core.EventKind, session, status string, facts map[string]any, body requestBody) *core.Error {
	if p.Recorder == nil {
		return nil
	}
	x := &execution{pipeline: p, req: core.ExecutionRequest{Session: session}, begun: make(chan struct{})}
	close(x.begun)
	x.screen, x.screenErr = p.privacySession(session)
	e := x.newEvent(kind)
	e.Status, e.Facts = status, facts
	body.Name = x.hideText(body.Name)
	e.Body = bodyOf(body)
	return x.recordEvent(e, false)
}

// RecordLookup records in the audit log that a client has looked up tools, by a search or by a request for
// definitions. The argument query is the search text or the requested names.
func (p *Pipeline) RecordLookup(how, query string, found int) *core.Error {
	return p.recordEvent(core.EventSearch, "", how, map[string]any{"found": found}, requestBody{Name: query})
}

// RecordSkillChange records in the audit log that a skill was saved or removed.
func (p *Pipeline) RecordSkillChange(skill, how string) *core.Error {
	return p.recordEvent(core.EventSkill, "", how, map[string]any{"skill": skill}, requestBody{})
}

// entryCounts counts the calls, refusals and personal data of one execution for its audit log entries.
type entryCounts struct {
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

// beginRecord begins to record the execution in the audit log. In the background, while the program is being checked,
// it writes the first entry, which describes the request. The argument body is part of that entry and may still
// contain personal data. If the entry cannot be written, all later entries of the execution fail, too.
func (x *execution) beginRecord(what map[string]any, body requestBody) {
	x.began = time.Now()
	x.screen, x.screenErr = x.pipeline.privacySession(x.req.Session)
	go func() {
		defer close(x.begun)
		if x.pipeline.Recorder != nil {
			x.refused = x.recordRequest(what, body)
		}
	}()
}

// waitReady waits until the execution's first audit log entry is written. It returns the error if writing has failed.
func (x *execution) waitReady() *core.Error {
	<-x.begun
	return x.refused
}

func (x *execution) recordRequest(what map[string]any, body requestBody) *core.Error {
	req := x.req
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
	body.Code, body.Arguments = x.hideText(body.Code), x.hideJSON(body.Arguments)
	e := x.newEvent(core.EventRequest)
	e.Facts, e.Body = what, bodyOf(body)
	return x.pipeline.Recorder.Record(e, false)
}

// requestBody is the body of an audit log entry about a request.
type requestBody struct {
	Code      string          `json:"code,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
}

func (x *execution) newEvent(kind core.EventKind) core.AuditEvent {
	return core.AuditEvent{
		Kind: kind, Execution: x.req.ID, Session: x.req.Session, Principal: x.pipeline.Policy.Principal(), Client: x.req.Client,
	}
}

func (x *execution) recordEvent(e core.AuditEvent, durable bool) *core.Error {
	if x.pipeline.Recorder == nil {
		return nil
	}
	if err := x.waitReady(); err != nil {
		return err
	}
	return x.pipeline.Recorder.Record(e, durable)
}

// hideText returns a text with secrets and personal data hidden, for the audit log.
func (x *execution) hideText(s string) string {
	switch {
	case x.screenErr != nil:
		return "(hidden)"
	case x.screen == nil:
		return s
	}
	return x.screen.RedactText(s)
}

// hideJSON returns JSON with secrets and personal data hidden, for the audit log.
func (x *execution) hideJSON(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || x.screenErr == nil && x.screen == nil {
		return raw
	}
	if x.screenErr != nil {
		return json.RawMessage(`"(hidden)"`)
	}
	out, err := x.screen.RedactOutgoing(raw)
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

// maxOutput bounds the size, in bytes, of a result or of console output in the body of an audit log entry. Anything
// larger is left out completely, because personal data might not be recognised in a part of it.
const maxOutput = 64 << 10

// recordVerdict records in the audit log the result of checking the program.
func (x *execution) recordVerdict(v check.Verdict, refusal *core.Error) *core.Error {
	if x.pipeline.Recorder == nil {
		return nil
	}
	e := x.newEvent(core.EventVerdict)
	if refusal != nil {
		e.Status, e.Facts = string(refusal.Kind), map[string]any{"line": refusal.Line}
		e.Body = bodyOf(errorBody{Error: x.hideText(refusal.Message)})
		return x.recordEvent(e, false)
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
	return x.recordEvent(e, false)
}

// recordAutoApproval records in the audit log that the settings approved a program automatically.
func (x *execution) recordAutoApproval(risk rules.ProgramRisk) *core.Error {
	e := x.newEvent(core.EventDecision)
	e.Status, e.Risk = "automatic", &risk.Score
	e.Facts = map[string]any{"by": "settings", "level": risk.Level}
	return x.recordEvent(e, false)
}

// maxReach bounds how many tools, and how many skills, the audit log lists for one program as what the program can
// reach.
const maxReach = 50

func firstNames(names []string, n int) []string { return names[:min(n, len(names))] }

// approvedBy gives the word with which the audit log says who approved a call. The key is whether a person was asked
// about the call.
var approvedBy = map[bool]string{true: "person", false: "automatic"}

// recordCall records a call in the audit log. The caller must call the returned function with the call's result. A
// call that may have effects is recorded before it is sent. A call that only reads is recorded once its result is
// known.
func (x *execution) recordCall(
	t *core.Tool, c core.ToolCall, d policy.AccessDecision,
) (came func(core.CallResult, error), refused *core.Error) {
	if x.pipeline.Recorder == nil {
		return func(core.CallResult, error) {}, nil
	}
	if err := x.waitReady(); err != nil {
		return nil, err
	}
	x.counts.mu.Lock()
	x.counts.calls++
	n := x.counts.calls
	x.counts.mu.Unlock()
	left := x.callEvent(t, c, d)
	if d.Effect.Kind > core.EffectRead {
		left.Facts["approval"] = approvedBy[c.Approved]
	}
	left.Facts["call"], left.Facts["arguments"], left.Facts["pin"] = n, x.pipeline.Recorder.Digest(c.Arguments), t.Pin
	if c.Crosses != "" {
		left.Facts["crosses"] = true
	}
	if c.Rehearsal {
		left.Facts["rehearsal"] = true
	}
	start := time.Now()
	if d.Effect.Kind == core.EffectRead {
		return func(result core.CallResult, err error) {
			_ = x.recordEvent(x.withAnswer(left, start, result, err), false)
		}, nil
	}
	left.Body = bodyOf(requestBody{Arguments: x.hideJSON(c.Arguments)})
	if err := x.recordEvent(left, true); err != nil {
		return nil, err.AtTool(c.Server, c.Tool)
	}
	answer := x.newEvent(core.EventAnswer)
	answer.Server, answer.Tool, answer.Effect = t.Server, t.Name, left.Effect
	answer.Facts = map[string]any{"call": n}
	return func(result core.CallResult, err error) {
		_ = x.recordEvent(x.withAnswer(answer, start, result, err), false)
	}, nil
}

// withAnswer adds what is known after a call to e, the call's audit log entry, and returns e: the duration and the
// status, and either the error or the size and digest of the result.
func (x *execution) withAnswer(e core.AuditEvent, start time.Time, result core.CallResult, err error) core.AuditEvent {
	e.Duration, e.Status = time.Since(start), "ok"
	if err != nil {
		failed := core.AsError(err)
		e.Status = string(failed.Kind)
		if e.Kind == core.EventAnswer && errors.Is(err, core.ErrOutcomeUnknown) {
			e.Status, e.Facts["error"] = string(core.StatusOutcomeUnknown), failed.Kind
		}
		e.Body = mergeBody(e.Body, errorBody{Error: x.hideText(failed.Message)})
		return e
	}
	e.Bytes = int64(len(result.Value))
	e.Facts["result"] = x.pipeline.Recorder.Digest(result.Value)
	return e
}

func mergeBody(body json.RawMessage, s errorBody) json.RawMessage {
	if len(body) == 0 {
		return bodyOf(s)
	}
	return body
}

// countPersonal counts the personal data that was found in a server's answer. The execution's last audit log entry
// contains the counts.
func (x *execution) countPersonal(found redact.TypeCounts) {
	x.counts.mu.Lock()
	defer x.counts.mu.Unlock()
	for _, c := range found {
		x.counts.personal.Add(c.Type, c.N)
	}
}

// sawPersonal reports whether the answer of any server to this execution contained personal data.
func (x *execution) sawPersonal() bool {
	x.counts.mu.Lock()
	defer x.counts.mu.Unlock()
	return len(x.counts.personal) > 0
}

// recordRefusal records a refused call in the audit log, at most maxRefusals times per execution.
func (x *execution) recordRefusal(c core.ToolCall, err *core.Error) {
	x.counts.mu.Lock()
	x.counts.refusals++
	n := x.counts.refusals
	x.counts.mu.Unlock()
	if x.pipeline.Recorder == nil || n > maxRefusals {
		return
	}
	e := x.newEvent(core.EventRefusal)
	e.Server, e.Tool, e.Status = c.Server, c.Tool, string(err.Kind)
	if errors.Is(err, redact.ErrUnknown) || errors.Is(err, redact.ErrProbing) {
		e.Facts = map[string]any{"cause": "unknown_token"}
	}
	if c.Rehearsal {
		e.Facts = maps.Clone(e.Facts)
		if e.Facts == nil {
			e.Facts = map[string]any{}
		}
		e.Facts["rehearsal"] = true
	}
	e.Body = bodyOf(errorBody{Error: x.hideText(err.Message)})
	_ = x.recordEvent(e, false)
}

// recordEnd records the end of the execution in the audit log. When it returns, all entries of the execution are
// durable.
func (x *execution) recordEnd(o core.Outcome) core.Outcome {
	if x.pipeline.Recorder == nil {
		return o
	}
	e := x.endEvent(o)
	e.Facts["calls"], e.Facts["result"] = x.counts.calls, x.pipeline.Recorder.Digest(o.Result)
	if len(x.counts.personal) > 0 {
		seen := map[string]int{}
		for _, c := range x.counts.personal {
			seen[string(c.Type)] = c.N
		}
		e.Facts["personal"] = seen
	}
	var s errorBody
	if o.Error != nil {
		s.Error = x.hideText(o.Error.Message)
	}
	for _, a := range o.Artifacts {
		s.Artifacts = append(s.Artifacts, a.Path)
	}
	if len(o.Result) <= maxOutput {
		s.Result = x.hideJSON(o.Result)
	}
	if len(o.Output) <= maxOutput {
		s.Output = x.hideText(o.Output)
	}
	e.Body = bodyOf(s)
	if err := x.recordEvent(e, true); err != nil {
		o.Warnings = append(o.Warnings, err.Message)
	}
	return o
}

// endEvent returns the audit log entry for the end of an execution. The entry contains numbers and names, but no data
// of the program.
func (x *execution) endEvent(o core.Outcome) core.AuditEvent {
	e := x.newEvent(core.EventEnd)
	e.Status, e.Risk, e.Tokens, e.Duration, e.Bytes = string(o.Status), o.Stats.Risk, o.Stats.Tokens, time.Since(x.began), int64(len(o.Result))
	e.Facts = map[string]any{"calls": o.Stats.ToolCalls, "output_bytes": len(o.Output)}
	for name, value := range map[string]string{"sandbox": o.Stats.Sandbox, "runtime": o.Stats.Runtime} {
		if value != "" {
			e.Facts[name] = value
		}
	}
	for name, n := range map[string]int{
		"refusals": x.counts.refusals, "cache_hits": o.Stats.CacheHits, "artifacts": len(o.Artifacts),
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

// recordReveal records in the audit log that personal data is about to be shown in place of tokens. toModel tells
// whether the model sees it, too, or only a person.
func (x *execution) recordReveal(toModel bool, text string) *core.Error {
	e := x.newEvent(core.EventReveal)
	e.Status, e.Facts = "person", map[string]any{"personal": countCategories(text)}
	if toModel {
		e.Status = "model"
	}
	e.Body = bodyOf(requestBody{Arguments: bodyOf(map[string]string{"text": x.hideText(text)})})
	return x.recordEvent(e, true)
}

// countCategories counts the tokens for personal data in a text, by the type of the data.
func countCategories(text string) map[string]int {
	found := map[string]int{}
	for _, m := range numberedToken().FindAllStringSubmatch(text, -1) {
		found[strings.ToLower(m[1])]++
	}
	return found
}

// recordSkill records in the audit log that a skill was saved.
func (x *execution) recordSkill(name, version string) *core.Error {
	e := x.newEvent(core.EventSkill)
	e.Status, e.Facts = "saved", map[string]any{"skill": name, "version": version}
	return x.recordEvent(e, false)
}
