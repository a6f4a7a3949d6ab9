package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

func TestMain(m *testing.M) {
	engine.Init()
	home, err := os.MkdirTemp("", "retort-test-")
	if err != nil {
		panic(err)
	}
	_ = os.Setenv("HOME", home)
	flag.Parse()
	_ = flag.Set("test.parallel", "8") // most tests spend their time waiting for processes and disks
	code := m.Run()
	_ = os.RemoveAll(home)
	os.Exit(code)
}

// unreachedLimits limits programs to one hour. No test program reaches this limit, even on a slow machine.
var unreachedLimits = engine.Limits{Timeout: time.Hour}

// openAskingEngine opens an engine that asks a person about each call when a program makes the call.
func openAskingEngine(t *testing.T) (*engine.Engine, *demo.DemoServer) {
	return openDemoEngine(t, "approval: {askFirst: false}")
}

// openDemoEngine opens an engine with settings and one demo server, and returns both. The demo server records the calls
// that it gets, so a test can count the calls that had an effect.
func openDemoEngine(t *testing.T, settings string) (*engine.Engine, *demo.DemoServer) {
	t.Helper()
	server, err := demo.Open("files")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Keys: t.TempDir(), Settings: settings, Servers: []engine.Server{{Name: "files", Dial: server.Dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e, server
}

const deletes = `
	await files.createDirectory({path: '/srv/nordlys/a'});
	await files.writeFile({path: '/srv/nordlys/a/x.txt', content: 'one'});
	return 'written';`

// countWrites returns the number of calls of write_file, the tool that needs approval, in the demo server's record.
func countWrites(s *demo.DemoServer) (n int) {
	for _, e := range s.RecordedEffects() {
		if e.Tool == "write_file" {
			n++
		}
	}
	return n
}

// connectClient connects an SDK client to an engine with a protocol version. The function elicit answers the forms that
// the client gets. If elicit is nil, the client cannot show forms. The returned function cancels the server's context
// and disconnects.
func connectClient(t *testing.T, e *engine.Engine, version string, elicit func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error)) (*mcp.ClientSession, context.CancelFunc) {
	t.Helper()
	toServer, fromClient := io.Pipe()
	toClient, fromServer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	go func() { _ = e.Serve(ctx, toServer, fromServer, false); _ = fromServer.Close() }()
	client := mcp.NewClient(&mcp.Implementation{Name: "tester", Version: "1"}, &mcp.ClientOptions{ElicitationHandler: elicit})
	client.AddReceivingMiddleware(sendEmptyNote)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	return session, func() { cancel(); _ = fromClient.Close(); _ = toClient.Close() }
}

func outcomeOf(t *testing.T, r *mcp.CallToolResult, err error) core.Outcome {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	text, _ := json.Marshal(r.StructuredContent)
	var o core.Outcome
	if err := json.Unmarshal(text, &o); err != nil {
		t.Fatal(err, string(text))
	}
	return o
}

func accept(decision string) *mcp.ElicitResult {
	return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": decision}}
}

// TestElicitation checks that a person decides about a call in the client's form, in both protocol versions. An
// approved call must be in the demo server's own record once, and a denied call must not be there.
func TestElicitation(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, c := range []struct {
			name   string
			answer *mcp.ElicitResult
			status core.OutcomeStatus
			writes int
		}{
			{"once", accept("once"), core.StatusOK, 1},
			{"run", accept("run"), core.StatusOK, 1},
			{"always", accept("always"), core.StatusOK, 1},
			{"no", accept("no"), core.StatusDenied, 0},
			{"extra field", &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once", "note": "", "more": 1}}, core.StatusOK, 1},
			{"declined", &mcp.ElicitResult{Action: "decline"}, core.StatusDenied, 0},
			{"dismissed", &mcp.ElicitResult{Action: "cancel"}, core.StatusDenied, 0},
		} {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				e, server := openAskingEngine(t)
				var asked atomic.Int64
				session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					asked.Add(1)
					for _, want := range []string{"tester 1 wants to call files.write_file (irreversible)", `"content": "one"`, `"path": "/srv/nordlys/a/x.txt"`, "permissionLevel: write_restricted", "risk of the program", "createDirectory"} {
						if !strings.Contains(r.Params.Message, want) {
							t.Errorf("the form lacks %q: %s", want, r.Params.Message)
						}
					}
					return c.answer, nil
				})
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": deletes}})
				o := outcomeOf(t, r, err)
				if o.Status != c.status || countWrites(server) != c.writes || asked.Load() != 1 {
					t.Errorf("%s %+v, %d written, asked %d times", o.Status, o.Error, countWrites(server), asked.Load())
				}
				if made := len(server.RecordedEffects()); made != 1+c.writes {
					t.Errorf("%d effects: something ran twice", made)
				}
			})
		}
	}
}

