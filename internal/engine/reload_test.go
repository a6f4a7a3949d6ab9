package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// reloadSetup is an engine with a settings file, and a server "eye" with the tools "add_note" and "get_note".
// During the first call of the tool that the field on names, the server calls hook.
type reloadSetup struct {
	*testing.T
	*engine.Engine
	dir  string
	keys string
	eye  *scriptedServer
	hook func()
	on   string
	once sync.Once
}

func reloadable(t *testing.T, settings string) *reloadSetup {
	t.Helper()
	r := &reloadSetup{T: t, dir: t.TempDir(), keys: t.TempDir(), on: "get_note"}
	define := func(name string) string {
		return fmt.Sprintf(`{"name":%q,"description":"Notes.","inputSchema":{"type":"object"}}`, name)
	}
	r.eye = &scriptedServer{tools: func() string { return define("add_note") + "," + define("get_note") }}
	r.eye.answer = func(tool string, _ json.RawMessage) string {
		if r.hook != nil && tool == r.on {
			r.once.Do(r.hook)
		}
		return textResult("done " + tool)
	}
	r.write(settings)
	r.open(r.eye.dial)
	return r
}

func (r *reloadSetup) open(dial func(context.Context) (io.ReadWriteCloser, error)) {
	r.Helper()
	e, err := engine.Open(r.Context(), engine.Config{
		Dir: r.dir, Home: filepath.Join(r.dir, "home"), Keys: r.keys, Reserve: engine.ReserveNone, Limits: unlimitedTime,
		Servers: []engine.Server{{Name: "eye", Dial: dial}},
	})
	if err != nil {
		r.Fatal(err)
	}
	r.Engine = e
	r.Cleanup(func() { _ = e.Close() })
}

func (r *reloadSetup) write(settings string) {
	r.Helper()
	if err := os.WriteFile(filepath.Join(r.dir, "retort.yaml"), []byte(settings), 0o600); err != nil {
		r.Fatal(err)
	}
}

// writeSettings writes the settings file and makes the engine read it.
func (r *reloadSetup) writeSettings(settings string) {
	r.Helper()
	r.write(settings)
	if !engine.Reload(r.Engine) {
		r.Error("the change was not noticed")
	}
}

const twoNotes = `
const said = [await eye.getNote({})];
for (const f of [eye.addNote, eye.getNote]) {
  try { said.push(await f({})) } catch (e: any) { said.push(e.message) }
}
return said.join('; ')`

// TestReloadInTheMidstOfAProgram checks which calls of a program succeed after the settings change during the first
// of its three calls.
func TestReloadInTheMidstOfAProgram(t *testing.T) {
	const names = "principals: {anna: {}}\n"
	for name, c := range map[string]struct {
		before, after string
		want          string // of the program; of the next one
		next          string
	}{
		"denied":       {names, names + "servers: {eye: {deny: [add_note]}}", "done get_note; the policy does not allow eye.add_note: servers.eye.deny: add_note; done get_note", "the policy does not allow eye.add_note"},
		"read only":    {names, "principals: {anna: {permissionLevel: read_only}}", "done get_note; the policy does not allow eye.add_note: principals.anna.permissionLevel: read_only; done get_note", "the policy does not allow eye.add_note"},
		"allowed":      {names + "servers: {eye: {conditions: {add_note: 'false'}}}", names, "done get_note; the policy does not allow these arguments of eye.add_note: servers.eye.conditions: add_note; done get_note", "done get_note; done add_note; done get_note"},
		"removed":      {names, "principals: {bob: {}}", "all further requests of anna are refused: principals.anna was removed from the settings", "all further requests of anna are refused"},
		"switched off": {names, names + "enabled: false", "all further requests of anna are refused: enabled: false", "all further requests of anna are refused"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reloadable(t, c.before)
			r.WaitForServers(t.Context())
			r.hook = func() { r.writeSettings(c.after) }
			anna := r.As("anna")
			for _, want := range []string{c.want, c.next} {
				o := anna.Execute(t.Context(), engine.Request{Code: twoNotes})
				said := string(o.Result)
				if o.Error != nil {
					said = o.Error.Message
				}
				if !strings.Contains(said, want) {
					t.Errorf("%s %q, want %q", o.Status, said, want)
				}
			}
			if sent := strings.Count(r.eye.got(), "{}"); c.next != c.want && strings.Contains(c.next, "nothing") && sent != 1 {
				t.Errorf("%d calls were sent", sent)
			}
		})
	}
}

