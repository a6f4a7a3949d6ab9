package server

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// multiRoundTrip is the first protocol version in which a server asks questions in its result, and the client repeats
// the call with the answers.
const multiRoundTrip = "2026-07-28"

// maxRounds bounds how many times one call is answered with questions, because clients give up after ten such
// answers. After that, the call is answered with a pending execution.
const maxRounds = 8

// Approver lists the approvals that wait for a person and accepts the person's decisions.
type Approver interface {
	// Waiting returns the waiting approvals of one execution, or of all executions if the id is empty.
	Waiting(execution string) []core.Approval
	// Decide answers the approval with the given id. digest must be the digest that the approval had when it was
	// shown to the person.
	Decide(id, digest string, a core.ApprovalAnswer) error
}

// canShowForms reports whether the client can show forms to a person.
func canShowForms(req mcp.Request) bool { return canElicit(capabilitiesOf(req)) }

// canOpenAddresses reports whether the client can show a person an address to open.
func canOpenAddresses(req mcp.Request) bool {
	c := capabilitiesOf(req)
	return c != nil && c.Elicitation != nil && c.Elicitation.URL != nil
}

// canShow reports whether the client can show an approval to a person.
func canShow(req mcp.Request, a core.Approval) bool {
	if a.Login != "" {
		return canOpenAddresses(req)
	}
	return canShowForms(req)
}

// resumeWait returns how long resume_execution waits for a person's decision. The time is shorter than the timeouts of
// clients. It is 0 if the client shows forms and gets questions as results, because then the client asks the person
// immediately.
func resumeWait(req mcp.Request) time.Duration {
	if canShowForms(req) && isModern(req) {
		return 0 // the person is asked at once
	}
	return 25 * time.Second
}

// withApprovalChannel returns a context with an approval channel that asks the person at the client. It adds the
// channel only if the protocol version lets servers send requests.
func (s *Server) withApprovalChannel(ctx context.Context, req mcp.Request) context.Context {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok || isModern(req) {
		if canOpenAddresses(req) {
			ctx = core.WithBrowser(ctx, nil) // such a client makes its request again
		}
		return ctx
	}
	shown := &openedPages{session: session}
	if canOpenAddresses(req) {
		ctx = core.WithBrowser(ctx, func(address string) { shown.closePage(ctx, address) })
	}
	if !canShowForms(req) && !canOpenAddresses(req) {
		return ctx
	}
	return core.WithChannel(ctx, func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		if !canShow(req, a) {
			return core.ApprovalAnswer{}, false
		}
		leave, ok := s.forms.awaitTurn(ctx, session, a.Danger())
		if !ok {
			return core.ApprovalAnswer{}, false
		}
		defer leave()
		shown.addPage(a)
		result, err := session.Elicit(ctx, approvalForm(a))
		if err != nil {
			return core.ApprovalAnswer{}, false
		}
		return answerOf(a, result), true
	})
}

// openedPages records, by address, the pages that a client was asked to open. When the person has finished with a
// page, the client is notified so that it can close the page.
type openedPages struct {
	session *mcp.ServerSession
	mu      sync.Mutex
	ids     map[string]string // ids of the questions that a page belongs to, by the page's address
}

func (p *openedPages) addPage(a core.Approval) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ids == nil {
		p.ids = map[string]string{}
	}
	if a.Login != "" {
		p.ids[a.Login] = a.ID
	}
}

func (p *openedPages) closePage(ctx context.Context, address string) {
	p.mu.Lock()
	id := p.ids[address]
	delete(p.ids, address)
	p.mu.Unlock()
	if id != "" {
		_ = p.session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id})
	}
}

// answerOutcome returns the answer to a call: the execution's Outcome, or the open questions if the client accepts
// questions as results and can show them to a person. round is the number of times that this call was already
// answered with questions.
func (s *Server) answerOutcome(req mcp.Request, o core.Outcome, round int) any {
	o.Approvals = withoutKnown(o.Approvals)
	if o.Status != core.StatusPendingApproval {
		if o.DryRun && len(o.Approvals) > 0 { // its effects wait for approval
			s.offerResume()
		}
		return o
	}
	waiting := slices.DeleteFunc(s.engine.Waiting(o.ExecutionID), func(a core.Approval) bool { return !canShow(req, a) })
	if len(waiting) == 0 || !isModern(req) || round >= maxRounds {
		s.offerResume()
		return o
	}
	state := requestState{Execution: o.ExecutionID, Round: round + 1, Digests: map[string]string{}}
	result := &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{}}
	for _, a := range formsOfRound(waiting) {
		state.Digests[a.ID] = a.Digest
		result.InputRequests[nameOf(a)] = approvalForm(a)
		if a.Expires.After(state.Expires) {
			state.Expires = a.Expires
		}
	}
	text, err := json.Marshal(state) // it is signed on its way to the client
	if err != nil {
		return o
	}
	result.RequestState = string(text)
	return result
}

// withoutKnown returns approvals without what the model knows already, such as the execution, and without what only
// the person who decides needs.
func withoutKnown(approvals []core.Approval) []core.Approval {
	list := slices.Clone(approvals)
	for i := range list {
		a := &list[i]
		a.Execution, a.Session, a.Principal, a.Client, a.Language, a.Digest = "", "", "", "", "", ""
		a.Reasons, a.Risk, a.Level = nil, 0, "" // the rule says why
	}
	return list
}

