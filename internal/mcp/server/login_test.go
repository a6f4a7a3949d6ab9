package server_test

import (
	"context"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// openExpiredLogin opens an engine with one server that requires a login. A person has logged in before, but the login
// has expired.
func openExpiredLogin(t *testing.T) (*engine.Engine, *oauthtest.Server, engine.Config) {
	t.Helper()
	server, err := oauthtest.Start(oauthtest.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Keys: t.TempDir(), Servers: []engine.Server{{Name: "vault", URL: server.URL}}}
	logIn(t, c)
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	server.Expire(true)
	return e, server, c
}

func logIn(t *testing.T, c engine.Config) {
	t.Helper()
	l, err := engine.BeginLogin(t.Context(), c, "vault", engine.LoginOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if err := oauthtest.Browse(t.Context(), l.URL); err != nil {
		t.Fatal(err)
	}
	if err := l.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// connectBrowsing connects a client that can open addresses in a browser for a person.
func connectBrowsing(t *testing.T, e *engine.Engine, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) *mcp.ClientSession {
	t.Helper()
	return browsingWith(t, e, version, elicit, nil)
}

// browsingWith connects a client like connectBrowsing does. In addition, the client calls the function complete with a
// page's id when a server reports that the person has finished with that page.
func browsingWith(t *testing.T, e *engine.Engine, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error), complete func(id string)) *mcp.ClientSession {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = e.Serve(ctx, toServer, fromServer, false); _ = fromServer.Close() }()
	o := &mcp.ClientOptions{ElicitationHandler: elicit, Capabilities: &mcp.ClientCapabilities{Elicitation: &mcp.ElicitationCapabilities{URL: &mcp.URLElicitationCapabilities{}}}}
	o.ElicitationCompleteHandler = func(_ context.Context, r *mcp.ElicitationCompleteNotificationRequest) {
		if complete != nil {
			complete(r.Params.ElicitationID)
		}
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, o).
		Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session
}

const twoCalls = `const a = vault.hello({}), b = vault.hello({}); return [await a, await b]`

// TestLoginInTheMiddle checks that a program waits while the person at the client logs in, and then makes each of its
// calls once. If the person declines, no call is made.
func TestLoginInTheMiddle(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for name, c := range map[string]struct {
			action string
			// logs says where the person logs in: "here" at the given address, "elsewhere" with the login command, or
			// "" for nowhere.
			logs   string
			status core.OutcomeStatus
		}{
			"logs in":                     {"accept", "here", core.StatusOK},
			"logs in at the command line": {"accept", "elsewhere", core.StatusOK},
			"refuses":                     {"decline", "", core.StatusError},
		} {
			t.Run(version+"/"+name, func(t *testing.T) {
				e, server, config := openExpiredLogin(t)
				var asked atomic.Int64
				var person sync.WaitGroup
				defer person.Wait() // the login may end after the call that waited for it
				session := connectBrowsing(t, e, version, func(ctx context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					if r.Params.Mode != "url" || !strings.HasPrefix(r.Params.URL, server.Root+"/authorize?") || !strings.Contains(r.Params.Message, "vault") {
						t.Errorf("%+v", r.Params)
					}
					person.Go(func() {
						switch c.logs {
						case "here":
							_ = oauthtest.Browse(context.WithoutCancel(ctx), r.Params.URL)
						case "elsewhere":
							logIn(t, config)
						}
					})
					return &mcp.ElicitResult{Action: c.action}, nil
				})
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": twoCalls}})
				o := outcomeOf(t, r, err)
				if o.Status != c.status && !(c.status != core.StatusOK && o.Status == core.StatusDenied) || asked.Load() == 0 || c.status == core.StatusOK && asked.Load() != 1 {
					t.Errorf("%s %+v, asked %d times", o.Status, o.Error, asked.Load())
				}
				if n := server.Count("call hello"); c.status == core.StatusOK && n != 2 || c.status != core.StatusOK && n != 0 {
					t.Errorf("%d calls", n)
				}
			})
		}
	}
}