// sendEmptyNote is middleware of a client. If an answer has the note "(null)", it sends null instead, as clients do for
// a field that was left empty. The SDK's own client refuses to do that.
func sendEmptyNote(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if form, ok := result.(*mcp.ElicitResult); ok && form != nil && form.Content["note"] == "(null)" {
			form.Content["note"] = nil
		}
		return result, err
	}
}

// TestEmptyField checks that an answer counts if a field that was left empty has the value null.
func TestEmptyField(t *testing.T) {
	t.Parallel()
	e, server := openAskingEngine(t)
	session, _ := connectClient(t, e, "2025-11-25", func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
		return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"decision": "once", "note": "(null)"}}, nil
	})
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": deletes, "timeout_ms": nil, "session": nil}})
	if o := outcomeOf(t, r, err); o.Status != core.StatusOK || countWrites(server) != 1 {
		t.Errorf("%s %+v, %d written", o.Status, o.Error, countWrites(server))
	}
	r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": "return 1", "timeout_ms": "", "dry_run": "", "memory_limit": ""}})
	if o := outcomeOf(t, r, err); string(o.Result) != "1" {
		t.Errorf("empty arguments: %s %+v", o.Status, o.Error)
	}
}

// TestCancelWaiting checks that a pending Outcome says what has happened so far, that resume_execution does not repeat
// it, and that cancel ends the program.
func TestCancelWaiting(t *testing.T) {
	t.Parallel()
	const writes = `
	for (let i = 0; i < 19; i++) await files.createDirectory({path: '/srv/nordlys/d' + i});
	await files.writeFile({path: '/srv/nordlys/x.txt', content: 'one'});`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		e, server := openAskingEngine(t)
		session, _ := connectClient(t, e, version, nil)
		call := func(tool string, arguments map[string]any) core.Outcome {
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
			return outcomeOf(t, r, err)
		}
		o := call("execute_code", map[string]any{"code": writes})
		if o.Status != core.StatusPendingApproval || len(o.Calls) != 1 || o.Calls[0].Tool != "create_directory" || o.Calls[0].Count != 19 || o.Stats.ToolCalls != 20 {
			t.Fatalf("%s: %+v", version, o)
		}
		if a := o.Approvals[0]; a.Expires.IsZero() || a.Created.IsZero() || a.Code != "" || a.Digest != "" || !strings.Contains(o.Error.Hint, "If nobody answers by "+a.Expires.UTC().Format("15:04")) {
			t.Errorf("%s: %+v %+v", version, a, o.Error)
		}
		again := call("resume_execution", map[string]any{"execution_id": o.ExecutionID})
		if again.Status != core.StatusPendingApproval || !strings.HasPrefix(again.Error.Message, "still waiting for a person until ") || again.Approvals != nil || again.Calls != nil {
			t.Errorf("%s: %+v", version, again)
		}
		ended := call("resume_execution", map[string]any{"execution_id": o.ExecutionID, "cancel": true})
		if ended.Status != core.StatusCancelled || len(ended.Calls) != 1 || ended.Calls[0].Count != 19 || countWrites(server) != 0 || len(e.Waiting("")) != 0 {
			t.Errorf("%s: %+v, %d written", version, ended, countWrites(server))
		}
		if o := call("resume_execution", map[string]any{"execution_id": o.ExecutionID, "cancel": true}); o.Status != core.StatusRejected {
			t.Errorf("%s: cancelled twice: %+v", version, o)
		}
	}
}

// TestElicitationOfRows checks that calls which wait at the same time are one form with a table, and that its answer
// decides all of them, in both protocol versions.
func TestElicitationOfRows(t *testing.T) {
	t.Parallel()
	const rows = `const all = await Promise.all([1, 2, 3].map((i) => files.writeFile({path: '/srv/nordlys/' + i + '.txt', content: 'x'}))); return all.length`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		e, server := openAskingEngine(t)
		var first sync.Once
		var tables, forms atomic.Int64
		session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			first.Do(func() { testenv.WaitUntil(t, "all calls wait", func() bool { return len(e.Waiting("")) == 3 }) })
			if forms.Add(1); strings.Contains(r.Params.Message, "arguments that differ:\n") {
				tables.Add(1)
			}
			return accept("once"), nil
		})
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": rows}})
		o := outcomeOf(t, r, err)
		if string(o.Result) != "3" || countWrites(server) != 3 || len(o.Approvals) != 1 || o.Approvals[0].Count != 3 || o.Approvals[0].By != "client" {
			t.Errorf("%s: %+v, %d written", version, o, countWrites(server))
		}
		if forms.Load() > 2 || tables.Load() < 1 { // two if the first was shown before the others came
			t.Errorf("%s: %d forms, %d of them with a table", version, forms.Load(), tables.Load())
		}
	}
}