// resumeAnswered continues an execution when the client repeats its call with the person's answers. It ignores the
// arguments of the repeated call: the execution already runs with the arguments of the first call, and nothing runs
// twice.
func (s *Server) resumeAnswered(ctx context.Context, req mcp.Request) (any, error) {
	state, ok := roundOf(ctx)
	if !ok {
		return nil, errNoRound()
	}
	_, responses := broughtBy(req)
	for a, answer := range answersTo(s.engine.Waiting(state.Execution), responses) {
		_ = s.engine.Decide(a.ID, state.Digests[a.ID], answer) // another answer was faster
	}
	return s.answerOutcome(req, s.engine.Resume(ctx, state.Execution, 0), state.Round), nil
}

// idSeparator separates the ids in the name of a form. The name consists of several ids if the form shows several
// equal questions together.
const idSeparator = "+"

// nameOf returns the name of a form, under which the client sends the person's answer back. It contains the ids of
// all questions that the form shows, so that the answer does not apply to later questions.
func nameOf(a core.Approval) string {
	return strings.Join(append([]string{a.ID}, a.Same...), idSeparator)
}

// answersTo yields each waiting approval that the client's responses answer, together with the answer. The oldest
// approval comes first.
func answersTo(waiting []core.Approval, responses mcp.InputResponseMap) iter.Seq2[core.Approval, core.ApprovalAnswer] {
	return func(yield func(core.Approval, core.ApprovalAnswer) bool) {
		named := map[string][]string{}
		for name := range responses {
			ids := strings.Split(name, idSeparator)
			named[ids[0]] = ids
		}
		for _, a := range waiting {
			ids := named[a.ID]
			result, ok := responses[strings.Join(ids, idSeparator)].(*mcp.ElicitResult)
			if !ok {
				continue
			}
			answer := answerOf(a, result)
			answer.Also = ids[1:]
			if !yield(a, answer) {
				return
			}
		}
	}
}

// denied is the value that a completed form contains if the person has denied the approval.
const denied = "no"

// approvalForm returns the form that asks a person to decide a waiting approval.
func approvalForm(a core.Approval) *mcp.ElicitParams {
	if a.Login != "" {
		return &mcp.ElicitParams{
			Mode: "url", URL: a.Login, ElicitationID: a.ID,
			Message: fmt.Sprintf("%s needs you to log in. The program that waits for it then continues.", core.EscapeIllegible(a.Server)),
		}
	}
	var values, titles []string
	for _, scope := range a.Scopes() {
		values, titles = append(values, string(scope)), append(titles, a.ScopeTitle(scope))
	}
	schema := map[string]any{
		"type": "object", "required": []string{"decision"},
		"properties": map[string]any{
			"decision": map[string]any{"type": "string", "title": "Decision", "enum": append(values, denied), "enumNames": append(titles, "No")},
			"note":     map[string]any{"type": "string", "title": "Why not", "description": "the model sees it"},
		},
	}
	if len(values) > 1 {
		schema["properties"].(map[string]any)["calls"] = map[string]any{
			"type": "integer", "minimum": a.LeastCalls(), "title": callsTitle(a), "description": "with an approval for the rest of this run",
		}
	}
	if !a.ShowInForms {
		a = a.ForModel() // a client may tell the model what is in a form
	}
	a.Code, a.Change = clipCode(a.Code, a.ID), clipCode(a.Change, a.ID)
	a.Skills = slices.Clone(a.Skills)
	for i, s := range a.Skills {
		a.Skills[i].Code = clipCode(s.Code, a.ID)
	}
	return &mcp.ElicitParams{Mode: "form", Message: a.RenderText(), RequestedSchema: schema}
}

// callsTitle returns the title of the field for the limit on calls.
func callsTitle(a core.Approval) string {
	if a.Start {
		return "At most this many calls of each tool"
	}
	return "At most this many calls"
}

// maxCode bounds how many bytes of a program or of a changed definition a form shows. Arguments are always shown
// completely.
const maxCode = 8 << 10

func clipCode(code, id string) string {
	if len(code) <= maxCode {
		return code
	}
	end := maxCode
	for end > 0 && !utf8.RuneStart(code[end]) {
		end--
	}
	return fmt.Sprintf("%s\n… %d more bytes; to see all of it: retort approvals show %s", code[:end], len(code)-end, id)
}

// answerOf converts a completed form to an answer. Anything but a clear approval counts as a denial.
func answerOf(a core.Approval, r *mcp.ElicitResult) core.ApprovalAnswer {
	decision, _ := r.Content["decision"].(string)
	note, _ := r.Content["note"].(string)
	scope, err := core.ParseScope(decision)
	switch {
	case r.Action == "cancel":
		return core.ApprovalAnswer{Note: "the request was dismissed", By: "client"}
	case r.Action == "accept" && a.Login != "":
		return core.ApprovalAnswer{Approve: true, By: "client"} // the page is open
	case r.Action != "accept" || decision == "" || err != nil || scope == core.ScopeEach && !a.Start:
		return core.ApprovalAnswer{Note: note, By: "client"}
	case !slices.Contains(a.Scopes(), scope):
		scope = core.ScopeOnce
	}
	answer := core.ApprovalAnswer{Approve: true, Scope: scope, By: "client"}
	if calls, ok := r.Content["calls"].(float64); ok && scope == core.ScopeRun {
		answer.Calls = max(a.LeastCalls(), int(min(calls, maxCalls))) // a client may not check the minimum
	}
	return answer
}

// maxCalls bounds the number of calls in an answer.
const maxCalls = 1_000_000