// TestReloadAsks checks that a person is asked about a call that needs approval since a reload, even in a program
// that began earlier.
func TestReloadAsks(t *testing.T) {
	r := reloadable(t, "permissionLevel: execute_full\n")
	r.WaitForServers(t.Context())
	r.hook = func() { r.writeSettings("permissionLevel: execute_full\napproval: {autoApproveMedium: false}\n") }
	o := r.Execute(t.Context(), engine.Request{Code: twoNotes})
	if o.Status != core.StatusPendingApproval || len(o.Approvals) != 1 || !strings.Contains(o.Approvals[0].Rule, "autoApproveMedium") {
		t.Fatalf("%s %+v %+v", o.Status, o.Error, o.Approvals)
	}
	// What is approved is judged by the rules of then.
	r.writeSettings("permissionLevel: execute_full\nservers: {eye: {deny: [add_note]}}\n")
	a := r.Waiting("")[0]
	if err := r.Decide(a.ID, a.Digest, engine.Answer{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if o = r.Resume(t.Context(), o.ExecutionID, 0); !strings.Contains(string(o.Result), "servers.eye.deny: add_note") {
		t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
	}
}

// TestReloadReachesCallsThatWait checks that a call that waits for its server to start is not sent if a reload
// forbids it.
func TestReloadReachesCallsThatWait(t *testing.T) {
	r := reloadable(t, "permissionLevel: execute_full\n")
	r.WaitForServers(t.Context())
	_ = r.Close() // the next engine knows the tools before the server is there
	dialing, proceed := make(chan struct{}, 8), make(chan struct{})
	r.open(func(ctx context.Context) (io.ReadWriteCloser, error) {
		dialing <- struct{}{}
		<-proceed
		return r.eye.dial(ctx)
	})
	outcome := make(chan engine.Outcome, 1)
	go func() { outcome <- r.Call(t.Context(), engine.Request{}, "eye.add_note", nil) }()
	testenv.Receive(t, dialing, "the start of the server")
	r.writeSettings("permissionLevel: execute_full\nservers: {eye: {deny: [add_note]}}\n")
	close(proceed)
	if o := testenv.Receive(t, outcome, "the call"); o.Status != core.StatusDenied || !strings.Contains(o.Error.Message, "servers.eye.deny: add_note") || r.eye.got() != "" {
		t.Errorf("%s %+v, sent: %q", o.Status, o.Error, r.eye.got())
	}
}

// TestReloadSaysWhatIsOutstanding checks that Outstanding describes an error in a file, and settings that take effect
// at the next start, until they are fixed or reverted.
func TestReloadSaysWhatIsOutstanding(t *testing.T) {
	r := reloadable(t, "permissionLevel: read_only\n")
	for _, c := range []struct{ settings, want string }{
		{"permissionLevel: read_only\nnetwork: {default: allow}\n", "network changed; restart retort serve to apply it"},
		{"permissionLevel: execute_full\nnetwork: {default: allow}\nmemory: 1GB\n", "network and memory changed; restart retort serve to apply them"},
		{"permissionLevel: [\n", "retort.yaml:1:"},
		{"permissionLevel: execute_full\ncommands: [{command: git}]\n", "commands changed; restart retort serve to apply it"},
		{"permissionLevel: execute_full\nservers: {eye: {expose: direct}}\n", "servers.eye.expose changed; restart retort serve to apply it"},
		{"permissionLevel: execute_full\n", ""},
	} {
		r.writeSettings(c.settings)
		if got := r.Outstanding(); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("after %q: %q, want %q", c.settings, got, c.want)
		}
	}
	if o := r.Call(t.Context(), engine.Request{}, "eye.add_note", nil); o.Status != core.StatusOK {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}

// TestReloadTellsClients checks that clients are notified when a reload shows or hides tools of servers that they see
// directly.
func TestReloadTellsClients(t *testing.T) {
	const exposed = "servers: {eye: {expose: direct, deny: [get_note]}}\n"
	r := reloadable(t, exposed)
	r.WaitForServers(t.Context())
	told := make(chan string, 64)
	defer r.WatchChanges(func(_, method string, _ json.RawMessage) { told <- method })()
	r.writeSettings("servers: {eye: {expose: direct}}\n")
	if testenv.Receive(t, told, "a notification") != "notifications/tools/list_changed" || r.Toolset().CountTools() != 2 {
		t.Errorf("%d tools", r.Toolset().CountTools())
	}
	r.writeSettings(exposed)
	testenv.Receive(t, told, "a notification")
	if r.Toolset().CountTools() != 1 {
		t.Errorf("%d tools", r.Toolset().CountTools())
	}
}

// TestReloadChangesAServer checks that a server whose entry changes is reconnected, and that executions that begin
// afterwards use the new connection.
func TestReloadChangesAServer(t *testing.T) {
	r := reloadable(t, "")
	r.WaitForServers(t.Context())
	r.hook = func() { r.writeSettings("servers: {eye: {timeout: 5m, instances: 3}}\n") }
	o := r.Execute(t.Context(), engine.Request{Code: twoNotes})
	if o.Error == nil || !strings.Contains(o.Error.Message, `the entry of the server "eye" was changed`) && !strings.Contains(o.Error.Message, "added or changed after the program began") {
		t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
	}
	r.WaitForServers(t.Context())
	if o := r.Execute(t.Context(), engine.Request{Code: twoNotes}); string(o.Result) != `"done get_note; done add_note; done get_note"` {
		t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
	}
}

// TestReloadWhileProgramsRun checks that programs make no call that both the old and the new settings forbid, while
// the settings change again and again.
func TestReloadWhileProgramsRun(t *testing.T) {
	r := reloadable(t, "servers: {eye: {deny: [get_note]}}\n")
	r.WaitForServers(t.Context())
	var all sync.WaitGroup
	stop := make(chan struct{})
	for range 4 {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if o := r.Call(t.Context(), engine.Request{}, "eye.get_note", nil); o.Status == core.StatusOK {
					t.Error("a call that is denied all the time was made")
				}
			}
		})
	}
	for i := range 20 {
		r.writeSettings(fmt.Sprintf("servers: {eye: {deny: [get_note, x%d]}}\npermissionLevel: %s\n", i, []string{"read_only", "execute_full"}[i%2]))
	}
	close(stop)
	all.Wait()
}

