package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

//lint:file-ignore SA1019 roots, sampling and logging are passed on between those who have them; only 2026-07-28 gives them up

const (
	// askPatience is how long an upstream server waits for the client's answer to its question.
	askPatience = 10 * time.Minute
	// gatherPause bounds how long the handler of a request waits for further questions after the first one. Questions
	// that upstream servers ask at about the same time are thus sent to the client together.
	gatherPause = 20 * time.Millisecond
	// maxParked bounds how many conversations may be parked at the same time. A parked conversation waits for its
	// client to call again with a person's answers, while the original request continues in the background.
	maxParked = 256
)

// conversation is one request of a client of protocol version 2026-07-28, with the questions that upstream servers
// ask during it. The client gets the questions as the result of the request and repeats the request with the answers.
// Meanwhile the original request continues.
type conversation struct {
	id string

	mu        sync.Mutex
	turn      *requestTurn
	method    string
	req       mcp.Request      // the most recent request of the conversation
	told      *core.ClientPeer // the client of that request
	round     int
	next      int
	questions map[string]*serverQuestion
	news      chan struct{} // holds one item when there are new questions
	parked    *time.Timer
}

// requestTurn represents the handling of one request of a client. The handling continues in the background after the
// client got questions as the result of the request.
type requestTurn struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when result and err are set
	result mcp.Result
	err    error
}

// serverQuestion represents a question of an upstream server that waits for the client's answer.
type serverQuestion struct {
	request mcp.InputRequest
	answer  chan json.RawMessage // receives the client's answer; has room for one
}

// openConversations stores the conversations of a Server that have not ended, by id.
type openConversations struct {
	mu  sync.Mutex
	all map[string]*conversation
}

func (c *openConversations) getConversation(id string) *conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all[id]
}

func (c *openConversations) addConversation(v *conversation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]*conversation{}
	}
	c.all[v.id] = v
}

// isFull reports whether maxParked conversations already wait for their clients.
func (c *openConversations) isFull() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, v := range c.all {
		if v.isWaiting() {
			n++
		}
	}
	return n >= maxParked
}

// removeConversation removes a conversation and cancels the handling of its request.
func (c *openConversations) removeConversation(v *conversation) {
	if t := v.currentTurn(); t != nil {
		t.cancel()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.all, v.id)
}

// withConversation returns a handler of requests that calls next. Upstream servers that work on a request can then
// send progress, log messages and questions to the client that made the request.
func (s *Server) withConversation(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "logging/setLevel":
			result, err := next(ctx, method, req)
			if p, ok := req.GetParams().(*mcp.SetLoggingLevelParams); ok && err == nil {
				s.wantsLog(string(p.Level))
			}
			return result, err
		case "tools/call", "prompts/get", "resources/read":
		default:
			return next(ctx, method, req)
		}
		if level, ok := req.GetParams().GetMeta()[mcp.MetaKeyLogLevel].(string); ok {
			s.wantsLog(level)
		}
		if isModern(req) {
			return s.continueConversation(ctx, next, method, req)
		}
		told, stop := progressPeer(ctx, req)
		defer stop()
		told.Ask, told.Samples = s.asksOver(req), canSample(capabilitiesOf(req))
		return next(core.WithPeer(ctx, told), method, req)
	}
}

func (s *Server) wantsLog(level string) {
	if w, ok := s.engine.(LogLevelSetter); ok {
		w.SetLogLevel(level)
	}
}

// continueConversation handles a request in its conversation: the conversation whose questions the request answers,
// or else a new one.
func (s *Server) continueConversation(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) (mcp.Result, error) {
	given, responses := broughtBy(req)
	var state requestState
	if given != "" {
		var refused *core.Error
		if state, refused = s.rounds.takeState(given, s.principal, digestOf(method, req), time.Now()); refused != nil {
			return nil, requestError(core.Outcome{Error: refused})
		}
		ctx = withRound(ctx, state)
	}
	c := s.talks.getConversation(state.Conversation)
	switch {
	case c == nil && state.Conversation != "" && state.Execution == "":
		return nil, peerError(core.KindInvalidArguments, "the requestState is no longer valid; make the request again")
	case c == nil:
		c = &conversation{id: rand.Text(), questions: map[string]*serverQuestion{}, news: make(chan struct{}, 1)}
		s.talks.addConversation(c)
	}
	stop := c.followRequest(ctx, method, req, state.Round)
	defer stop()
	c.deliverAnswers(responses)
	t := c.currentTurn()
	if t == nil || state.Execution != "" {
		t = c.beginTurn(ctx, next, method, req)
	}
	return s.awaitTurn(ctx, c, t)
}