// TestElicitationBeforeStart checks that a form before a program starts shows all calls that need approval, and what
// each of its answers means, in both protocol versions.
func TestElicitationBeforeStart(t *testing.T) {
	t.Parallel()
	const loop = `let made; for (const i of [1, 2, 3]) made = await files.writeFile({path: '/srv/nordlys/' + i + '.txt', content: 'x'});
	await files.writeFile({path: '/srv/nordlys/4.txt', content: JSON.stringify(made)}); return 4`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for _, c := range []struct {
			first  map[string]any // answer to the first form
			later  string         // answers to later forms
			forms  int64
			writes int
		}{
			{map[string]any{"decision": "once"}, "once", 2, 4}, // the fourth call depends on the third
			{map[string]any{"decision": "once"}, "no", 2, 3},
			{map[string]any{"decision": "run"}, "no", 1, 4},
			{map[string]any{"decision": "run", "calls": 4}, "no", 1, 4},
			{map[string]any{"decision": "run", "calls": 3}, "no", 2, 3},
			{map[string]any{"decision": "always"}, "no", 1, 4},
			{map[string]any{"decision": "each"}, "no", 2, 0},
			{map[string]any{"decision": "no"}, "once", 1, 0},
		} {
			t.Run(fmt.Sprintf("%s/%v/%s", version, c.first, c.later), func(t *testing.T) {
				e, server := openDemoEngine(t, "")
				var forms atomic.Int64
				session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					if forms.Add(1) > 1 {
						return accept(c.later), nil
					}
					for _, want := range []string{"none of these calls has been made", "arguments that differ:\n", "1.txt", "3.txt", "are not known yet"} {
						if !strings.Contains(r.Params.Message, want) {
							t.Errorf("the form lacks %q: %s", want, r.Params.Message)
						}
					}
					if n := len(server.RecordedEffects()); n != 0 {
						t.Errorf("%d calls with effects were made before the answer", n)
					}
					return &mcp.ElicitResult{Action: "accept", Content: c.first}, nil
				})
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": loop}})
				o := outcomeOf(t, r, err)
				if countWrites(server) != c.writes || forms.Load() != c.forms || (o.Status == core.StatusOK) != (c.writes == 4) {
					t.Errorf("%s %+v: %d forms, %d written; want %d and %d", o.Status, o.Error, forms.Load(), countWrites(server), c.forms, c.writes)
				}
			})
		}
	}
}

// TestFormOutlines checks that a form shows no personal value, but a masked outline of each value that the call would
// send, such as ***@corp.example.
func TestFormOutlines(t *testing.T) {
	t.Parallel()
	const sends = `return await files.writeFile({path: '/srv/nordlys/x.txt', content: 'to ann@corp.example'})`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		e, server := openAskingEngine(t)
		session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			if m := r.Params.Message; !strings.Contains(m, `"content": "to [EMAIL_1]"`) || !strings.Contains(m, "  [EMAIL_1] ***@corp.example\n") || strings.Contains(m[:strings.Index(m, "the program:")], "ann@") {
				t.Errorf("%s: %s", version, m)
			}
			return accept("once"), nil
		})
		r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": sends}})
		if o := outcomeOf(t, r, err); o.Status != core.StatusOK || countWrites(server) != 1 {
			t.Errorf("%s: %s %+v, %d written", version, o.Status, o.Error, countWrites(server))
		}
	}
}

// TestElicitationOfMany checks that a program finishes although each of its twelve calls needs approval. The client
// calls resume_execution each time the answer says that the program waits for an approval.
func TestElicitationOfMany(t *testing.T) {
	t.Parallel()
	const many = `for (let i = 0; i < 12; i++) await files.writeFile({path: '/srv/nordlys/' + i + '.txt', content: 'x'}); return 12`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			e, server := openAskingEngine(t)
			session, _ := connectClient(t, e, version, func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) { return accept("once"), nil })
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": many}})
			o := outcomeOf(t, r, err)
			for o.Status == core.StatusPendingApproval {
				r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "resume_execution", Arguments: map[string]any{"execution_id": o.ExecutionID}})
				o = outcomeOf(t, r, err)
			}
			if o.Status != core.StatusOK || countWrites(server) != 12 {
				t.Errorf("%s %+v, %d written", o.Status, o.Error, countWrites(server))
			}
		})
	}
}

