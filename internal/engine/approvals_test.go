package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// openJudged opens an engine with one demo server. Tests pass or fail by the effects that this server has recorded.
func openJudged(t *testing.T, settings string) (*engine.Engine, *demo.DemoServer) {
	t.Helper()
	t.Setenv("HOME", t.TempDir())
	return judgedAt(t, t.TempDir(), settings)
}

func judgedAt(t *testing.T, home, settings string) (*engine.Engine, *demo.DemoServer) {
	t.Helper()
	server, err := demo.Open("files")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home, Settings: settings, Limits: unlimitedTime, Servers: []engine.Server{{Name: "files", Dial: server.Dial}}})
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

// fixedAnswer returns an approval channel that always gives the answer a, and counts in asked how often it is
// asked.
func fixedAnswer(a core.ApprovalAnswer, asked *atomic.Int64) core.ApprovalChannel {
	return func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		asked.Add(1)
		return a, true
	}
}

// countWrites returns how many calls of write_file, the tool that needs approval, a server has carried out.
func countWrites(s *demo.DemoServer) (n int) {
	for _, e := range s.RecordedEffects() {
		if e.Tool == "write_file" {
			n++
		}
	}
	return n
}

func TestApprovals(t *testing.T) {
	for name, c := range map[string]struct {
		answer core.ApprovalAnswer
		status core.OutcomeStatus
		writes int
	}{
		"yes":    {core.ApprovalAnswer{Approve: true}, core.StatusOK, 1},
		"always": {core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, core.StatusOK, 1},
		"no":     {core.ApprovalAnswer{Note: "not today"}, core.StatusDenied, 0},
	} {
		t.Run(name, func(t *testing.T) {
			e, server := openJudged(t, "")
			var asked atomic.Int64
			o := e.Execute(core.WithChannel(t.Context(), fixedAnswer(c.answer, &asked)), engine.Request{Code: deletes})
			if o.Status != c.status || countWrites(server) != c.writes || asked.Load() != 1 {
				t.Errorf("%s, %d written, asked %d times: %+v", o.Status, countWrites(server), asked.Load(), o.Error)
			}
			if !c.answer.Approve && !strings.Contains(o.Error.Message, "not today") {
				t.Errorf("%+v", o.Error)
			}
		})
	}
}

// TestApprovalShowsWhatLeaves checks that the arguments that a person sees are exactly those that the server gets.
func TestApprovalShowsWhatLeaves(t *testing.T) {
	e, _ := openJudged(t, "")
	var seen core.Approval
	o := e.Call(core.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		seen = a
		return core.ApprovalAnswer{}, true
	}), engine.Request{}, "files.write_file", json.RawMessage(`{"path":"/srv/nordlys/y","content":"a","content":"\u202eb"}`))
	if o.Status != core.StatusDenied {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
	if string(seen.Arguments) != `{"content":"`+"\u202e"+`b","path":"/srv/nordlys/y"}` {
		t.Errorf("%s", seen.Arguments)
	}
	if text := seen.RenderText(); !strings.Contains(text, `\u202eb`) || !strings.Contains(text, "permissionLevel: write_restricted") {
		t.Errorf("%s", text)
	}
}

// TestPendingAndResume checks that an execution is pending if no channel can ask a person, and that it continues
// where it stopped once it is resumed.
func TestPendingAndResume(t *testing.T) {
	for name, approve := range map[string]bool{"approved": true, "denied": false} {
		t.Run(name, func(t *testing.T) {
			e, server := openJudged(t, "approval: {askFirst: false}")
			o := e.Execute(t.Context(), engine.Request{Code: deletes})
			if o.Status != core.StatusPendingApproval || len(o.Approvals) != 1 || o.Approvals[0].Code != "" || countWrites(server) != 0 {
				t.Fatalf("%+v %+v", o, o.Error)
			}
			made := len(server.RecordedEffects())
			waiting := o.Approvals[0]
			if err := e.Decide(waiting.ID, waiting.Digest, core.ApprovalAnswer{Approve: approve}); err != nil {
				t.Fatal(err)
			}
			done := e.Resume(t.Context(), o.ExecutionID, testenv.Patience)
			if approve && (done.Status != core.StatusOK || string(done.Result) != `"written"` || countWrites(server) != 1 || len(server.RecordedEffects()) != made+1) {
				t.Errorf("%+v %+v, %d effects", done, done.Error, len(server.RecordedEffects()))
			}
			if !approve && (done.Status != core.StatusDenied || countWrites(server) != 0) {
				t.Errorf("%+v", done)
			}
			if again := e.Resume(t.Context(), o.ExecutionID, testenv.Patience); again.Status != core.StatusRejected {
				t.Errorf("the outcome was handed out twice: %+v", again)
			}
		})
	}
}

