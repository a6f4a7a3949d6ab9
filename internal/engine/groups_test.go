package engine_test

import (
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/engine"
)

const groupSettings = `
permissionLevel: execute_full
approval: {autoApproveHigh: true}
principals:
  anna: {servers: {files: {deny: [move_file]}}}
  "group:interns": {servers: {files: {deny: [create_directory]}}}
  "group:finance": {permissionLevel: read_only}
`

// keycloakToken returns an access token in the form of Keycloak for a user in these groups. A nil list leaves out the
// claim.
func (a *testAuthority) keycloakToken(t *testing.T, user string, groups []string) string {
	claims := map[string]any{
		"sub": "f3b1c0d8-6f0e-4d62-9c1e-8d1a53a0b7aa", "typ": "Bearer", "azp": "claude-code", "aud": []string{resource, "account"},
		"realm_access": map[string]any{"roles": []string{"offline_access", "interns"}}, "scope": "openid profile groups",
		"preferred_username": user, "email_verified": true,
	}
	if groups != nil {
		claims["groups"] = groups
	}
	return a.sign(t, claims)
}

// TestGroupsOfTokens checks that the groups in a token restrict what its user may do over HTTP, together with the
// user's own entry, and that a name cannot be mistaken for a group.
func TestGroupsOfTokens(t *testing.T) {
	a := newAuthority(t)
	address := openListening(t, engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(),
		Servers:  []engine.Server{{Name: "files", Dial: demo.DialFunc("files")}},
		Settings: groupSettings + "http: {oauth: {issuer: \"" + a.URL + "\", audience: " + resource + ", principal: preferred_username, groups: groups}}",
	}) + "/mcp"
	const create, move = `files.createDirectory({path: "/srv/nordlys/x"})`, `files.moveFile({source: "/srv/nordlys/x", destination: "/srv/nordlys/y"})`
	for name, c := range map[string]struct {
		user    string
		groups  []string
		code    string
		status  int
		refusal string // in the answer; "" if the program may run
	}{
		"no groups":                 {"bert", []string{}, create, 200, ""},
		"another group":             {"bert", []string{"sales"}, create, 200, ""},
		"a group":                   {"bert", []string{"interns"}, create, 200, "principals.group:interns.servers.files.deny"},
		"two groups":                {"bert", []string{"interns", "finance"}, move, 200, "principals.group:finance.permissionLevel: read_only"},
		"her own entry":             {"anna", []string{"sales"}, move, 200, "principals.anna.servers.files.deny"},
		"her entry and a group":     {"anna", []string{"interns"}, move, 200, "principals.anna.servers.files.deny"},
		"a group and her entry":     {"anna", []string{"interns"}, create, 200, "principals.group:interns.servers.files.deny"},
		"a group called like her":   {"bert", []string{"anna"}, create, 200, ""},
		"a group called like group": {"bert", []string{"group:interns"}, create, 200, ""},
		"a user called like group":  {"group:sales", []string{}, create, 401, "claim preferred_username begins with group:"},
		"no claim":                  {"bert", nil, create, 401, "has no claim groups"},
	} {
		answer := sendRequest(t, "POST", address, a.keycloakToken(t, c.user, c.groups), executeCode(c.code), modernHeaders...)
		body, err := io.ReadAll(answer.Body)
		refused := strings.Contains(string(body), "principals.") || answer.StatusCode != 200
		if err != nil || answer.StatusCode != c.status || refused != (c.refusal != "") || !strings.Contains(string(body), c.refusal) {
			t.Errorf("%s: %s, %s, %v", name, answer.Status, body, err)
		}
	}
}

// modernHeaders are the headers of a request for execute_code in protocol version 2026-07-28.
var modernHeaders = []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "execute_code"}