func peerError(kind core.Kind, message string) error {
	return requestError(core.Outcome{Error: core.Errorf(kind, "mcpserver", "%s", message)})
}

func (c *conversation) currentTurn() *requestTurn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.turn
}

// beginTurn starts handling the request, with a context that outlives the request.
func (c *conversation) beginTurn(ctx context.Context, next mcp.MethodHandler, method string, req mcp.Request) *requestTurn {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	t := &requestTurn{cancel: cancel, done: make(chan struct{})}
	c.mu.Lock()
	c.turn = t
	own = core.WithPeer(own, c.clientPeer())
	c.mu.Unlock()
	go func() {
		defer close(t.done)
		defer cancel()
		t.result, t.err = next(own, method, req)
	}()
	return t
}

// clientPeer returns a core.ClientPeer, through which upstream servers reach the client. Each log message or progress
// report is sent over the most recent request of the conversation, because earlier requests may have been answered
// already. The caller must hold mu.
func (c *conversation) clientPeer() *core.ClientPeer {
	now := func() *core.ClientPeer {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.told
	}
	p := &core.ClientPeer{
		ID: c.told.ID, Forms: c.told.Forms, Pages: c.told.Pages, Samples: c.told.Samples,
		Log: func(params json.RawMessage) { now().Log(params) }, Ask: c.askClient,
	}
	if c.told.Progress != nil {
		p.Progress = func(params json.RawMessage) {
			if tell := now().Progress; tell != nil {
				tell(params)
			}
		}
	}
	return p
}

// awaitTurn waits until the request has been handled or upstream servers have asked questions. It returns the result
// or the questions.
func (s *Server) awaitTurn(ctx context.Context, c *conversation, t *requestTurn) (mcp.Result, error) {
	for done := false; !done; {
		select {
		case <-t.done:
			done = true
		case <-ctx.Done():
			s.talks.removeConversation(c)
			<-t.done
			return t.result, t.err
		case <-c.news:
			if c.gatherQuestions(t) {
				return s.answerWithQuestions(c, nil, "")
			}
		}
	}
	asked, ok := t.result.(*mcp.CallToolResult)
	if t.err != nil || !ok || asked.RequestState == "" {
		s.talks.removeConversation(c)
		return t.result, t.err
	}
	return s.answerWithQuestions(c, asked.InputRequests, asked.RequestState)
}

// answerWithQuestions returns the result that asks the client the open questions, and parks the conversation: it then
// waits until the client calls again. If too many conversations are parked already, it ends this one and returns an
// error.
func (s *Server) answerWithQuestions(c *conversation, more mcp.InputRequestMap, approvals string) (mcp.Result, error) {
	if s.talks.isFull() {
		s.talks.removeConversation(c)
		return nil, peerError(core.KindLimit, "too many requests are waiting for a person")
	}
	c.parkConversation(func() { s.talks.removeConversation(c) })
	return s.questionsResult(c, more, approvals)
}

// gatherQuestions waits briefly for further questions. It returns false if the request was answered in the meantime
// or if there are no questions.
func (c *conversation) gatherQuestions(t *requestTurn) bool {
	pause := time.NewTimer(gatherPause)
	defer pause.Stop()
	select {
	case <-t.done:
		return false
	case <-pause.C:
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.questions) > 0
}

// parkConversation marks the conversation as waiting for its client. If the client does not call again within
// askPatience, the function end is called, which ends the conversation.
func (c *conversation) parkConversation(end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parked = time.AfterFunc(askPatience, end)
}

// isWaiting reports whether the conversation waits until the client calls again.
func (c *conversation) isWaiting() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.parked != nil
}