// unansweredChannel returns an approval channel that does not answer. It stores the approval that it is asked for in
// *seen.
func unansweredChannel(seen *core.Approval) core.ApprovalChannel {
	return func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		*seen = a
		return core.ApprovalAnswer{}, false
	}
}

func TestPendingThatNobodyAnswers(t *testing.T) {
	e, server := openJudged(t, "approval: {timeout: 1s}")
	var seen core.Approval
	o := e.Execute(core.WithChannel(t.Context(), unansweredChannel(&seen)), engine.Request{Code: deletes})
	if o.Status == core.StatusPendingApproval { // it may have timed out already
		o = e.Resume(t.Context(), o.ExecutionID, testenv.Patience)
	}
	if o.Status != core.StatusDenied || o.Error == nil || !strings.Contains(o.Error.Message, "no person answered") || countWrites(server) != 0 {
		t.Errorf("%+v %+v", o, o.Error)
	}
	if err := e.Decide(seen.ID, seen.Digest, core.ApprovalAnswer{Approve: true}); err == nil {
		t.Error("a late yes counts")
	}
}

// TestCancelWhileAsked checks that cancelling a request also removes the approval for which it waits.
func TestCancelWhileAsked(t *testing.T) {
	e, server := openJudged(t, "")
	ctx, cancel := context.WithCancel(t.Context())
	late := make(chan error, 1)
	o := e.Execute(core.WithChannel(ctx, func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		cancel()
		if !testenv.Poll(func() bool { return len(e.Waiting("")) == 0 }) {
			t.Error("the approval of a canceled program still waits")
		}
		late <- e.Decide(a.ID, a.Digest, core.ApprovalAnswer{Approve: true})
		return core.ApprovalAnswer{Approve: true}, true
	}), engine.Request{Code: deletes})
	if o.Status != core.StatusCancelled {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
	if err := testenv.Receive(t, late, "the result of the late approval"); err == nil {
		t.Error("a yes after the end counts")
	}
	if countWrites(server) != 0 {
		t.Error("the call left")
	}
}

// untilLongEnough calls the function attempt with longer and longer timeouts until it reports that the timeout was
// long enough for its programs, whose running time depends on the machine. During an attempt a person answers only
// after the timeout. So no timeout would be long enough if the wait for the person counted.
func untilLongEnough(t *testing.T, attempt func(t *testing.T, limit time.Duration) (enough bool)) {
	t.Helper()
	enough := false
	for limit := time.Second; !enough && limit <= 64*time.Second; limit *= 4 {
		t.Run(limit.String(), func(t *testing.T) { enough = attempt(t, limit) })
	}
	if !enough {
		t.Error("every timeout passes while somebody is asked")
	}
}

// TestHumanTimeIsNotCharged checks that a program's timeout does not run while it waits for a
// person. The person answers only after another program, which started later with the same
// timeout, has timed out.
func TestHumanTimeIsNotCharged(t *testing.T) {
	t.Parallel() // it spends most of its time waiting
	untilLongEnough(t, humanTime)
}

func humanTime(t *testing.T, limit time.Duration) (enough bool) {
	e, server := judgedAt(t, t.TempDir(), "")
	limited := engine.Request{Limits: engine.Limits{Timeout: limit}}
	slow := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		other := limited
		other.Code = sleepProgram
		if o := e.Execute(t.Context(), other); o.Status != core.StatusTimeout {
			t.Errorf("the other program: %s %+v", o.Status, o.Error)
		}
		return core.ApprovalAnswer{Approve: true}, true
	}
	var all sync.WaitGroup
	var program, call core.Outcome
	all.Go(func() {
		r := limited
		r.Code = deletes
		program = e.Execute(core.WithChannel(t.Context(), slow), r)
	})
	all.Go(func() {
		call = e.Call(core.WithChannel(t.Context(), slow), limited, "files.write_file", json.RawMessage(`{"path":"/srv/nordlys/y.txt","content":"a"}`))
	})
	all.Wait()
	if program.Status == core.StatusTimeout || call.Status == core.StatusTimeout {
		return false
	}
	if n := countWrites(server); n != 2 || program.Status != core.StatusOK || call.Status != core.StatusOK {
		t.Errorf("%d files were written, want 2; the program %s %+v, the call %s %+v", n, program.Status, program.Error, call.Status, call.Error)
	}
	return true
}

