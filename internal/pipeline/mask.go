package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"retort/internal/core"
	"retort/internal/pipeline/relay"
	"retort/internal/privacy/redact"
)

// privacyFilter filters data from servers for the relay. First it masks secrets, which can never be restored. Then it
// hides personal data. Without a SecretMasker it skips the first step, and without a redact.Session the second.
type privacyFilter struct {
	secrets SecretMasker
	*redact.Session
	seen    func(redact.TypeCounts)         // is called with the personal data of an answer
	named   func(arguments json.RawMessage) // is called with arguments that may have tokens
	spoke   func(value string) bool         // reports whether the model itself wrote a value
	crossed *allowedCrossings
}

func (p privacyFilter) Incoming(server string, document []byte) ([]byte, error) {
	if p.secrets != nil {
		document = p.secrets.Mask(document)
	}
	if p.Session == nil {
		return document, nil
	}
	var found redact.TypeCounts
	shown, err := p.Session.RedactAndCount(server, document, &found)
	p.seen(found)
	return shown, err
}

func (p privacyFilter) Restore(
	server string, arguments, schema json.RawMessage,
) (json.RawMessage, string, *core.Error) {
	if p.Session == nil {
		return arguments, "", nil
	}
	p.named(arguments)
	restored, crossings, refused := p.Session.RestoreBySchema(server, arguments, schema)
	if refused == nil {
		crossings = append(crossings, p.Session.FindCrossings(server, arguments, p.spoke)...)
	}
	if refused != nil || len(crossings) == 0 {
		return restored, "", refused
	}
	return restored, p.crossed.reasonFor(server, crossings), nil
}

// modelWrote reports whether the model wrote a value itself. In a call without a program, the model wrote all
// arguments. Otherwise the value must occur in the program. This also holds for a program that one model writes for
// another, because that model has seen only the values in its task.
func (x *programExecution) modelWrote(value string) bool {
	if x.exact != nil || x.req.Code == "" {
		return true
	}
	x.spokenOnce.Do(func() { x.spoken = redact.SpokenMatcher(x.req.Code) })
	return x.spoken(value)
}

// openPrivacy prepares the hiding of personal data in this execution, and replaces personal data in the program by
// tokens.
func (x *programExecution) openPrivacy() (err error) {
	x.code = x.req.Code
	if x.screenErr != nil || x.screen == nil {
		return x.screenErr
	}
	if x.plan != nil {
		x.plan.mask = x.maskJSON
	}
	if x.req.Private {
		x.code, err = x.screen.RedactSkill(x.req.Code)
	} else {
		x.code, err = x.screen.RedactProgram(x.req.Code)
	}
	return err
}

// maskJSON returns JSON with secrets and personal data hidden, as the model may see it.
func (x *programExecution) maskJSON(raw json.RawMessage) json.RawMessage {
	if x.pipeline.Secrets != nil {
		raw = x.pipeline.Secrets.Mask(raw)
	}
	if x.screen == nil || len(raw) == 0 {
		return raw
	}
	out, err := x.hideAround(raw, x.screen.RedactOutgoing)
	if err != nil {
		return json.RawMessage(`"(hidden)"`)
	}
	return out
}

// personalKeys returns a function that reports whether a key of a JSON object is personal data. It returns nil if
// keys are never hidden.
func (x *programExecution) personalKeys() func(key string) bool {
	session := x.screen
	if session == nil {
		return nil
	}
	return session.IsPersonalKey
}

// hideOutcome returns an Outcome as the model may see it: with personal data replaced by tokens. When it returns, the
// personal data behind these tokens is stored durably.
func (x *programExecution) hideOutcome(o core.Outcome) core.Outcome {
	if x.screen == nil {
		return o
	}
	before := o
	if x.screen.IsFull() {
		o.Warnings = append(o.Warnings, fullWarning)
	}
	o = x.hideTexts(reflect.ValueOf(o)).Interface().(core.Outcome)
	o.PIITokenized = o.PIITokenized || x.hasTokens(before, o)
	if err := x.screen.SyncTokens(); err != nil {
		return core.Outcome{ExecutionID: o.ExecutionID, Status: core.StatusError, Error: core.AsError(err), Stats: o.Stats}
	}
	return o
}

const fullWarning = "this session has as many different names, companies, addresses and dates of birth as it can find " +
	"again; programs get tokens for further ones; request less data, or use another session"