// questionsResult returns the result that asks the client all open questions of a request: the questions of upstream
// servers, and those about approvals.
func (s *Server) questionsResult(c *conversation, more mcp.InputRequestMap, approvals string) (mcp.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var state requestState
	if approvals != "" {
		if err := json.Unmarshal([]byte(approvals), &state); err != nil {
			return nil, err
		}
	}
	state.Conversation, state.Round = c.id, max(state.Round, c.round+1)
	state.Principal, state.Call = s.principal, digestOf(c.method, c.req)
	if state.Expires.IsZero() {
		state.Expires = time.Now().Add(askPatience)
	}
	requests := mcp.InputRequestMap{}
	maps.Copy(requests, more)
	for id, q := range c.questions {
		requests[id] = q.request
	}
	text, err := s.rounds.issueState(state)
	if err != nil {
		return nil, err
	}
	raw, err := marshalPlain(map[string]any{"resultType": "input_required", "inputRequests": requests, "requestState": text})
	if err != nil {
		return nil, err
	}
	return &exactResult{raw: raw}, nil
}

// followRequest records that req is now the conversation's most recent request. Upstream servers reach the client
// through this request until stop is called. If the conversation was waiting for its client, the timer that would end
// the conversation is stopped.
func (c *conversation) followRequest(ctx context.Context, method string, req mcp.Request, round int) (stop func()) {
	told, stop := progressPeer(ctx, req)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.parked != nil {
		c.parked.Stop()
		c.parked = nil
	}
	c.method, c.req, c.told, c.round = method, req, told, max(c.round, round)
	return stop
}

// deliverAnswers passes the person's answers on to the upstream servers. A question without an answer is sent to the
// client again, but only a limited number of times.
func (c *conversation) deliverAnswers(responses mcp.InputResponseMap) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, q := range c.questions {
		text, err := marshalPlain(responses[id])
		if responses[id] == nil && c.round < maxRounds || err != nil {
			continue
		}
		delete(c.questions, id)
		q.answer <- text // null is no answer
	}
	if len(c.questions) > 0 {
		c.wakeRequest()
	}
}

// wakeRequest wakes the handler of the current request, so that it returns the open questions to the client.
func (c *conversation) wakeRequest() {
	select {
	case c.news <- struct{}{}:
	default:
	}
}

// askClient adds an upstream server's question to the next result that the client gets, and waits for the client's
// answer to the question.
func (c *conversation) askClient(ctx context.Context, a core.ServerRequest) (json.RawMessage, *core.Error) {
	c.mu.Lock()
	q := &serverQuestion{answer: make(chan json.RawMessage, 1)}
	var refused *core.Error
	if q.request, refused = questionOf(a, capabilitiesOf(c.req)); refused == nil && c.round >= maxRounds {
		refused = core.Errorf(core.KindLimit, "mcpserver", "the client was already asked %d times in one request", c.round)
	}
	if refused != nil {
		c.mu.Unlock()
		return nil, refused
	}
	c.next++
	id := fmt.Sprintf("ask-%d", c.next)
	c.questions[id] = q
	c.mu.Unlock()
	c.wakeRequest()
	timer := time.NewTimer(askPatience)
	defer timer.Stop()
	select {
	case answer := <-q.answer:
		return checkAnswer(a, answer)
	case <-ctx.Done():
		refused = core.Errorf(core.KindCancelled, "mcpserver", "the call was cancelled while the client was asked")
	case <-timer.C:
		refused = core.Errorf(core.KindUpstreamTimeout, "mcpserver", "no person answered within %s", askPatience)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.questions, id)
	return nil, refused
}

