package server

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
)

// shownBy returns a core.ClientPeer that says which questions the client of a request can show to a person: forms,
// pages, both or none.
func shownBy(req mcp.Request) *core.ClientPeer {
	caps := capabilitiesOf(req)
	if caps == nil || caps.Elicitation == nil {
		return &core.ClientPeer{}
	}
	return &core.ClientPeer{Forms: canShowQuestion(caps, core.ServerRequest{}), Pages: canShowQuestion(caps, core.ServerRequest{Page: "any"})}
}

// canShowQuestion reports whether a client with these capabilities can show a question to a person.
func canShowQuestion(caps *mcp.ClientCapabilities, a core.ServerRequest) bool {
	switch e := caps.Elicitation; {
	case e == nil:
		return false
	case a.Page != "":
		return e.URL != nil
	default:
		return e.Form != nil || e.URL == nil
	}
}

// pageOf returns the URL elicitation that asks a person to open a server's page. Retort creates the id of the
// elicitation, because ids that come from different servers could be equal.
func pageOf(a core.ServerRequest) *mcp.ElicitParams {
	var p struct {
		Message string `json:"message"`
		Origin  string `json:"url"`
	}
	_ = json.Unmarshal(a.Params, &p) // what is no text is not shown
	text := fmt.Sprintf("The server %q wants you to open a page at %s for its tool %s; the request is not from Retort. Check the address before you enter anything on that page.\n\n%s",
		a.Server, core.EscapeIllegible(p.Origin), core.EscapeIllegible(a.Tool), core.EscapeIllegible(clippedTo(p.Message, maxQuestion)))
	return &mcp.ElicitParams{Mode: "url", Message: text, URL: a.Page, ElicitationID: rand.Text()}
}

// tellDone notifies a client when a server reports that the person has finished with a page.
func tellDone(ctx context.Context, session *mcp.ServerSession, id string, done <-chan struct{}) {
	ctx = context.WithoutCancel(ctx) // that of the question ends with its answer
	go func() {
		late := time.NewTimer(askPatience)
		defer late.Stop()
		select {
		case <-done:
			_ = session.NotifyElicitationComplete(ctx, &mcp.ElicitationCompleteParams{ElicitationID: id})
		case <-late.C:
		}
	}()
}