// engineFields lists the fields of an Outcome that only the engine writes: from settings, closed lists and its own IDs.
// Programs and servers cannot write text into these fields. hideTexts hides personal data in all other texts.
var engineFields = map[string]bool{
	"Outcome.ExecutionID": true, "Outcome.Status": true, "Outcome.Task": true, "Error.Kind": true, "Error.Server": true,
	"Error.Tool": true,
	"Error.Op":   true, "Error.Err": true, "Outcome.Stats": true, "Outcome.Trace": true, "Outcome.Approvals": true,
	"IntendedCall.Server": true, "IntendedCall.Tool": true, "IntendedCall.Effect": true, "SentCall.Server": true,
	"SentCall.Tool":   true,
	"SentCall.Effect": true, "Outcome.TaskContext": true,
}

// hideTexts returns a copy of a part of an Outcome in which personal data is hidden in all texts, except in
// engineFields. It leaves out values of kinds that it does not know, for example interfaces.
func (x *programExecution) hideTexts(v reflect.Value) reflect.Value {
	out := reflect.New(v.Type()).Elem()
	switch v.Kind() {
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		return v
	case reflect.String:
		out.SetString(x.screen.RedactText(v.String()))
	case reflect.Pointer:
		if !v.IsNil() {
			out.Set(reflect.New(v.Type().Elem()))
			out.Elem().Set(x.hideTexts(v.Elem()))
		}
	case reflect.Slice:
		return x.hideSlice(v)
	case reflect.Map:
		if !v.IsNil() {
			out.Set(reflect.MakeMap(v.Type()))
		}
		for key, value := range v.Seq2() {
			out.SetMapIndex(x.hideTexts(key), x.hideTexts(value))
		}
	case reflect.Struct:
		out.Set(v)
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && !engineFields[v.Type().Name()+"."+f.Name] {
				out.Field(i).Set(x.hideTexts(v.Field(i)))
			}
		}
	}
	return out
}

func (x *programExecution) hideSlice(v reflect.Value) reflect.Value {
	if v.IsNil() {
		return v
	}
	out := reflect.MakeSlice(v.Type(), 0, v.Len())
	switch raw := v.Interface().(type) {
	case json.RawMessage:
		return reflect.ValueOf(x.maskJSON(raw))
	case []byte:
		return reflect.ValueOf([]byte(x.screen.RedactText(string(raw))))
	}
	for i := range v.Len() {
		out = reflect.Append(out, x.hideTexts(v.Index(i)))
	}
	return out
}

// hasTokens reports whether personal data was replaced by tokens anywhere in this execution: in the program, in a
// server's answer or in the Outcome. The argument before is the Outcome with personal data, and now is the same
// Outcome with tokens.
func (x *programExecution) hasTokens(before, now core.Outcome) bool {
	return x.sawPersonal() || x.code != x.req.Code || now.Output != before.Output ||
		string(now.Result) != string(before.Result) ||
		x.screen.HasTokens(now.Result) || x.screen.HasTokens([]byte(now.Output))
}

// tokenFunctions returns the functions with which a program can compute with personal data without seeing it. The
// program passes the tokens that stand for the personal data.
func (x *programExecution) tokenFunctions() map[string]relay.EngineFunction {
	type arguments struct {
		Token  string   `json:"token"`
		Other  string   `json:"other"`
		Tokens []string `json:"tokens"`
	}
	help := func(f func(arguments) (any, *core.Error)) relay.EngineFunction {
		return func(_ context.Context, raw json.RawMessage) (any, error) {
			var a arguments
			if err := json.Unmarshal(raw, &a); err != nil {
				return nil, core.Errorf(core.KindInvalidArguments, "pii", "%v", err)
			}
			answer, refused := f(a)
			if refused != nil {
				if errors.Is(refused, redact.ErrProbing) || errors.Is(refused, redact.ErrUnknown) {
					x.recordRefusal(core.ToolCall{}, refused)
				}
				return nil, refused
			}
			return answer, nil
		}
	}
	return map[string]relay.EngineFunction{
		"pii_domain":  help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.EmailDomain(a.Token)) }),
		"pii_equals":  help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.EqualValues(a.Token, a.Other)) }),
		"pii_mask":    help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.MaskToken(a.Token)) }),
		"pii_country": help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.CountryOf(a.Token)) }),
		"pii_ranks":   help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.RankValues(a.Tokens)) }),
		"pii_age":     help(func(a arguments) (any, *core.Error) { return asAnswer(x.screen.AgeOf(a.Token, time.Now())) }),
	}
}

