package engine_test

import (
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/engine"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// TestLoginsOfPrincipals checks that each principal calls with its own login and never with that of another, and that
// all principals use one login at a shared server.
func TestLoginsOfPrincipals(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	server, err := oauthtest.Start(oauthtest.Rules{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	config := func(isolation string) engine.Config {
		return engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Settings: "servers: {vault: {isolation: " + isolation + "}}", Servers: []engine.Server{{Name: "vault", URL: server.URL}}}
	}
	own, shared := config("principal"), config("shared")
	shared.Servers = []engine.Server{{Name: "safe", URL: server.URL}}
	shared.Settings = "servers: {safe: {isolation: shared}}"
	logInAs := func(c engine.Config, principal string) error {
		l, err := engine.BeginLogin(t.Context(), c, c.Servers[0].Name, engine.LoginOptions{Principal: principal})
		if err != nil {
			return err
		}
		defer l.Close()
		if err := oauthtest.Browse(t.Context(), l.URL); err != nil {
			return err
		}
		return l.Wait(t.Context())
	}
	for _, principal := range []string{"", "alice"} {
		if err := logInAs(own, principal); err != nil {
			t.Fatal(err)
		}
	}
	open := func(c engine.Config) *engine.Engine {
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = e.Close() })
		e.WaitForServers(t.Context())
		return e
	}
	e := open(own)
	// as calls as a principal, and returns the credentials that the server saw.
	as := func(e *engine.Engine, name, principal string) ([]string, engine.Outcome) {
		before := len(server.Sent())
		o := e.As(principal).Call(t.Context(), engine.Request{}, name+".hello", []byte(`{}`))
		var seen []string
		for _, h := range server.Sent()[before:] {
			if a := h.Get("Authorization"); a != "" && !slices.Contains(seen, a) {
				seen = append(seen, a)
			}
		}
		return seen, o
	}
	engines, o := as(e, "vault", "")
	if o.Status != core.StatusOK || len(engines) != 1 {
		t.Fatalf("%+v %q", o.Error, engines)
	}
	alices, o := as(e, "vault", "alice")
	if o.Status != core.StatusOK || len(alices) != 1 || alices[0] == engines[0] {
		t.Fatalf("%+v %q", o.Error, alices)
	}
	bobs, o := as(e, "vault", "bob")
	if len(bobs) != 0 || o.Status != core.StatusError || o.Error.Kind != core.KindUpstreamGone || !strings.Contains(o.Error.Hint, "retort auth login --principal bob vault") {
		t.Fatalf("%s %+v %q", o.Status, o.Error, bobs)
	}
	if err := logInAs(own, "bob"); err != nil {
		t.Fatal(err)
	}
	bobs, o = as(e, "vault", "bob")
	if o.Status != core.StatusOK || len(bobs) != 1 || bobs[0] == engines[0] || bobs[0] == alices[0] {
		t.Fatalf("%s %+v %q", o.Status, o.Error, bobs)
	}

	all, err := engine.ListLogins(t.Context(), own)
	if err != nil || len(all) != 3 || all[1].Principal != "alice" || all[1].State != "logged in" || all[2].Principal != "bob" {
		t.Errorf("%+v %v", all, err)
	}
	if out, err := engine.Logout(t.Context(), own, "vault", "alice"); err != nil || !out.Was {
		t.Errorf("%+v %v", out, err)
	}
	if again, o := as(e, "vault", "alice"); o.Status != core.StatusError || len(again) > 0 && slices.Contains(again, bobs[0]) {
		t.Errorf("after a logout: %s %q", o.Status, again)
	}
	if again, o := as(e, "vault", "bob"); o.Status != core.StatusOK || !slices.Equal(again, bobs) {
		t.Errorf("after the logout of another: %s %q", o.Status, again)
	}

	if err := logInAs(shared, "alice"); err == nil || !strings.Contains(err.Error(), "shared") {
		t.Errorf("a login of a principal at a shared server: %v", err)
	}
	if err := logInAs(shared, ""); err != nil {
		t.Fatal(err)
	}
	s := open(shared)
	one, _ := as(s, "safe", "alice")
	if other, o := as(s, "safe", "bob"); o.Status != core.StatusOK || len(one) != 1 || !slices.Equal(one, other) {
		t.Errorf("%+v %q %q", o.Error, one, other)
	}
}