// TestReloadOfWhatAProgramMayHaveWritten checks that a program that makes a server write the settings file gains
// nothing: only what the new settings forbid takes effect. The same must hold for settings that are written just
// before the call ends.
func TestReloadOfWhatAProgramMayHaveWritten(t *testing.T) {
	const narrow = "permissionLevel: execute_full\nprincipals: {anna: {}}\nservers: {eye: {deny: [get_note]}}\n"
	for name, c := range map[string]struct {
		noticed bool   // in the midst of the call
		written string // by it
		want    string // of what follows
	}{
		"more":              {true, "permissionLevel: execute_full\n", "the policy does not allow eye.get_note: servers.eye.deny: get_note"},
		"more, at the end":  {false, "permissionLevel: execute_full\n", "the policy does not allow eye.get_note: servers.eye.deny: get_note"},
		"more and less":     {true, "permissionLevel: execute_full\nservers: {eye: {deny: [add_note]}}\n", "the policy does not allow eye.add_note: servers.eye.deny: add_note"},
		"less":              {false, narrow + "enabled: false\n", "all further requests of anybody are refused: enabled: false"},
		"another entry":     {true, narrow + "toolChanges: note\n", "the policy does not allow eye.get_note: servers.eye.deny: get_note"},
		"the same, remarks": {true, narrow + "# remark\n", "the policy does not allow eye.get_note: servers.eye.deny: get_note"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reloadable(t, narrow)
			r.WaitForServers(t.Context())
			engine.Reload(r.Engine)
			r.on, r.hook = "add_note", func() {
				if r.write(c.written); c.noticed {
					engine.Reload(r.Engine)
				}
			}
			if o := r.Call(t.Context(), engine.Request{}, "eye.add_note", nil); o.Status != core.StatusOK {
				t.Fatalf("%s %+v", o.Status, o.Error)
			}
			engine.Reload(r.Engine)
			said := ""
			for _, name := range []string{"eye.add_note", "eye.get_note"} {
				if o := r.Call(t.Context(), engine.Request{}, name, nil); o.Error != nil {
					said += o.Error.Message
				}
			}
			if !strings.Contains(said, c.want) {
				t.Errorf("%q, want %q", said, c.want)
			}
			if said := r.Outstanding(); strings.Contains(said, "while calls that may have effects were under way") == strings.Contains(c.written, "remark") {
				t.Errorf("outstanding: %q", said)
			}
			engine.Reload(r.Engine) // nothing runs any more
			r.writeSettings(c.written + "# a remark means nothing else\n")
			if o := r.Call(t.Context(), engine.Request{}, "eye.get_note", nil); o.Status != core.StatusDenied {
				t.Errorf("after a remark: %s", o.Status)
			}
			r.writeSettings("permissionLevel: execute_full\nprincipals: {bob: {}}\n") // a person does, when nothing runs
			if o := r.Call(t.Context(), engine.Request{}, "eye.get_note", nil); o.Status != core.StatusOK || r.Outstanding() != "" {
				t.Errorf("%s %+v, outstanding: %q", o.Status, o.Error, r.Outstanding())
			}
		})
	}
}

// TestReloadKeepsTheDataDirectory checks that a project's settings file that is created while the engine runs takes
// effect but does not change the data directory, and that Outstanding says so.
func TestReloadKeepsTheDataDirectory(t *testing.T) {
	dir, config := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", config)
	t.Setenv("XDG_DATA_HOME", t.TempDir())
	if err := errors.Join(os.MkdirAll(filepath.Join(config, "retort"), 0o700), os.WriteFile(filepath.Join(config, "retort", "retort.yaml"), []byte("permissionLevel: execute_full\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{Dir: dir, Keys: t.TempDir(), Reserve: engine.ReserveNone, Servers: []engine.Server{{Name: "crm", Dial: demo.DialFunc("crm")}}})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := os.WriteFile(filepath.Join(dir, "retort.yaml"), []byte("permissionLevel: read_only\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !engine.Reload(e) || e.Outstanding() != "the data directory changed; restart retort serve to apply it" {
		t.Errorf("%q", e.Outstanding())
	}
	if o := e.Call(t.Context(), engine.Request{}, "crm.delete_record", []byte(`{}`)); o.Status != core.StatusDenied {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}
