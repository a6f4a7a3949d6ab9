package pipeline

import (
	"crypto/sha256"
	"encoding/json"
	"sync"
	"time"

	"retort/internal/base/canonjson"
	"retort/internal/core"
	"retort/internal/pipeline/approval"
)

// serverQuestions counts the questions that upstream servers ask the MCP client during one execution, and limits
// them. It is safe for concurrent use.
type serverQuestions struct {
	bounds    approval.QuestionBounds
	principal string
	all       *questionCounts // what servers ask in all executions

	mu       sync.Mutex
	refused  map[string]bool // servers with a recorded refusal
	asked    int
	declined map[string]int             // in a row, by server
	denied   map[[sha256.Size]byte]bool // questions that were declined
}

func newTheirs(b approval.QuestionBounds, principal string, all *questionCounts) *serverQuestions {
	return &serverQuestions{
		bounds: b.WithDefaults(), principal: principal, all: all, refused: map[string]bool{}, declined: map[string]int{},
		denied: map[[sha256.Size]byte]bool{},
	}
}

// questionKey returns a hash of a question's server, tool, method and parameters. Equal questions have equal keys.
func (t *serverQuestions) questionKey(a core.ServerRequest) [sha256.Size]byte {
	text, _ := json.Marshal([]string{a.Server, a.Tool, a.Method, string(canonjson.OrRaw(a.Params))}) // of strings
	return sha256.Sum256(text)
}

// countQuestion counts a server's question, or returns an error if the bounds do not allow it to reach the client.
func (t *serverQuestions) countQuestion(a core.ServerRequest) *core.Error {
	t.mu.Lock()
	defer t.mu.Unlock()
	refused := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindLimit, "pipeline.asked", format, args...).AtTool(a.Server, a.Tool)
	}
	switch n := t.declined[a.Server]; {
	case t.denied[t.questionKey(a)]:
		return refused("the client has already declined exactly this question of %s, and is not asked again", a.Server)
	case n >= t.bounds.Declined:
		return refused(
			"the client has declined %d questions of %s in a row, and is not asked again on its behalf (approval.declined)",
			n, a.Server,
		)
	case t.asked >= t.bounds.Questions:
		return refused("servers have already asked the client %d times in one execution, which is the maximum (approval.questions)", t.asked)
	}
	if why := t.all.countQuestion(t.principal, a.Server, t.bounds.Questions, time.Now()); why != "" {
		return refused("%s", why)
	}
	t.asked++
	return nil
}

// firstRefused returns true when it is called for the first time for a server in this execution. It is called when a
// question of the server was refused, so that only the first refusal is recorded.
func (t *serverQuestions) firstRefused(server string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.refused[server]
	t.refused[server] = true
	return first
}

// noteJudged records whether the client, or the person using it, accepted a server's question. If the question was
// not accepted, the server must not ask it again in this execution.
func (t *serverQuestions) noteJudged(a core.ServerRequest, answered bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if answered {
		t.declined[a.Server] = 0
		return
	}
	t.declined[a.Server]++
	t.denied[t.questionKey(a)] = true
}

// admitServerRequest decides whether a server's question may be passed on to the client. It applies the limits on the
// number of questions, and records the question in the audit log. If there is no error, the caller must ask the
// client and then pass the client's answer to the returned function came.
func (x *execution) admitServerRequest(a core.ServerRequest) (came func(json.RawMessage, *core.Error), refused *core.Error) {
	if refused := x.theirs.countQuestion(a); refused != nil {
		if x.theirs.firstRefused(a.Server) {
			x.refusedAsking(a, refused)
		}
		return nil, refused
	}
	recorded, refused := x.recordServerRequest(a)
	if refused != nil {
		return nil, refused
	}
	return func(answer json.RawMessage, failed *core.Error) {
		var said struct {
			Action string `json:"action"`
		}
		_ = json.Unmarshal(answer, &said) // what a model has said has none
		x.theirs.noteJudged(a, failed == nil && (said.Action == "" || said.Action == "accept"))
		recorded(answer, failed)
	}, nil
}

// recordServerRequest records in the audit log that a server asks the client a question. The caller must call the
// returned function with the client's answer, so that the answer is recorded, too. Personal data must already be
// hidden in the question.
func (x *execution) recordServerRequest(a core.ServerRequest) (came func(json.RawMessage, *core.Error), refused *core.Error) {
	about := x.newEvent(core.EventAsked)
	about.Server, about.Tool = a.Server, a.Tool
	asks := about
	asks.Status, asks.Facts = "asked", map[string]any{"method": a.Method}
	asks.Body = bodyOf(requestBody{Arguments: x.hideJSON(a.Params)})
	if refused := x.recordEvent(asks, true); refused != nil {
		return nil, refused.AtTool(a.Server, a.Tool)
	}
	return func(answer json.RawMessage, failed *core.Error) {
		about.Facts = map[string]any{"method": a.Method}
		var said struct {
			Action string `json:"action"`
			Model  string `json:"model"`
		}
		switch about.Status = "answered"; {
		case failed != nil:
			about.Status = string(failed.Kind)
		case json.Unmarshal(answer, &said) == nil && said.Action != "":
			about.Status = said.Action
		}
		_ = x.recordEvent(about, false)
	}, nil
}
