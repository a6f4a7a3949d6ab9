package web_test

import (
	"context"
	"errors"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/server/web"
)

// revocable is an authenticator that takes every token for a token of the principal anna, until all tokens are
// revoked. The token "other" stays valid.
type revocable struct {
	revoked atomic.Bool
	expires time.Time
}

func (a *revocable) Authenticate(_ context.Context, bearer string) (web.BearerPrincipal, error) {
	holds := func() bool { return bearer == "other" || bearer != "" && !a.revoked.Load() }
	if !holds() {
		return web.BearerPrincipal{}, errors.New("no")
	}
	return web.BearerPrincipal{Name: "anna", Holds: holds, Credential: core.Credential{Expires: a.expires}}, nil
}

func (*revocable) Challenge(*http.Request) string { return "Bearer" }

// many is the program that these tests run. It makes a directory every few milliseconds, directoryCount of them in
// all. That is so many that the program still runs when its token is revoked.
const (
	directoryCount = 1500
	many           = `for (let i = 0; i < 1500; i++) { await files.createDirectory({path: '/srv/nordlys/a' + i}); await new Promise(r => setTimeout(r, 5)); } return 'made'`
)

const tasksMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

var taskID = regexp.MustCompile(`"taskId":"([a-z0-9]+)"`)

// bearer is an Authorization header with a token of the principal anna.
const bearer = "Authorization: Bearer anna"

// legacySession begins a session of protocol version 2025-11-25 and returns the headers of its requests.
func (p *testListener) legacySession() []string {
	r, text := p.send("POST", "/mcp", hello, bearer)
	if r.StatusCode != 200 || !strings.Contains(text, "2025-11-25") {
		p.t.Fatalf("%s: %s", r.Status, text)
	}
	return []string{bearer, "Mcp-Session-Id: " + r.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version: 2025-11-25"}
}

// requests returns functions that run a program in both protocol versions, each as a call and as a task.
func (p *testListener) requests(code string) map[string]func() (*http.Response, string) {
	modern, headers := program(code, "")
	legacy := strings.Replace(modern, meta, `"_meta":{}`, 1)
	session := p.legacySession()
	return map[string]func() (*http.Response, string){
		"2026-07-28": func() (*http.Response, string) { return p.send("POST", "/mcp", modern, append(headers, bearer)...) },
		"2025-11-25": func() (*http.Response, string) { return p.send("POST", "/mcp", legacy, session...) },
		"2026-07-28 task": func() (*http.Response, string) {
			return p.send("POST", "/mcp", strings.Replace(modern, meta, tasksMeta, 1), append(headers, bearer)...)
		},
		"2025-11-25 task": func() (*http.Response, string) {
			return p.send("POST", "/mcp", strings.Replace(legacy, `"_meta":{}`, `"_meta":{},"task":{}`, 1), session...)
		},
	}
}

// TestRevoked checks that revoking a token ends the calls and tasks that were requested with it: no further effect
// happens, and the client does not get the result.
func TestRevoked(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"2026-07-28", "2025-11-25", "2026-07-28 task", "2025-11-25 task"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a revocable
			p := open(t, func(o *web.Options) { o.Authenticator, o.Server.Grace = &a, time.Nanosecond })
			request := p.requests(many)[name]
			answered := make(chan string, 1)
			go func() {
				_, text := request()
				answered <- text
			}()
			testenv.WaitUntil(t, "the program has effects", func() bool { return len(p.files.RecordedEffects()) > 0 })
			a.revoked.Store(true)
			if text := testenv.Receive(t, answered, "the answer"); strings.Contains(text, "made") || strings.Contains(text, `"isError":false`) {
				t.Errorf("who has no token any more was told %s", text)
			}
			anna := p.engine.As("anna")
			testenv.WaitUntil(t, "nothing runs", func() bool { return anna.CountRunning() == 0 })
			n := len(p.files.RecordedEffects())
			tasks, err := anna.Tasks()
			if err != nil {
				t.Fatal(err)
			}
			for _, j := range tasks {
				testenv.WaitUntil(t, "the task has ended", func() bool { j, err = anna.Task(j.ID); return err != nil || j.Status.HasEnded() })
				if j.Status != core.TaskStatus(core.StatusCancelled) || j.Outcome == nil || j.Outcome.Error == nil || !strings.Contains(j.Outcome.Error.Message, core.ErrRevoked.Error()) {
					t.Errorf("the task ended as %s: %+v", j.Status, j.Outcome)
				}
			}
			if len(tasks) != strings.Count(name, "task") {
				t.Errorf("%d tasks", len(tasks))
			}
			if n >= directoryCount {
				t.Errorf("all %d calls were made", n)
			}
			p.stop()
			if now := len(p.files.RecordedEffects()); now != n {
				t.Errorf("%d calls left afterwards", now-n)
			}
		})
	}
}