// TestScopesOfAYes checks that an approval covers the later calls that its scope names, and no others.
func TestScopesOfAYes(t *testing.T) {
	const two = `
		for (const n of ['p', 'q', 'r']) await files.writeFile({path: '/srv/nordlys/' + n + '.txt', content: 'x'});
		return 1`
	for scope, want := range map[core.ApprovalScope][2]int64{core.ScopeOnce: {3, 6}, core.ScopeRun: {1, 2}, core.ScopeAlways: {1, 1}} {
		t.Run(string(scope), func(t *testing.T) {
			e, server := openJudged(t, "approval: {askFirst: false}")
			var asked atomic.Int64
			ctx := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true, Scope: scope}, &asked))
			for i := range 2 {
				if o := e.Execute(ctx, engine.Request{Code: two}); o.Status != core.StatusOK || asked.Load() != want[i] || countWrites(server) != 3*(i+1) {
					t.Errorf("run %d: %s %+v, asked %d times", i, o.Status, o.Error, asked.Load())
				}
			}
		})
	}
}

// TestAlways checks that a permanent approval still applies after a restart, but not under another policy, and not if
// the file that stores it was forged.
func TestAlways(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	home := t.TempDir()
	asks := func(settings string) int64 {
		e, _ := judgedAt(t, home, settings)
		defer e.Close()
		var asked atomic.Int64
		o := e.Execute(core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, &asked)), engine.Request{Code: deletes})
		if o.Status != core.StatusOK {
			t.Fatalf("%s %+v", o.Status, o.Error)
		}
		return asked.Load()
	}
	for i, want := range []int64{1, 0} {
		if n := asks(""); n != want {
			t.Errorf("engine %d asks %d times", i, n)
		}
	}
	forge(t, filepath.Join(home, "approvals", "always.json"))
	if n := asks(""); n != 1 {
		t.Error("a forged file approves")
	}
	if n := asks("servers: {files: {trusted: true}}"); n != 1 {
		t.Error("a yes outlives its policy")
	}
}

// TestProgramsThatAreAskedAbout checks when a person is asked before a program runs, for several approval settings. A
// person must not be asked about a program and about its calls.
func TestProgramsThatAreAskedAbout(t *testing.T) {
	for _, c := range []struct {
		settings, code string
		programs, all  int64
	}{
		{"", "return 1", 0, 0},
		{"approval: {autoApproveLow: false}", "return 1", 1, 1},
		{"approval: {autoApproveMedium: false}", deletes, 1, 1}, // about both calls before it starts
		{"approval: {autoApproveMedium: false, askFirst: false}", deletes, 0, 2},
		{"{permissionLevel: execute_full, approval: {autoApproveHigh: true}}", deletes, 0, 0},
		{"{permissionLevel: execute_full, approval: {askFirst: false}}", deletes, 0, 1},
		{"{approval: {autoApproveHigh: true, askFirst: false}}", deletes, 0, 1},
		{"{approval: {autoApproveHigh: true}}", deletes, 1, 1},
	} {
		e, _ := openJudged(t, c.settings)
		var programs, all atomic.Int64
		o := e.Execute(core.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
			all.Add(1)
			if !a.IsCall() {
				programs.Add(1)
			}
			return core.ApprovalAnswer{Approve: true}, true
		}), engine.Request{Code: c.code})
		if o.Status != core.StatusOK || programs.Load() != c.programs || all.Load() != c.all {
			t.Errorf("%s: %s %+v; asked %d times, %d of them about the program", c.settings, o.Status, o.Error, all.Load(), programs.Load())
		}
	}
}

// TestProgramDenied checks that a program that a person denies does not run.
func TestProgramDenied(t *testing.T) {
	e, server := openJudged(t, "approval: {autoApproveLow: false}")
	var asked atomic.Int64
	o := e.Execute(core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{}, &asked)), engine.Request{Code: deletes})
	if o.Status != core.StatusDenied || len(server.RecordedEffects()) != 0 || asked.Load() != 1 {
		t.Errorf("%s %+v", o.Status, o.Error)
	}
}

func forge(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Rules []map[string]any `json:"rules"`
		Seal  string           `json:"seal"`
	}
	if err := json.Unmarshal(text, &file); err != nil || len(file.Rules) != 1 {
		t.Fatal(err, string(text))
	}
	file.Rules = append(file.Rules, file.Rules[0])
	text, _ = json.Marshal(file)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestAnySequenceOfApprovals checks that every file that was written had been approved, and was
// written once, in whatever order people answer, clients cancel and approvals time out. The
// choices are random but have fixed seeds. Their order depends on the scheduler.
func TestAnySequenceOfApprovals(t *testing.T) {
	const programs = 60
	e, server := openJudged(t, "approval: {timeout: 1s}")
	c := &randomPeople{e: e, cancel: map[string]func(){}, approved: map[string]bool{}}
	var all, people sync.WaitGroup
	over := make(chan struct{})
	for i := range programs {
		path := fmt.Sprintf("/srv/nordlys/f%d.txt", i)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c.cancel[path] = cancel
		all.Go(func() { executeAndResume(ctx, e, path, time.Duration(i%5)*time.Millisecond) })
	}
	for i := range 3 {
		people.Go(func() { c.answerAll(t, over, rand.New(rand.NewPCG(uint64(i), 7))) })
	}
	all.Wait()
	_ = e.Close()
	close(over)
	people.Wait()
	seen := map[string]bool{}
	for _, effect := range server.RecordedEffects() {
		if seen[effect.Target] || !c.approved[effect.Target] {
			t.Errorf("%s was written twice or without a yes", effect.Target)
		}
		seen[effect.Target] = true
	}
	if len(seen) == 0 || len(seen) == programs {
		t.Errorf("%d of %d files were written: want some, but not all", len(seen), programs)
	}
}