func asAnswer[T any](v T, err *core.Error) (any, *core.Error) { return v, err }

// SanitizeText replaces personal data in a text by tokens. It also returns how many personal values of each type it
// found.
func (p *Pipeline) SanitizeText(session, text string) (string, map[string]int, error) {
	open, err := p.privacySession(session)
	if err != nil || open == nil {
		return text, map[string]int{}, err
	}
	clean, found, err := open.RedactAndCountTypes(text)
	if err == nil {
		err = open.SyncTokens()
	}
	if err != nil {
		return "", nil, err
	}
	return clean, found, nil
}

// ShowValues returns an Outcome for a person: tokens in it are replaced by the personal data that they stand for.
func (p *Pipeline) ShowValues(session string, o core.Outcome) (core.Outcome, error) {
	open, err := p.privacySession(session)
	if err != nil || open == nil {
		return o, err
	}
	o.Result, o.Output = open.ShowJSON(o.Result), open.ShowText(o.Output)
	return o, nil
}

// privacySession returns the redact.Session that hides personal data in a session of this principal. It returns nil
// if no personal data is hidden.
func (p *Pipeline) privacySession(session string) (*redact.Session, error) {
	if p.Privacy == nil {
		return nil, nil
	}
	return p.Privacy.OpenSession(redact.SessionName(p.Policy.Principal(), session))
}

// Restore shows a person a text in which tokens are replaced by the personal data that they stand for. The answer to
// the model contains that data only if the settings allow it.
func (p *Pipeline) Restore(ctx context.Context, req core.ExecutionRequest, text string) core.Outcome {
	p, req = p.forNewExecution(), p.completeRequest(req)
	return p.startExecution(ctx, req, map[string]any{"restore_pii": true}, requestBody{Arguments: bodyOf(
		map[string]string{"text": text},
	)}, func(ctx context.Context, x *execution) core.Outcome {
		o, err := core.Outcome{ExecutionID: req.ID, Status: core.StatusOK}, x.screenErr
		if err == nil {
			shown := text
			if x.screen != nil {
				shown = x.screen.ShowText(text)
			}
			o.Result, err = x.revealValues(ctx, text, shown)
		}
		if err != nil {
			o.Error = core.AsError(err)
			o.Status = statusOf(o.Error)
		}
		return o
	})
}

// revealValues asks a person to approve that a text is shown with personal data in place of its tokens. It refuses a
// text without tokens and then does not ask.
func (x *execution) revealValues(ctx context.Context, text, shown string) (json.RawMessage, error) {
	p, req := x.pipeline, x.req
	if shown == text {
		return nil, core.Errorf(core.KindInvalidArguments, "pii", "the text contains no token of this session").
			WithHint("tokens look like [EMAIL_1]; use tokens that sanitize_pii or a result returned in this session")
	}
	values, err := json.Marshal(map[string]string{"text": shown})
	if err != nil {
		return nil, err
	}
	tokens, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		return nil, err
	}
	rule := "restore_pii: only you see the values; the model learns only that you have seen them"
	if !p.ShowInForms {
		rule += ". A form of a client shows tokens instead (pii.showInForms): retort approvals show prints the values while this request waits"
	}
	if p.RestoreToModel {
		rule = "restore_pii: because of pii.restoreToModel, the model sees these values if you approve"
	}
	q := core.Question{
		Execution: req.ID, Session: req.Session, Client: req.Client, Server: "retort", Tool: "restore_pii",
		Arguments: values, Shown: tokens, Effect: core.EffectRead.String(), Rule: rule, Policy: p.Policy.PolicyVersion(),
	}
	q.Principal, q.Entries, q.ShowInForms = p.Policy.Principal(), p.Policy.GroupEntries(), p.ShowInForms
	by, refused := p.Approvals.Table.AskBy(ctx, q)
	if refused != nil {
		return nil, refused
	}
	if err := x.recordReveal(p.RestoreToModel, text); err != nil {
		return nil, err
	}
	if p.RestoreToModel {
		return values, nil
	}
	if by == "client" && !p.ShowInForms {
		return json.RawMessage(
			`{"shown":false,"hint":"the form had tokens: the person sees the values with retort approvals show while the question waits, or in the form itself with the setting pii.showInForms"}`,
		), nil
	}
	return json.RawMessage(`{"shown":true}`), nil
}
