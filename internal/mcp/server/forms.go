package server

import (
	"context"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// maxOpenForms, maxServerForms and maxRoundForms limit the forms that a client is sent. At most maxOpenForms are shown
// at the same time, and at most maxServerForms of these are questions of upstream servers. Otherwise a server could
// keep a person from seeing an approval by asking many questions.
const (
	maxOpenForms   = 4
	maxServerForms = 2 // maximum number of these that are questions of servers
	maxRoundForms  = 8 // maximum number of forms in one result, as used since protocol version 2026-07-28
)

// formsOfRound returns the approvals whose forms are sent to the client in one result: at most maxRoundForms, the
// most dangerous first. Approvals of equal calls share a form.
func formsOfRound(waiting []core.Approval) []core.Approval {
	list := core.SortByDanger(core.GroupAlike(waiting))
	return list[:min(len(list), maxRoundForms)]
}

// serverForm ranks a question of an upstream server among the approvals that wait to be shown. It is lower than the
// danger of every approval, so approvals are shown first.
const serverForm = -1

// openForms bounds how many forms each client shows at the same time. The zero value is ready for use. It is safe for
// concurrent use.
type openForms struct {
	mu      sync.Mutex
	clients map[*mcp.ServerSession]*clientForms
}

// clientForms records the forms of one client: how many are shown, and which are waiting to be shown.
type clientForms struct {
	approvals, servers int         // numbers of open forms: about approvals, and with questions of servers
	waiting            []*formTurn // forms that wait to be shown: the most dangerous first, then the oldest
}

// formTurn represents a form that waits until the client may show it, or that is shown.
type formTurn struct {
	danger int
	open   bool
	begin  chan struct{} // closed when the form may be shown
}

// awaitTurn waits until a new form may be shown at the client. Of several waiting forms, the one with the highest
// danger is shown first. leave must be called when the form is closed. ok is false if ctx ended first.
func (o *openForms) awaitTurn(ctx context.Context, session *mcp.ServerSession, danger int) (leave func(), ok bool) {
	turn := &formTurn{danger: danger, begin: make(chan struct{})}
	o.mu.Lock()
	if o.clients == nil {
		o.clients = map[*mcp.ServerSession]*clientForms{}
	}
	c := o.clients[session]
	if c == nil {
		c = &clientForms{}
		o.clients[session] = c
	}
	at := slices.IndexFunc(c.waiting, func(t *formTurn) bool { return t.danger < danger })
	if at < 0 {
		at = len(c.waiting)
	}
	c.waiting = slices.Insert(c.waiting, at, turn)
	c.beginTurns()
	o.mu.Unlock()
	select {
	case <-turn.begin:
		return sync.OnceFunc(func() { o.endTurn(session, turn) }), true
	case <-ctx.Done():
		o.endTurn(session, turn)
		return nil, false
	}
}

// beginTurns lets waiting forms be shown as long as there is room. The caller must hold mu.
func (c *clientForms) beginTurns() {
	c.waiting = slices.DeleteFunc(c.waiting, func(t *formTurn) bool {
		switch {
		case c.approvals+c.servers >= maxOpenForms, t.danger == serverForm && c.servers >= maxServerForms:
			return false
		case t.danger == serverForm:
			c.servers++
		default:
			c.approvals++
		}
		t.open = true
		close(t.begin)
		return true
	})
}

// endTurn removes a form, whether it is shown or still waits, and lets the next one be shown.
func (o *openForms) endTurn(session *mcp.ServerSession, turn *formTurn) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := o.clients[session]
	switch {
	case !turn.open:
		c.waiting = slices.DeleteFunc(c.waiting, func(t *formTurn) bool { return t == turn })
	case turn.danger == serverForm:
		c.servers--
	default:
		c.approvals--
	}
	c.beginTurns()
	if c.approvals+c.servers+len(c.waiting) == 0 {
		delete(o.clients, session)
	}
}