// TestLoginStopsTheClock checks that all timeouts around a call are paused while a person logs in,
// so that the time does not count against the program.
func TestLoginStopsTheClock(t *testing.T) {
	t.Parallel()
	e, server, _ := openExpiredLogin(t)
	var pauses atomic.Int64
	ctx := core.WithPause(core.WithBrowser(t.Context(), nil), func() func() {
		pauses.Add(1)
		return func() { pauses.Add(-1) }
	})
	var person sync.WaitGroup
	defer person.Wait()
	ctx = core.WithChannel(ctx, func(ctx context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		person.Go(func() {
			if pauses.Load() == 0 {
				t.Error("the clock is not paused while the person logs in")
			}
			if err := oauthtest.Browse(context.WithoutCancel(ctx), a.Login); err != nil {
				t.Error(err)
			}
		})
		return core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}, true
	})
	if o := e.Execute(ctx, engine.Request{Code: "return await vault.hello({})"}); o.Status != core.StatusOK || server.Count("call hello") != 1 {
		t.Errorf("%s %+v, %d calls", o.Status, o.Error, server.Count("call hello"))
	}
	if n := pauses.Load(); n != 0 {
		t.Errorf("%d pauses are still active after the program has ended", n)
	}
}

// TestLoginWithoutBrowser checks that a client that cannot open addresses gets an error with the login command, and
// that calls succeed after that login.
func TestLoginWithoutBrowser(t *testing.T) {
	t.Parallel()
	e, _, config := openExpiredLogin(t)
	session, _ := connectClient(t, e, "2025-11-25", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		t.Error("it was asked")
		return &mcp.ElicitResult{Action: "accept"}, nil
	})
	call := func() core.Outcome {
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": twoCalls}})
		return outcomeOf(t, r, err)
	}
	if o := call(); o.Error == nil || o.Error.Kind != core.KindUpstreamGone || !strings.Contains(o.Error.Hint, "retort auth login vault") {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
	logIn(t, config)
	if o := call(); o.Status != core.StatusOK {
		t.Errorf("after a login elsewhere: %s %+v", o.Status, o.Error)
	}
}

// TestFirstLogin checks that the tools of a server are found soon after the first login at it, and that the refresh
// token is never sent to the server.
func TestFirstLogin(t *testing.T) {
	t.Parallel()
	server, err := oauthtest.Start(oauthtest.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Keys: t.TempDir(), Servers: []engine.Server{{Name: "vault", URL: server.URL}}}
	e, err := engine.Open(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	found, err := e.Search(t.Context(), engine.Query{Text: "hello"})
	if err != nil || len(found.Tools) > 0 || !slices.ContainsFunc(found.Warnings, func(w string) bool { return strings.Contains(w, "retort auth login vault") }) {
		t.Errorf("%+v, %v", found, err)
	}
	logIn(t, c)
	testenv.WaitUntil(t, "the tools are found", func() bool {
		found, _ := e.Search(t.Context(), engine.Query{Text: "hello"})
		return len(found.Tools) > 0
	})
	for _, h := range server.Sent() {
		if strings.Contains(h.Get("Authorization"), "refresh") {
			t.Error("a refresh token was sent to the server")
		}
	}
}

// TestProgramsShareOneRefresh checks that fifty concurrent programs with an expired access token cause one refresh.
func TestProgramsShareOneRefresh(t *testing.T) {
	t.Parallel()
	e, server, config := openExpiredLogin(t)
	logIn(t, config)
	server.Expire(false)
	const programs = 50
	var all sync.WaitGroup
	for range programs {
		all.Go(func() {
			if o := e.Execute(t.Context(), engine.Request{Code: "return await vault.hello({})"}); o.Status != core.StatusOK {
				t.Errorf("%s %+v", o.Status, o.Error)
			}
		})
	}
	all.Wait()
	if n, calls := server.Count("token refresh_token"), server.Count("call hello"); n != 1 || calls != programs {
		t.Errorf("%d refreshes, %d calls", n, calls)
	}
}