// asksOver returns a function that sends an upstream server's question to the client over the client's session and
// returns the answer. It is for protocol versions in which servers send requests to clients. It returns nil if the
// client has no session.
func (s *Server) asksOver(req mcp.Request) func(context.Context, core.ServerRequest) (json.RawMessage, *core.Error) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil
	}
	return func(ctx context.Context, a core.ServerRequest) (json.RawMessage, *core.Error) {
		request, refused := questionOf(a, capabilitiesOf(req))
		if refused != nil {
			return nil, refused
		}
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		if a.Method == core.MethodElicit {
			leave, ok := s.forms.awaitTurn(ctx, session, serverForm)
			if !ok {
				return nil, core.Errorf(core.KindUpstreamTimeout, "mcpserver", "the person was busy with other questions")
			}
			defer leave()
		}
		var result any
		var err error
		switch p := request.(type) {
		case *mcp.ElicitParams:
			result, err = session.Elicit(ctx, p)
			if err == nil && a.Done != nil {
				tellDone(ctx, session, p.ElicitationID, a.Done)
			}
		case *mcp.CreateMessageWithToolsParams:
			result, err = session.CreateMessageWithTools(ctx, p)
		}
		if err != nil {
			return nil, core.Errorf(core.KindToolError, "mcpserver", "the client did not answer: %w", err)
		}
		text, err := marshalPlain(result)
		if err != nil {
			return nil, core.AsError(err)
		}
		return checkAnswer(a, text)
	}
}

func capabilitiesOf(req mcp.Request) *mcp.ClientCapabilities {
	if r, ok := req.(interface {
		ClientCapabilities() *mcp.ClientCapabilities
	}); ok {
		return r.ClientCapabilities()
	}
	return nil
}

// maxQuestion bounds how much of the message of an upstream server's question is shown, in bytes. maxForm bounds the
// parameters of such a question, including the form's schema, in bytes. A question with more is refused.
const (
	maxQuestion = 8 << 10
	maxForm     = 64 << 10
)

func canElicit(c *mcp.ClientCapabilities) bool {
	return c != nil && c.Elicitation != nil && (c.Elicitation.Form != nil || c.Elicitation.URL == nil)
}

func canSample(c *mcp.ClientCapabilities) bool { return c != nil && c.Sampling != nil }