// executeAndResume executes a program that writes a file, and resumes it until it ends or ctx is canceled.
func executeAndResume(ctx context.Context, e *engine.Engine, path string, patience time.Duration) {
	o := e.Execute(ctx, engine.Request{Code: fmt.Sprintf(`await files.writeFile({path: %q, content: 'x'}); return 1`, path)})
	for o.Status == core.StatusPendingApproval && ctx.Err() == nil {
		o = e.Resume(ctx, o.ExecutionID, patience)
	}
}

// randomPeople simulates people who answer an engine's approvals.
type randomPeople struct {
	e      *engine.Engine
	cancel map[string]func() // by path that the program writes

	mu       sync.Mutex
	approved map[string]bool // by path
}

// answerAll calls answer for each waiting approval, again and again, until the channel over is closed and no
// approval is left.
func (c *randomPeople) answerAll(t *testing.T, over <-chan struct{}, random *rand.Rand) {
	for {
		var waiting map[string]core.Approval
		_ = testenv.Poll(func() bool {
			waiting = c.waitingByPath()
			select {
			case <-over:
				return true
			default:
				return len(waiting) > 0
			}
		})
		if len(waiting) == 0 {
			return
		}
		for path, a := range waiting {
			if c.answerRandomly(a, path, random) {
				t.Error("an answer with a wrong digest was accepted")
			}
		}
	}
}

// waitingByPath returns the waiting approvals by the path of the file that the call would write. It omits every
// tenth file, so that nobody answers for those and their approvals time out.
func (c *randomPeople) waitingByPath() map[string]core.Approval {
	found := map[string]core.Approval{}
	for _, a := range c.e.Waiting("") {
		var call struct{ Path string }
		_ = json.Unmarshal(a.Arguments, &call)
		if !strings.HasSuffix(call.Path, "5.txt") {
			found[call.Path] = a
		}
	}
	return found
}

// answerRandomly treats a waiting approval in a way chosen at random: it approves, denies, answers with a wrong
// digest, cancels the program, or does nothing. It returns true if the engine accepted a wrong digest.
func (c *randomPeople) answerRandomly(a core.Approval, path string, random *rand.Rand) (fooled bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch random.IntN(8) {
	case 0:
		c.cancel[path]()
	case 1, 2:
		return c.e.Decide(a.ID, strings.Repeat("0", 64), core.ApprovalAnswer{Approve: true}) == nil
	case 3, 4:
		_ = c.e.Decide(a.ID, a.Digest, core.ApprovalAnswer{})
	case 5, 6:
		if c.e.Decide(a.ID, a.Digest, core.ApprovalAnswer{Approve: true}) == nil {
			c.approved[path] = true
		}
	}
	return false
}

// TestManyNoes checks that a program whose call is denied ends, whatever it catches, and that a program which marks its
// calls as optional is refused without asking a person after as many denials in a row as the settings allow.
func TestManyNoes(t *testing.T) {
	for name, c := range map[string]struct {
		code   string
		status core.OutcomeStatus
		asked  int64
	}{
		"one by one": {`for (let i = 0; i < 100; i++) { try { await files.writeFile({path: '/srv/nordlys/x' + i + '.txt', content: 'one'}) } catch (e) {} } return 0`, core.StatusDenied, 1},
		"at once":    {`await Promise.allSettled(Array.from({length: 100}, (_, i) => files.writeFile({path: '/srv/nordlys/x' + i + '.txt', content: 'one'}))); return 0`, core.StatusDenied, 1},
		"optional":   {`let yes = 0; for (let i = 0; i < 100; i++) { if (await approve('x', files.writeFile, [{path: '/srv/nordlys/x' + i + '.txt', content: 'one'}], {optional: true})) yes++ } return yes`, core.StatusOK, 3},
	} {
		t.Run(name, func(t *testing.T) {
			e, server := openJudged(t, "approval: {declined: 3}\n")
			var asked atomic.Int64
			o := e.Execute(core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{}, &asked)), engine.Request{Code: c.code})
			if o.Status != c.status || o.Status == core.StatusOK && string(o.Result) != "0" || countWrites(server) != 0 || asked.Load() != c.asked {
				t.Errorf("%s %s, %d written, asked %d times: %+v", o.Status, o.Result, countWrites(server), asked.Load(), o.Error)
			}
		})
	}
}
