package pipeline

import (
	"context"
	"fmt"

	"retort/internal/core"
)

// Logins has people log in at servers.
type Logins interface {
	// Login logs in at a server. It calls ask with the address to open; ask returns when the person has opened it or
	// refuses, and its ctx ends when the login has succeeded. Concurrent logins at one server share one question.
	Login(ctx context.Context, server string, ask func(ctx context.Context, address string) *core.Error) *core.Error
	// Needed returns the servers whose tools are unknown because a login is missing.
	Needed() []*core.Error
}

// unlisted returns warnings that name the servers whose tools cannot be found before a login.
func (p *Pipeline) unlisted() (warnings []string) {
	if p.Logins == nil {
		return nil
	}
	for _, e := range p.Logins.Needed() {
		warnings = append(warnings, fmt.Sprintf("the tools of %s are not known: %s; %s", core.Legible(e.Server), e.Message, e.Hint))
	}
	return warnings
}

// login asks a person to log in at a call's server, if the request can show an address. The program's clock stops in
// the meantime.
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