// questionOf converts an upstream server's question to the form in which the client gets it, with the name of the
// server. It returns an error if the client does not support such questions.
func questionOf(a core.ServerRequest, caps *mcp.ClientCapabilities) (mcp.InputRequest, *core.Error) {
	switch {
	case caps == nil,
		a.Method == core.MethodElicit && !canShowQuestion(caps, a),
		a.Method == core.MethodSample && !canSample(caps):
		return nil, core.Errorf(core.KindPolicy, "mcpserver", "nobody can be asked: the client does not support %s", a.Method)
	case len(a.Params) > maxForm && a.Method == core.MethodElicit:
		return nil, core.Errorf(core.KindLimit, "mcpserver", "the form has %d bytes; at most %d are allowed", len(a.Params), maxForm)
	case a.Method == core.MethodSample:
		var p mcp.CreateMessageWithToolsParams
		if err := json.Unmarshal(a.Params, &p); err != nil {
			return nil, core.Errorf(core.KindInvalidArguments, "mcpserver", "the sampling request cannot be read: %v", err)
		}
		p.Meta, p.IncludeContext = nil, "none" // it must not see messages of other servers
		return &p, nil
	}
	if a.Page != "" {
		return pageOf(a), nil
	}
	var form struct {
		Message string          `json:"message"`
		Schema  json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(a.Params, &form); err != nil {
		return nil, core.Errorf(core.KindInvalidArguments, "mcpserver", "the form cannot be read: %v", err)
	}
	text := fmt.Sprintf("The server %q asks this while its tool %s runs; the question is not from Retort. Do not enter passwords or keys.\n\n%s",
		a.Server, core.EscapeIllegible(a.Tool), core.EscapeIllegible(clippedTo(form.Message, maxQuestion)))
	p := &mcp.ElicitParams{Mode: "form", Message: text}
	if len(form.Schema) > 0 {
		if err := checkFlatForm(form.Schema); err != nil {
			return nil, err
		}
		p.RequestedSchema = form.Schema
	}
	return p, nil
}

func clippedTo(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.ToValidUTF8(text[:n], "") + fmt.Sprintf("… (%d bytes in all)", len(text))
}

// checkFlatForm refuses question schemas with nested fields. MCP allows only fields of primitive types.
func checkFlatForm(schema json.RawMessage) *core.Error {
	var s struct {
		Type       string `json:"type"`
		Properties map[string]struct {
			Type string `json:"type"`
		} `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil || s.Type != "object" {
		return core.Errorf(core.KindInvalidArguments, "mcpserver", "the schema of the form does not describe an object")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		if t := s.Properties[name].Type; t == "object" {
			return core.Errorf(core.KindInvalidArguments, "mcpserver", "the form's field %q is an object, which is not supported", clippedTo(name, 100))
		}
	}
	return nil
}

// checkAnswer returns the client's answer to a question unchanged if it has the members that such an answer needs.
// Otherwise it returns an error.
func checkAnswer(a core.ServerRequest, answer json.RawMessage) (json.RawMessage, *core.Error) {
	var r struct {
		Action string          `json:"action"`
		Role   json.RawMessage `json:"role"`
	}
	if json.Unmarshal(answer, &r) != nil || a.Method == core.MethodElicit && r.Action == "" || a.Method == core.MethodSample && r.Role == nil {
		return nil, core.Errorf(core.KindToolError, "mcpserver", "the client's answer is not valid for %s", a.Method)
	}
	return answer, nil
}

// progressPeer returns a core.ClientPeer that forwards progress and log messages of upstream servers to the client
// until stop is called. Progress is forwarded only if the client calls a single tool. If the client runs a program,
// Retort reports the program's progress itself.
func progressPeer(ctx context.Context, req mcp.Request) (p *core.ClientPeer, stop func()) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return shownBy(req), func() {}
	}
	queue := make(chan func(), 64)
	var told sync.WaitGroup
	told.Go(func() { // clients that do not read make no server wait
		for tell := range queue {
			tell()
		}
	})
	var mu sync.Mutex
	closed := false
	put := func(f func()) {
		mu.Lock()
		defer mu.Unlock()
		if closed {
			return
		}
		select {
		case queue <- f:
		default:
		}
	}
	p = shownBy(req)
	p.ID, p.Samples = fmt.Sprintf("%p", session), canSample(capabilitiesOf(req))
	p.Log = func(params json.RawMessage) { put(func() { tellLog(ctx, session, params) }) }
	if token := progressToken(req); token != nil && !isProgram(req) {
		p.Progress = func(params json.RawMessage) { put(func() { tellProgress(ctx, session, token, params) }) }
	}
	return p, func() {
		mu.Lock()
		closed = true
		mu.Unlock()
		close(queue)
		told.Wait()
	}
}

func progressToken(req mcp.Request) any {
	if p, ok := req.GetParams().(mcp.RequestParams); ok {
		return p.GetProgressToken()
	}
	return nil
}

func isProgram(req mcp.Request) bool {
	p, ok := req.GetParams().(*mcp.CallToolParamsRaw)
	return ok && (p.Name == "execute_code" || p.Name == "execute_task")
}

func tellProgress(ctx context.Context, session *mcp.ServerSession, token any, params json.RawMessage) {
	var p mcp.ProgressNotificationParams
	if json.Unmarshal(params, &p) != nil {
		return
	}
	p.ProgressToken, p.Meta = token, nil
	_ = session.NotifyProgress(ctx, &p)
}

// maxLogLine bounds the length of a log message from an upstream server, in bytes.
const maxLogLine = 64 << 10

func tellLog(ctx context.Context, session *mcp.ServerSession, params json.RawMessage) {
	var p struct {
		Level  mcp.LoggingLevel `json:"level"`
		Logger string           `json:"logger"`
		Data   json.RawMessage  `json:"data"`
	}
	if json.Unmarshal(params, &p) != nil || len(p.Data) > maxLogLine || len(p.Data) == 0 {
		return
	}
	_ = session.Log(ctx, &mcp.LoggingMessageParams{Level: p.Level, Logger: p.Logger, Data: p.Data})
}

// broughtBy returns the request state and the answers to questions that a repeated request contains.
func broughtBy(req mcp.Request) (state string, responses mcp.InputResponseMap) {
	switch p := req.GetParams().(type) {
	case *mcp.CallToolParamsRaw:
		return p.RequestState, p.InputResponses
	case *mcp.GetPromptParams:
		return p.RequestState, p.InputResponses
	case *mcp.ReadResourceParams:
		return p.RequestState, p.InputResponses
	}
	return "", nil
}
