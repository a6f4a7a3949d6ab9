package pipeline

import (
	"context"
	"fmt"

	"retort/internal/core"
)

// Logins have people log in at servers.
type Logins interface {
	// Login logs in at a server. ask brings the address of it to a person, and returns when
	// the person has opened it or refuses; ctx of it ends when the login has succeeded. Of
	// several at once for one server, one asks and all wait.
	Login(ctx context.Context, server string, ask func(ctx context.Context, address string) *core.Error) *core.Error
	// Needed are the servers of which no tools are known for want of a login.
	Needed() []*core.Error
}

// unlisted says which servers' tools nobody can find before a login, in words.
func (p *Pipeline) unlisted() (warnings []string) {
	if p.Logins == nil {
		return nil
	}
	for _, e := range p.Logins.Needed() {
		warnings = append(warnings, fmt.Sprintf("the tools of %s are not known: %s; %s", core.Legible(e.Server), e.Message, e.Hint))
	}
	return warnings
}

// login has a person log in at the server of a call, if whoever asked for the execution can
// show an address. The clock of the program stands meanwhile.
func (x *execution) login(ctx context.Context, c core.Call, needed *core.Error) *core.Error {
	if x.pipeline.Logins == nil || !core.HasBrowser(ctx) {
		return needed
	}
	resume := core.Pause(ctx)
	defer resume()
	var page string
	refused := x.pipeline.Logins.Login(ctx, c.Server, func(ctx context.Context, address string) *core.Error {
		page = address
		q := x.question(needed.Message + "; " + needed.Hint)
		q.Server, q.Login = c.Server, address
		return x.asks(ctx, q)
	})
	if refused == nil {
		core.Browsed(ctx, page)
	}
	return refused
}
