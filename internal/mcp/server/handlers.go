package server

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// decodeArguments decodes the arguments of a call into a struct. Arguments that withoutUnset removes count as not
// given. For an argument that the struct has no field for, decodeArguments returns an error that suggests a similar
// name.
func decodeArguments(req *mcp.CallToolRequest, into any) error {
	raw := req.Params.Arguments
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	var given map[string]json.RawMessage
	if err := json.Unmarshal(raw, &given); err != nil {
		return core.Errorf(core.KindInvalidArguments, "mcpserver", "the arguments must be one JSON object")
	}
	fields := reflect.TypeOf(into).Elem()
	known := argumentNames(fields)
	for name := range given {
		if err := checkName(name, known); err != nil {
			return err
		}
	}
	all := len(given)
	if given = withoutUnset(given, fields); len(given) < all {
		var err error
		if raw, err = json.Marshal(given); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return core.Errorf(core.KindInvalidArguments, "mcpserver", "%s", typeMessage(err))
	}
	return nil
}

// argumentNames returns the JSON names of a struct's fields, including the fields of embedded structs.
func argumentNames(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			names = append(names, argumentNames(f.Type)...)
		} else {
			names = append(names, f.Tag.Get("json"))
		}
	}
	return names
}

func checkName(name string, known []string) error {
	for _, k := range known {
		if k == name {
			return nil
		}
	}
	e := core.Errorf(core.KindInvalidArguments, "mcpserver", "there is no argument %q", name)
	if near := core.NearestNames(name, known, 1); len(near) > 0 {
		return e.WithHint("did you mean %q?", near[0])
	}
	return e.WithHint("arguments: %v", known)
}

func typeMessage(err error) string {
	if t, ok := err.(*json.UnmarshalTypeError); ok {
		return fmt.Sprintf("argument %q: expected %s, got %s", t.Field, jsonName(t.Type.Kind().String()), t.Value)
	}
	return err.Error()
}

func jsonName(kind string) string {
	switch kind {
	case "int", "int64", "float64":
		return "number"
	case "bool":
		return "boolean"
	case "slice":
		return "array"
	case "map", "struct":
		return "object"
	}
	return kind
}

func checkRequired(name, value string) error {
	if value == "" {
		return core.Errorf(core.KindInvalidArguments, "mcpserver", "missing %q", name)
	}
	return nil
}

// Searcher finds and describes the tools of upstream servers.
type Searcher interface {
	Search(ctx context.Context, q core.ToolQuery) (core.FoundTools, error)
	// DescribeIn returns the definitions of those named tools that belong to the category. If category is empty,
	// tools of all categories are described.
	DescribeIn(ctx context.Context, category string, names []string, lang core.Language) ([]core.ToolDefinition, error)
	// Sample makes one call of a tool that only reads. The result of its Outcome is the core.ToolDefinition of the tool
	// with the type of the call's result.
	Sample(ctx context.Context, req core.ExecutionRequest, s core.SampleRequest) core.Outcome
}

func (s *Server) searchTools(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Query    string            `json:"query"`
		Detail   core.SearchDetail `json:"detail_level"`
		Server   string            `json:"server"`
		Category string            `json:"category"`
		Limit    int               `json:"limit"`
		Language core.Language     `json:"language"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	found, err := s.engine.Search(ctx, core.ToolQuery{
		Text: a.Query, Detail: a.Detail, Server: a.Server, Category: a.Category, Limit: a.Limit, Language: a.Language,
	})
	for i := range found.Tools {
		found.Tools[i].Cached = false // a model cannot use it: a call starts the server
	}
	return found, err
}

func (s *Server) describeTools(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Name      string          `json:"name"`
		Names     []string        `json:"names"`
		Category  string          `json:"category"`
		Language  core.Language   `json:"language"`
		Sample    bool            `json:"sample"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	names := a.Names
	if a.Name != "" {
		names = append([]string{a.Name}, names...)
	}
	switch {
	case a.Sample && len(names) == 1:
		return s.sampleTool(ctx, req, core.SampleRequest{Name: names[0], Category: a.Category, Arguments: a.Arguments, Language: a.Language}), nil
	case a.Sample:
		return nil, core.Errorf(core.KindInvalidArguments, "mcpserver", "sample takes the name of one tool, not of %d", len(names))
	case len(a.Arguments) > 0:
		return nil, core.Errorf(core.KindInvalidArguments, "mcpserver", `"arguments" are those of the sample`).WithHint("add sample: true")
	}
	definitions, err := s.engine.DescribeIn(ctx, a.Category, names, a.Language)
	if err != nil {
		return nil, err
	}
	return map[string]any{"definitions": definitions}, nil
}

// sampleTool returns the definition of a tool with the type of its result, which it learns from one call. If the call
// fails or waits, it returns the Outcome.
func (s *Server) sampleTool(ctx context.Context, req *mcp.CallToolRequest, r core.SampleRequest) any {
	model, version := modelOf(req)
	o := s.engine.Sample(s.withApprovalChannel(ctx, req), core.ExecutionRequest{Client: clientName(req), Model: model, ModelVersion: version}, r)
	if o.Status != core.StatusOK {
		return s.answerOutcome(req, o, 0)
	}
	return map[string]any{"definitions": []json.RawMessage{o.Result}}
}