// TestRenewed checks that a running program continues if its token has expired and its principal has sent a newer
// one, but ends if the token was revoked.
func TestRenewed(t *testing.T) {
	t.Parallel()
	for name, expires := range map[string]time.Time{"expired": time.Now().Add(time.Hour), "revoked": {}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := revocable{expires: expires}
			p := open(t, func(o *web.Options) { o.Authenticator = &a })
			body, headers := program(strings.Replace(many, "1500", "40", 1), "")
			answered := make(chan string, 1)
			go func() {
				_, text := p.send("POST", "/mcp", body, append(headers, bearer)...)
				answered <- text
			}()
			testenv.WaitUntil(t, "the program has effects", func() bool { return len(p.files.RecordedEffects()) > 0 })
			p.send("POST", "/mcp", hello, "Authorization: Bearer other")
			a.revoked.Store(true)
			if text := testenv.Receive(t, answered, "the answer"); strings.Contains(text, "made") != (name == "expired") {
				t.Errorf("answered with %s", text)
			}
		})
	}
}

// TestTasks checks that MCP tasks work over HTTP in both protocol versions, as they do over stdio.
func TestTasks(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.Authenticator, o.Server.Grace = &revocable{}, time.Nanosecond })
	if _, text := p.send("POST", "/mcp", hello, bearer); !strings.Contains(text, `"tasks":{`) {
		t.Errorf("initialize offers no tasks: %s", text)
	}
	ask := func(method, params string, headers ...string) string {
		_, text := p.send("POST", "/mcp", `{"jsonrpc":"2.0","id":9,"method":"`+method+`","params":{`+params+`}}`, headers...)
		return text
	}
	modern := func(method string) []string {
		return []string{bearer, "Mcp-Protocol-Version: 2026-07-28", "Mcp-Method: " + method}
	}
	if text := ask("server/discover", tasksMeta, modern("server/discover")...); !strings.Contains(text, `"io.modelcontextprotocol/tasks"`) {
		t.Errorf("discover offers no tasks: %s", text)
	}
	requests := p.requests(`await new Promise(r => setTimeout(r, 50)); return 'made'`)
	id := func(name string) string {
		_, text := requests[name]()
		m := taskID.FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s: no task: %s", name, text)
		}
		return m[1]
	}
	session := p.legacySession()
	if text := ask("tasks/result", `"taskId":"`+id("2025-11-25 task")+`"`, session...); !strings.Contains(text, "made") {
		t.Errorf("tasks/result: %s", text)
	}
	if text := ask("tasks/list", ``, session...); taskID.FindString(text) == "" {
		t.Errorf("tasks/list: %s", text)
	}
	task, last := id("2026-07-28 task"), ""
	testenv.WaitUntil(t, "the task has ended", func() bool {
		last = ask("tasks/get", `"taskId":"`+task+`",`+tasksMeta, append(modern("tasks/get"), "Mcp-Name: "+task)...)
		return strings.Contains(last, `"completed"`) || !strings.Contains(last, `"working"`)
	})
	if !strings.Contains(last, "made") {
		t.Errorf("tasks/get: %s", last)
	}
}