// TestElicitationOfEqual checks that equal calls that wait at the same time are shown in one form, which says how
// many they are, and that one answer decides all of them.
func TestElicitationOfEqual(t *testing.T) {
	t.Parallel()
	const equal = `const all = await Promise.allSettled(Array.from({length: 7}, (_, i) => files.writeFile({path: '/srv/nordlys/x.txt', content: i < 5 ? 'x' : 'y'}))); return all.filter((one) => one.status === 'fulfilled').length`
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		for decision, left := range map[string]int{"once": 7, "no": 0} { // the number of calls that are made
			t.Run(version+"/"+decision, func(t *testing.T) {
				e, server := openAskingEngine(t)
				var all sync.Once
				var forms, questions atomic.Int64
				session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					all.Do(func() { testenv.WaitUntil(t, "all calls wait", func() bool { return len(e.Waiting("")) == 7 }) })
					forms.Add(1)
					questions.Add(int64(equalCallsIn(r.Params.Message)))
					return accept(decision), nil
				})
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": equal}})
				o := outcomeOf(t, r, err)
				ended := map[string]core.OutcomeStatus{"once": core.StatusOK, "no": core.StatusDenied}[decision]
				if o.Status != ended || decision == "once" && string(o.Result) != "7" || countWrites(server) != left {
					t.Errorf("%s %s %+v: %d written", o.Status, o.Result, o.Error, countWrites(server))
				}
				// Those that came before the first form was shown are one, and those that came later.
				if decision == "once" && questions.Load() != 7 || forms.Load() > 4 {
					t.Errorf("%d questions in %d forms", questions.Load(), forms.Load())
				}
			})
		}
	}
}

// equalCallsIn returns how many equal calls a form asks about, according to the form's message.
func equalCallsIn(message string) int {
	_, after, _ := strings.Cut(message, "there are ")
	times, _, _ := strings.Cut(after, " ")
	n, err := strconv.Atoi(times)
	if err != nil {
		return 1
	}
	return n
}

// TestElicitationThatEnds checks that no call is made and no approval stays open if the client cancels or disconnects
// while it asks the person.
func TestElicitationThatEnds(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "disconnect"} {
		t.Run(how, func(t *testing.T) {
			e, server := openAskingEngine(t)
			ctx, cancel := context.WithCancel(t.Context())
			var leave context.CancelFunc
			session, leave := connectClient(t, e, "2025-11-25", func(ctx context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				if how == "cancel" {
					cancel()
				} else {
					go leave()
				}
				<-ctx.Done()
				return accept("once"), nil
			})
			_, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": deletes}})
			if err == nil {
				t.Error("the call was answered")
			}
			_ = e.Close()
			if countWrites(server) != 0 || len(e.Waiting("")) != 0 {
				t.Errorf("%d written, waiting: %v", countWrites(server), e.Waiting(""))
			}
		})
	}
}

// TestWithoutElicitation checks that a client without forms gets the pending approval immediately, and gets the result
// from resume_execution after a person has approved.
func TestWithoutElicitation(t *testing.T) {
	t.Parallel()
	e, server := openAskingEngine(t)
	session, _ := connectClient(t, e, "2025-11-25", nil)
	r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": deletes}})
	o := outcomeOf(t, r, err)
	if o.Status != core.StatusPendingApproval || r.IsError || len(o.Approvals) != 1 || string(o.Approvals[0].Arguments) != `{"content":"one","path":"/srv/nordlys/a/x.txt"}` {
		t.Fatalf("%+v", o)
	}
	var person sync.WaitGroup
	defer person.Wait()
	waiting := e.Waiting("")[0]
	person.Go(func() { _ = e.Decide(waiting.ID, waiting.Digest, core.ApprovalAnswer{Approve: true}) })
	r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "resume_execution", Arguments: map[string]any{"execution_id": o.ExecutionID}})
	if o = outcomeOf(t, r, err); o.Status != core.StatusOK || countWrites(server) != 1 {
		t.Errorf("%+v", o)
	}
}

// rw combines the read end of one pipe with the write end of another.
type rw struct {
	io.ReadCloser
	io.WriteCloser
}

func (c rw) Close() error { return errors.Join(c.ReadCloser.Close(), c.WriteCloser.Close()) }