func executeCode(expression string) string {
	return `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"return await ` + strings.ReplaceAll(expression, `"`, `\"`) + `"},` +
		`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
}

// TestSessionKeepsItsGroups checks that a session continues with a new token for the same groups, and that a token for
// other groups needs a session of its own.
func TestSessionKeepsItsGroups(t *testing.T) {
	a := newAuthority(t)
	address := openListening(t, engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Home: t.TempDir(), Keys: t.TempDir(),
		Settings: "http: {oauth: {issuer: \"" + a.URL + "\", audience: " + resource + ", principal: preferred_username, groups: groups}}\n",
	}) + "/mcp"
	begin := func(groups ...string) string {
		return sendRequest(t, "POST", address, a.keycloakToken(t, "anna", groups), initialize).Header.Get("Mcp-Session-Id")
	}
	session := begin("sales", "interns")
	for _, c := range []struct {
		groups []string
		status int
	}{
		{[]string{"interns", "sales", "sales"}, 202}, {[]string{"interns"}, 404}, {[]string{}, 404}, {[]string{"interns sales"}, 404}, {[]string{"sales", "interns"}, 202},
	} {
		answer := sendRequest(t, "POST", address, a.keycloakToken(t, "anna", c.groups), `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Session-Id", session)
		if answer.StatusCode != c.status {
			t.Errorf("%q: %s", c.groups, answer.Status)
		}
	}
	if other := begin("interns"); other == "" || other == session {
		t.Errorf("%q, %q", other, session)
	}
}

// TestJobKeepsItsGroups checks that a job has the groups with which it was submitted, also in an engine that is opened
// later.
func TestJobKeepsItsGroups(t *testing.T) {
	c := engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(), Settings: groupSettings,
		Servers: []engine.Server{{Name: "files", Dial: demo.DialFunc("files")}},
	}
	var ids []string
	for i := range 2 {
		e, err := engine.Open(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		e.WaitForServers(t.Context())
		if i == 0 { // one engine works on the queue: the first works, the second reads what it left
			ids = append(ids, submit(t, e.As("bert", "interns"), engine.Request{Code: `return await files.createDirectory({path: "/srv/nordlys/x"})`}).ID)
		}
		s := finished(t, e.As("bert"), ids[0])
		if len(s.Groups) != 1 || s.Groups[0] != "interns" || s.Outcome.Error == nil || s.Outcome.Error.Kind != core.KindPolicy ||
			!strings.Contains(s.Outcome.Error.Message, "principals.group:interns") {
			t.Errorf("%+v, %+v", s, s.Outcome)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAlwaysIsBoundToGroups checks that a permanent approval covers nothing if other entries of groups restrict the
// principal than when it was given.
func TestAlwaysIsBoundToGroups(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	e, _ := judgedAt(t, t.TempDir(), `{principals: {"group:sales": {permissionLevel: write_restricted}, "group:interns": {permissionLevel: write_restricted}}}`)
	defer e.Close()
	for _, c := range []struct {
		groups []string
		asked  int64
	}{
		{[]string{"sales"}, 1}, {[]string{"sales", "unknown"}, 0}, {[]string{"SALES"}, 0},
		{[]string{"interns"}, 1}, {[]string{"interns", "sales"}, 1}, {nil, 1}, {[]string{"sales"}, 0},
	} {
		var asked atomic.Int64
		answer := fixedAnswer(core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, &asked)
		o := e.As("anna", c.groups...).Execute(core.WithChannel(t.Context(), answer), engine.Request{Code: deletes})
		if o.Status != core.StatusOK || asked.Load() != c.asked {
			t.Errorf("%q: %s %+v, asked %d times, want %d", c.groups, o.Status, o.Error, asked.Load(), c.asked)
		}
	}
}

// TestJobWithoutKnownGroups checks that a job that was submitted with a token of the authorization server does not run
// if nobody knows the groups of its user, although the settings name the claim with the groups.
func TestJobWithoutKnownGroups(t *testing.T) {
	e, err := engine.Open(t.Context(), engine.Config{
		NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Keys: t.TempDir(),
		Servers:  []engine.Server{{Name: "files", Dial: demo.DialFunc("files")}},
		Settings: groupSettings + "http: {oauth: {issuer: \"https://login.example\", audience: " + resource + ", groups: groups}}",
	})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx := core.WithPermit(t.Context(), core.Permit{Credential: core.Credential{Expires: time.Now().Add(time.Hour)}})
	for _, groups := range [][]string{nil, {}} {
		j, err := core.ProgramJob(engine.Request{Code: "return 1"})
		if err != nil {
			t.Fatal(err)
		}
		as := e.As("bert", groups...)
		s, err := as.Submit(ctx, j)
		if err != nil {
			t.Fatal(err)
		}
		if s = finished(t, as, s.ID); groups == nil && (s.Outcome.Error == nil || !strings.Contains(s.Outcome.Error.Message, "groups")) ||
			groups != nil && s.Outcome.Status != core.StatusOK {
			t.Errorf("%v: %+v %+v", groups, s.Outcome, s.Outcome.Error)
		}
	}
}
