package server_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/devel/testenv"
	"retort/internal/engine"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// TestPromptsAreApproved checks that personal data of one server is sent in a prompt's arguments to another server
// only if a person approves. The request fails if the person denies it or the client cannot ask. Personal data in the
// address of a resource is refused without asking.
func TestPromptsAreApproved(t *testing.T) {
	t.Parallel()
	const settings = "servers: {a: {expose: direct}, b: {expose: direct}}"
	for _, era := range eras {
		t.Run(era, func(t *testing.T) {
			said, asked := "once", 0
			o := &mcp.ClientOptions{ElicitationHandler: func(_ context.Context, req *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				asked++
				return accept(said), nil
			}}
			one := func(o *mcp.ClientOptions) (string, error) {
				a, b := fullServer(), fullServer()
				text := func(_ context.Context, req *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
					return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: req.Params.URI, Text: "of ada@example.com"}}}, nil
				}
				a.AddResource(&mcp.Resource{URI: "test://mail", Name: "mail"}, text)
				s := connectEngine(t, settings, era, o, upstream("a", a), upstream("b", b))
				list(t, s)
				first, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://mail"})
				if err != nil || !strings.Contains(show(first), "[EMAIL_1]") || asked > 0 {
					t.Fatal(show(first), err, asked)
				}
				read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "retort://b/test://of/[EMAIL_1]"})
				if err == nil || !strings.Contains(err.Error(), "could send the value elsewhere") || asked > 0 {
					t.Error(show(read), err, asked)
				}
				prompt, wrong := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "b__greet", Arguments: map[string]string{"who": "[EMAIL_1]"}})
				return show(prompt), wrong
			}
			if prompt, err := one(o); err != nil || !strings.Contains(prompt, "Hello [EMAIL_1]") || asked != 1 {
				t.Error(prompt, err, asked)
			}
			said, asked = "no", 0
			if prompt, err := one(o); err == nil || asked != 1 {
				t.Error(prompt, asked)
			}
			asked = 0
			if prompt, err := one(nil); err == nil || !strings.Contains(err.Error(), "must approve") && !strings.Contains(err.Error(), "waits for a person") {
				t.Error(prompt, err)
			}
		})
	}
}

// behindLogin starts a server with resources and prompts that requires a login, and returns a configuration of an
// engine with this server.
func behindLogin(t *testing.T, stateless bool) (*oauthtest.Server, engine.Config) {
	t.Helper()
	things := fullServer()
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return things }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	var server *oauthtest.Server
	server, err := oauthtest.Start(oauthtest.Rules{Inside: handler})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	return server, engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Keys: t.TempDir(), Settings: "servers: {vault: {expose: direct}}", Servers: []engine.Server{{Name: "vault", URL: server.URL}}}
}

// TestLoginForResourcesAndPrompts checks that a client whose login has expired is asked to log in when it reads a
// resource or gets a prompt, and then gets the answer. A client of 2025-11-25 is also notified that the login is
// complete.
func TestLoginForResourcesAndPrompts(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		era, what := eras[i&1], []string{"resource", "prompt"}[i>>1]
		t.Run(era+" "+what, func(t *testing.T) {
			server, c := behindLogin(t, true)
			logIn(t, c)
			e, err := engine.Open(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = e.Close() })
			e.WaitForServers(t.Context())
			var id, complete atomic.Value
			s := browsingWith(t, e, era, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				id.Store(r.Params.ElicitationID)
				go func() { _ = oauthtest.Browse(context.Background(), r.Params.URL) }()
				return &mcp.ElicitResult{Action: "accept"}, nil
			}, func(done string) { complete.Store(done) })
			list(t, s)
			server.Expire(true)
			got := ""
			if what == "resource" {
				read, err := s.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://a.txt"})
				got = fmt.Sprint(show(read), err)
			} else {
				prompt, err := s.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "World"}})
				got = fmt.Sprint(show(prompt), err)
			}
			if !strings.Contains(got, "the text of test://a.txt") && !strings.Contains(got, "Hello World") || id.Load() == nil {
				t.Error(got, id.Load())
			}
			if era == eras[0] {
				testenv.WaitUntil(t, "the client is notified that the login is complete", func() bool { return complete.Load() == id.Load() })
			}
		})
	}
}

func list(t *testing.T, s *mcp.ClientSession) {
	t.Helper()
	if _, err := s.ListResources(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ListPrompts(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}