func (s *Server) executeCode(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	request, err := programRequest(req)
	if err != nil {
		return nil, err
	}
	progress, stop := reportProgress(ctx, req)
	defer stop()
	request.Progress = progress
	return s.answerOutcome(req, s.engine.Execute(s.withApprovalChannel(ctx, req), request), 0), nil
}

// Executor runs programs and single tool calls.
type Executor interface {
	Execute(ctx context.Context, req core.ExecutionRequest) core.Outcome
	Call(ctx context.Context, req core.ExecutionRequest, name string, arguments json.RawMessage) core.Outcome
	// Resume waits for the end of a pending execution and returns its Outcome. If a person has not decided when the
	// duration patience is over, the Outcome is pending again.
	Resume(ctx context.Context, id string, patience time.Duration) core.Outcome
	// CancelExecution cancels a pending execution and returns its Outcome.
	CancelExecution(ctx context.Context, id string) core.Outcome
}

// programRequest converts a call of execute_code to an execution request.
func programRequest(req *mcp.CallToolRequest) (r core.ExecutionRequest, err error) {
	var a struct {
		Code      string        `json:"code"`
		Language  core.Language `json:"language"`
		TimeoutMS int64         `json:"timeout_ms"`
		Sandbox   string        `json:"sandbox"`
		Session   string        `json:"session"`
		DryRun    bool          `json:"dry_run"`
		careArguments
	}
	if err := decodeArguments(req, &a); err != nil {
		return r, err
	}
	if err := checkRequired("code", a.Code); err != nil {
		return r, err
	}
	if a.TimeoutMS < 0 || a.TimeoutMS > int64(24*time.Hour/time.Millisecond) {
		return r, core.Errorf(core.KindInvalidArguments, "mcpserver", "argument \"timeout_ms\": %d is not between 0 and a day", a.TimeoutMS)
	}
	model, version := modelOf(req)
	r = core.ExecutionRequest{
		Model: model, ModelVersion: version,
		Session: a.Session, Client: clientName(req), Language: a.Language, Code: a.Code, Sandbox: a.Sandbox, DryRun: a.DryRun,
		Limits: core.Limits{Timeout: time.Duration(a.TimeoutMS) * time.Millisecond},
	}
	return r, a.applyTo(&r)
}

func (s *Server) callTool(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("name", a.Name); err != nil {
		return nil, err
	}
	model, version := modelOf(req)
	return s.answerOutcome(
		req,
		s.engine.Call(
			s.withApprovalChannel(ctx, req),
			core.ExecutionRequest{Client: clientName(req), Model: model, ModelVersion: version}, a.Name, a.Arguments,
		),
		0,
	), nil
}

func (s *Server) resumeExecution(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		ID     string `json:"execution_id"`
		Cancel bool   `json:"cancel"`
	}
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	if err := checkRequired("execution_id", a.ID); err != nil {
		return nil, err
	}
	if a.Cancel {
		o := s.engine.CancelExecution(ctx, a.ID)
		o.Approvals = withoutKnown(o.Approvals)
		return o, nil
	}
	defer s.reportWaiting(ctx, req, a.ID)()
	return s.answerOutcome(req, s.engine.Resume(s.withApprovalChannel(ctx, req), a.ID, resumeWait(req)), 0), nil
}

// waitingInterval is the time between progress notifications of a call that waits for a person.
const waitingInterval = 5 * time.Second