// TestToolThatChangesMeanwhile checks that a tool is not called if its definition changes while a person decides
// about the call, even if the person approves.
func TestToolThatChangesMeanwhile(t *testing.T) {
	t.Parallel()
	var called atomic.Int64
	upstream := mcp.NewServer(&mcp.Implementation{Name: "shifty", Version: "1"}, nil)
	add := func(description string) {
		upstream.AddTool(&mcp.Tool{Name: "delete_thing", Description: description, InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			called.Add(1)
			return &mcp.CallToolResult{}, nil
		})
	}
	add("Deletes one thing.")
	dial := func(context.Context) (io.ReadWriteCloser, error) {
		toServer, fromClient := io.Pipe()
		toClient, fromServer := io.Pipe()
		go func() { _ = upstream.Run(t.Context(), &mcp.IOTransport{Reader: toServer, Writer: fromServer}) }()
		return rw{toClient, fromClient}, nil
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unreachedLimits, Home: t.TempDir(), Servers: []engine.Server{{Name: "shifty", Dial: dial}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	pin := func() string {
		if tool, ok := e.Toolset().FindExact("shifty", "delete_thing"); ok {
			return tool.Pin
		}
		return "" // it is hidden, since it has changed
	}
	before := pin()
	o := e.Call(core.WithChannel(t.Context(), func(ctx context.Context, _ core.Approval) (core.ApprovalAnswer, bool) {
		add("Deletes everything.")
		if !testenv.Poll(func() bool { return pin() != before || ctx.Err() != nil }) {
			t.Error("the engine did not notice the changed tool")
		}
		return core.ApprovalAnswer{Approve: true, Scope: core.ScopeRun}, true
	}), engine.Request{}, "shifty.delete_thing", json.RawMessage("{}"))
	if o.Error == nil || o.Error.Kind != core.KindToolChanged || called.Load() != 0 {
		t.Errorf("%s %+v, called %d times", o.Status, o.Error, called.Load())
	}
}

// TestElicitationAfterDryRun checks that a dry run is answered without asking the person, and that resuming it shows
// all of its effects in one form.
func TestElicitationAfterDryRun(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			e, server := openAskingEngine(t)
			var forms []string
			session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				forms = append(forms, r.Params.Message)
				return accept("once"), nil
			})
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "execute_code", Arguments: map[string]any{"code": deletes, "dry_run": true}})
			o := outcomeOf(t, r, err)
			if o.Status != core.StatusOK || len(o.Effects) != 2 || len(o.Approvals) != 1 || len(forms) != 0 || len(server.RecordedEffects()) != 0 {
				t.Fatalf("%+v %+v, forms %q", o, o.Error, forms)
			}
			r, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "resume_execution", Arguments: map[string]any{"execution_id": o.ExecutionID}})
			done := outcomeOf(t, r, err)
			if done.Status != core.StatusOK || string(done.Result) != `"written"` || len(server.RecordedEffects()) != 2 {
				t.Errorf("%+v %+v, %d effects", done, done.Error, len(server.RecordedEffects()))
			}
			if len(forms) != 1 || !strings.Contains(forms[0], "files.create_directory") || !strings.Contains(forms[0], `"content": "one"`) {
				t.Errorf("%q", forms)
			}
		})
	}
}

// TestPersonalDataTools checks that sanitize_pii replaces personal values by tokens, and that restore_pii shows the
// values only to the person: neither its result nor the client's form contains them.
func TestPersonalDataTools(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			e, _ := openAskingEngine(t)
			var forms []string
			session, _ := connectClient(t, e, version, func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
				forms = append(forms, r.Params.Message)
				for _, a := range e.Waiting("") {
					if !strings.Contains(a.RenderText(), "ann@corp.example") {
						t.Errorf("a person does not see the value: %s", a.RenderText())
					}
				}
				return accept("once"), nil
			})
			call := func(name, text string) string {
				r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: name, Arguments: map[string]any{"text": text}})
				if err != nil {
					t.Fatal(err)
				}
				answer, _ := json.Marshal(r.StructuredContent)
				return string(answer)
			}
			if got := call("sanitize_pii", "write to ann@corp.example, card 4111 1111 1111 1111"); got != `{"found":{"CREDIT_CARD":1,"EMAIL":1},"text":"write to [EMAIL_1], card [CREDIT_CARD_1]"}` {
				t.Errorf("%s", got)
			}
			got := call("restore_pii", "to [EMAIL_1]")
			if strings.Contains(got, "corp.example") || !strings.Contains(got, `"shown":false`) || len(forms) != 1 || strings.Contains(forms[0], "corp.example") {
				t.Errorf("%s, forms %q", got, forms)
			}
		})
	}
}
