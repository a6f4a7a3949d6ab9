package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"retort/internal/catalog"
	"retort/internal/core"
	"retort/internal/mcp/client/oauth"
	"retort/internal/pipeline/approval"
)

// loginPrompter runs the logins that programs wait for, and asks the user to log in. It implements
// pipeline.LoginPrompter.
type loginPrompter struct {
	settings  *configuration
	data      *dataAssembly
	live      *catalog.LiveCatalog
	approvals *approval.ApprovalTable
	stop      func() error // ends the watch for new logins

	mu      sync.Mutex
	running map[loginKey]*runningLogin
}

// loginKey identifies a login by its server and principal.
type loginKey struct{ server, principal string }

// runningLogin represents a login that programs wait for. err is its result, which is set before done is closed.
type runningLogin struct {
	done chan struct{}
	err  *core.Error
}

// newLoginPrompter returns a loginPrompter and starts watching for logins from the command line.
func newLoginPrompter(c *configuration, data *dataAssembly, live *catalog.LiveCatalog, approvals *approval.ApprovalTable) *loginPrompter {
	return &loginPrompter{
		settings: c, data: data, live: live, approvals: approvals, stop: watchLogins(c, live), running: map[loginKey]*runningLogin{},
	}
}

// Close stops watching for logins.
func (l *loginPrompter) Close() error { return l.stop() }

// maxLoginTime limits the time that a program waits for a user who has opened the login page.
const maxLoginTime = 10 * time.Minute

// Login logs the principal in ctx in at a server. If several programs of the principal need the same login at the
// same time, all of them wait for a single login.
func (l *loginPrompter) Login(ctx context.Context, server string, ask func(context.Context, string) *core.Error) *core.Error {
	key := loginKey{server, l.settings.activeConfig().logins[server].ownerOf(core.CallerOf(ctx).Principal)}
	l.mu.Lock()
	if other := l.running[key]; other != nil {
		l.mu.Unlock()
		select {
		case <-other.done:
			return other.err
		case <-ctx.Done():
			return core.Errorf(core.KindCancelled, "retort.login", "the execution was cancelled while it waited for a login").AtTool(server, "")
		}
	}
	own := &runningLogin{done: make(chan struct{})}
	l.running[key] = own
	l.mu.Unlock()
	own.err = l.runLogin(ctx, key, ask)
	l.mu.Lock()
	delete(l.running, key)
	l.mu.Unlock()
	close(own.done)
	return own.err
}

func (l *loginPrompter) runLogin(ctx context.Context, at loginKey, ask func(context.Context, string) *core.Error) *core.Error {
	server := at.server
	client := l.settings.activeConfig().logins[server].clientFor(at.principal)
	if client == nil {
		return core.Errorf(core.KindUpstreamGone, "retort.login", "the server does not support a login").AtTool(server, "")
	}
	ctx, cancel := context.WithTimeout(ctx, 2*maxLoginTime)
	defer cancel()
	login, err := client.BeginLogin(ctx, oauth.LoginOptions{})
	if err != nil {
		return core.AsError(err).AtTool(server, "")
	}
	defer login.Close()
	failed := l.waitForLogin(ctx, login, ask)
	if failed == nil {
		l.live.NotifyChanged(server)
	}
	if l.data.audit != nil {
		e := newLoginEvent(server, at.principal, "ok", login.Issuer())
		if failed != nil {
			e.Status = "failed"
		}
		if refused := l.data.audit.Record(e, true); failed == nil {
			return refused
		}
	}
	return failed
}

// waitForLogin asks the user to log in and waits for the login. It returns as soon as the login is done, even if the
// user has not answered, because the user may also log in from the command line.
func (l *loginPrompter) waitForLogin(ctx context.Context, login *oauth.LoginFlow, ask func(context.Context, string) *core.Error) *core.Error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	answered, done, left := make(chan *core.Error, 1), make(chan error, 1), make(chan struct{})
	go func() { defer close(left); answered <- ask(asking, login.URL) }()
	go func() { done <- login.Wait(ctx) }()
	select {
	case refused := <-answered:
		if refused != nil {
			return refused
		}
	case err := <-done:
		l.answerQuestion(login.URL, err == nil)
		defer time.AfterFunc(time.Second, stop).Stop() // if it was not asked yet
		<-left
		return core.AsError(err)
	}
	timer := time.NewTimer(maxLoginTime)
	defer timer.Stop()
	select {
	case err := <-done:
		return core.AsError(err)
	case <-timer.C:
		return core.Errorf(
			core.KindUpstreamGone, "retort.login", "nobody logged in within %v: %w", maxLoginTime, core.ErrLogin,
		).WithHint("run the program again to be asked again")
	}
}

// Needed returns the errors of all servers whose tools are unknown because a login is missing, sorted by server.
func (l *loginPrompter) Needed() (all []*core.Error) {
	tools := l.live.Toolset()
	for name := range l.settings.activeConfig().logins {
		if s, known := tools.FindServer(name); known && s.Name == name && len(s.Tools) > 0 {
			continue
		}
		if e := l.live.ProblemOf(name); e != nil && errors.Is(e, core.ErrLogin) {
			all = append(all, e.AtTool(name, ""))
		}
	}
	slices.SortFunc(all, func(a, b *core.Error) int { return strings.Compare(a.Server, b.Server) })
	return all
}

// watchLogins looks for new logins every second, such as those from the command line, until stop is called. After a
// login at a server that needed one, it makes the catalog list the server's tools.
func watchLogins(c *configuration, live *catalog.LiveCatalog) (stop func() error) {
	const often = time.Second
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		tried := map[string]time.Time{}
		for ctx.Err() == nil {
			for name, all := range c.activeConfig().logins {
				client := all.clientFor("") // its login is used to list tools
				if e := live.ProblemOf(name); e == nil || !errors.Is(e, core.ErrLogin) {
					continue
				}
				if s, _ := client.Status(ctx); s.Since != nil && !s.Since.Equal(tried[name]) {
					tried[name] = *s.Since
					live.NotifyChanged(name)
				}
			}
			select {
			case <-ctx.Done():
			case <-time.After(often):
			}
		}
	})
	return func() error { cancel(); done.Wait(); return nil }
}

// answerQuestion answers the pending question about a login that has finished.
func (l *loginPrompter) answerQuestion(address string, ok bool) {
	for _, a := range l.approvals.ListWaiting("") {
		if a.Login == address {
			_ = l.approvals.AnswerApproval(a.ID, a.Digest, core.ApprovalAnswer{Approve: ok, Note: "the login did not succeed", By: "login"})
		}
	}
}