// reportWaiting reports to the client that an execution waits for a person, and until when, if the client asked for
// progress. It repeats the report until stop is called.
func (s *Server) reportWaiting(ctx context.Context, req *mcp.CallToolRequest, execution string) (stop func()) {
	tell, end := sendNotices(ctx, req)
	if tell == nil {
		return end
	}
	ctx, cancel := context.WithCancel(ctx)
	var reporting sync.WaitGroup
	reporting.Go(func() {
		tick := time.NewTicker(waitingInterval)
		defer tick.Stop()
		for n := 1; ctx.Err() == nil; n++ {
			if waiting := s.engine.Waiting(execution); len(waiting) > 0 {
				until := waiting[len(waiting)-1].Expires.UTC().Format("15:04 MST")
				tell(progressNotice{n, "waiting for a person until " + until})
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	})
	return func() { cancel(); reporting.Wait(); end() }
}

// StatsKeeper returns the statistics of executions, tool calls and tokens.
type StatsKeeper interface {
	Stats(ctx context.Context, session string) any
}

func (s *Server) executionStats(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	var a struct {
		Session string `json:"session"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return nil, err
	}
	return s.engine.Stats(ctx, a.Session), nil
}

// TextSanitizer replaces personal data in texts.
type TextSanitizer interface {
	// Sanitize replaces personal data in a text by tokens, and counts the values of each type.
	Sanitize(session, text string) (string, map[string]int, error)
	// Restore shows a person the values behind the tokens in a text. The Outcome does not contain the values.
	Restore(ctx context.Context, req core.ExecutionRequest, text string) core.Outcome
}

func (s *Server) sanitizeText(_ context.Context, req *mcp.CallToolRequest) (any, error) {
	text, err := textArgument(req)
	if err != nil {
		return nil, err
	}
	clean, found, err := s.engine.Sanitize("", text)
	if err != nil {
		return nil, err
	}
	return map[string]any{"text": clean, "found": found}, nil
}

func (s *Server) restoreText(ctx context.Context, req *mcp.CallToolRequest) (any, error) {
	if req.Params.RequestState != "" {
		return s.resumeAnswered(ctx, req)
	}
	text, err := textArgument(req)
	if err != nil {
		return nil, err
	}
	return s.answerOutcome(req, s.engine.Restore(s.withApprovalChannel(ctx, req), core.ExecutionRequest{Client: clientName(req)}, text), 0), nil
}

// textArgument returns the argument of a tool that takes a single text.
func textArgument(req *mcp.CallToolRequest) (string, error) {
	var a struct {
		Text string `json:"text"`
	}
	if err := decodeArguments(req, &a); err != nil {
		return "", err
	}
	return a.Text, checkRequired("text", a.Text)
}

func clientName(req *mcp.CallToolRequest) string {
	if p := req.Session.InitializeParams(); p != nil && p.ClientInfo != nil {
		return p.ClientInfo.Name + " " + p.ClientInfo.Version
	}
	return ""
}

// modelOf returns the model that a client names in the _meta of a call. Its name and version are in "model" and
// "modelVersion", or in "name" and "version" of an object "model". It ignores values that are not plain names,
// because any client can send them.
func modelOf(req *mcp.CallToolRequest) (model, version string) {
	text := func(v any) string {
		s, _ := v.(string)
		if len(s) > maxModel || strings.Trim(s, plainModel) != "" {
			return ""
		}
		return s
	}
	meta := req.Params.GetMeta()
	if m, ok := meta["model"].(map[string]any); ok {
		return text(m["name"]), text(m["version"])
	}
	return text(meta["model"]), text(meta["modelVersion"])
}

const (
	maxModel   = 100 // maximum length of a model's name or version, in bytes
	plainModel = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:/-"
)

// progressInterval is the shortest interval between progress notifications.
const progressInterval = 200 * time.Millisecond

// progressNotice represents a progress notification to the client.
type progressNotice struct {
	n    int
	text string
}

// reportProgress returns a function that reports to the client how many tool calls a program has made so far, if the
// client asked for progress. That function never blocks. The second function, stop, waits until the last notification
// is sent.
func reportProgress(ctx context.Context, req *mcp.CallToolRequest) (progress func(int), stop func()) {
	tell, stop := sendNotices(ctx, req)
	if tell == nil {
		return nil, stop
	}
	return func(n int) { tell(progressNotice{n, fmt.Sprintf("%d tool calls", n)}) }, stop
}

// reportSteps returns a function that reports the steps of an agent task, if the client asked for progress. If steps
// follow each other quickly, only the newest one is sent.
func reportSteps(ctx context.Context, req *mcp.CallToolRequest) (progress func(core.TaskStep), stop func()) {
	tell, stop := sendNotices(ctx, req)
	if tell == nil {
		return nil, stop
	}
	var n atomic.Int64
	return func(s core.TaskStep) { tell(progressNotice{int(n.Add(1)), string(s.Phase) + ": " + s.Text}) }, stop
}

// sendNotices returns a function that sends progress notifications, or nil if the client did not ask for progress.
func sendNotices(ctx context.Context, req *mcp.CallToolRequest) (tell func(progressNotice), stop func()) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil, func() {}
	}
	latest, done := make(chan progressNotice, 1), make(chan struct{})
	say := func(one progressNotice) {
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
			ProgressToken: token, Progress: float64(one.n), Message: one.text,
		})
	}
	var telling sync.WaitGroup
	telling.Go(func() {
		for open := true; open; {
			select {
			case <-done:
				open = false
			case one := <-latest:
				say(one)
				select {
				case <-done:
					open = false
				case <-time.After(progressInterval):
				}
			}
		}
		select {
		case one := <-latest:
			say(one)
		default:
		}
	})
	return keepNewest(latest), func() { close(done); telling.Wait() }
}

// keepNewest returns a function that puts a progress notification into the channel latest, which has room for one. If
// a notification is already waiting there to be sent, only the newer of the two, with the larger number, is kept.
func keepNewest(latest chan progressNotice) func(progressNotice) {
	var mu sync.Mutex
	return func(n progressNotice) {
		mu.Lock()
		defer mu.Unlock()
		select {
		case waiting := <-latest:
			if waiting.n > n.n {
				n = waiting
			}
		default:
		}
		latest <- n
	}
}

// marshalPlain encodes v as JSON without HTML escapes, which cost tokens and are hard to read.
func marshalPlain(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}
