package pipeline

import (
	"context"
	"fmt"

	"retort/internal/core"
)

// LoginPrompter lets people log in at servers that require OAuth.
type LoginPrompter interface {
	// Login lets a person log in at a server. It calls the function ask with the web address that the person must
	// open. The function ask returns when the person has opened the address or refuses. The context of ask ends as
	// soon as the login succeeds. If several callers want to log in at the same server, the person is asked only
	// once.
	Login(ctx context.Context, server string, ask func(ctx context.Context, address string) *core.Error) *core.Error
	// Needed returns the servers whose tools are unknown because a login is missing.
	Needed() []*core.Error
}

// unlistedWarnings returns a warning for each server whose tools are unknown because a login is missing.
func (p *Pipeline) unlistedWarnings() (warnings []string) {
	if p.Logins == nil {
		return nil
	}
	for _, e := range p.Logins.Needed() {
		warnings = append(warnings, fmt.Sprintf("the tools of %s could not be listed: %s; %s", core.EscapeIllegible(e.Server), e.Message, e.Hint))
	}
	return warnings
}

// Login implements relay.Supervisor. It asks a person to log in at the call's server, if the client can open a web
// page. The waiting time does not count as the program's execution time.
func (x *programExecution) Login(ctx context.Context, c core.ToolCall, needed *core.Error) *core.Error {
	if x.pipeline.Logins == nil || !core.HasBrowser(ctx) {
		return needed
	}
	resume := core.PauseClock(ctx)
	defer resume()
	var page string
	refused := x.pipeline.Logins.Login(ctx, c.Server, func(ctx context.Context, address string) *core.Error {
		page = address
		q := x.newQuestion(needed.Message + "; " + needed.Hint)
		q.Server, q.Login = c.Server, address
		_, refused := x.askApproval(ctx, q)
		return refused
	})
	if refused == nil {
		core.NotifyBrowsed(ctx, page)
	}
	return refused
}
