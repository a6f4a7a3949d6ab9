package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/engine"
)

const tidies = `
	const before = await files.listDirectory({path: '/srv/nordlys'});
	const made = await files.createDirectory({path: '/srv/nordlys/a'});
	await files.writeFile({path: '/srv/nordlys/a/x.txt', content: 'one'});
	return {seen: JSON.stringify(before).length > 20, made};`

// runDry runs a program as a dry run and returns the Outcome, whose effects wait for approval.
func runDry(t *testing.T, e *engine.Engine, code string) core.Outcome {
	t.Helper()
	var asked atomic.Int64
	ctx := core.WithChannel(t.Context(), fixedAnswer(core.ApprovalAnswer{Approve: true}, &asked))
	o := e.Execute(ctx, engine.Request{Code: code, DryRun: true})
	if o.Status != core.StatusOK || !o.DryRun || len(o.Approvals) != 1 || asked.Load() != 0 {
		t.Fatalf("%+v %+v, asked %d times", o, o.Error, asked.Load())
	}
	return o
}

// TestDryRun checks that a dry run reads and records but changes nothing, and that after approval exactly the shown
// effects happen.
func TestDryRun(t *testing.T) {
	for name, answer := range map[string]core.ApprovalAnswer{"approved": {Approve: true}, "denied": {Note: "no"}} {
		t.Run(name, func(t *testing.T) {
			e, server := openJudged(t, "")
			o := runDry(t, e, tidies)
			if len(o.Effects) != 2 || string(o.Effects[1].Arguments) != `{"content":"one","path":"/srv/nordlys/a/x.txt"}` || o.Effects[1].Effect != "irreversible" {
				t.Errorf("%+v", o.Effects)
			}
			if len(server.RecordedEffects()) != 0 || !strings.Contains(string(o.Result), `"seen":true`) {
				t.Errorf("%d effects, %s", len(server.RecordedEffects()), o.Result)
			}
			var asked atomic.Int64
			done := e.Resume(core.WithChannel(t.Context(), fixedAnswer(answer, &asked)), o.ExecutionID, 10*time.Second)
			if asked.Load() != 1 {
				t.Errorf("asked %d times", asked.Load())
			}
			if answer.Approve && (done.Status != core.StatusOK || done.DryRun || len(server.RecordedEffects()) != 2) {
				t.Errorf("%+v %+v, %d effects", done, done.Error, len(server.RecordedEffects()))
			}
			if !answer.Approve && (done.Status != core.StatusDenied || len(server.RecordedEffects()) != 0) {
				t.Errorf("%+v, %d effects", done, len(server.RecordedEffects()))
			}
		})
	}
}

// TestDryRunQuestion checks that the question shows all effects in full, and that the approval covers only these.
func TestDryRunQuestion(t *testing.T) {
	e, _ := openJudged(t, "")
	o := runDry(t, e, tidies)
	waiting := e.Waiting(o.ExecutionID)
	if len(waiting) != 1 || len(waiting[0].Effects) != 2 {
		t.Fatalf("%+v", waiting)
	}
	text := waiting[0].RenderText()
	for _, want := range []string{"with the 2 effects", "files.create_directory (write", `"content": "one"`, "the program:"} {
		if !strings.Contains(text, want) {
			t.Errorf("the question lacks %q:\n%s", want, text)
		}
	}
	other := waiting[0].Question
	other.Effects = other.Effects[:1]
	if other.ApprovalDigest() == waiting[0].Digest {
		t.Error("the digest does not bind the effects")
	}
}

// TestDryRunThatDiffers checks that a person is asked again about effects that differ from the dry run, and that each
// approved effect happens once.
func TestDryRunThatDiffers(t *testing.T) {
	e, server := openJudged(t, "permissionLevel: execute_full")
	o := runDry(t, e, `
		const made = await files.createDirectory({path: '/srv/nordlys/b'});
		const real = JSON.stringify(made).includes('dry run') || JSON.stringify(made) === '{}' ? 'dry' : 'real';
		await files.createDirectory({path: '/srv/nordlys/' + real});
		return real;`)
	var asked []core.Approval
	done := e.Resume(core.WithChannel(t.Context(), func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		asked = append(asked, a)
		return core.ApprovalAnswer{Approve: !a.IsCall()}, true
	}), o.ExecutionID, 10*time.Second)
	if done.Status != core.StatusDenied || len(asked) != 2 || !strings.Contains(string(asked[1].Arguments), "real") || len(server.RecordedEffects()) != 1 {
		t.Errorf("%+v %+v, asked %d times, %d effects", done, done.Error, len(asked), len(server.RecordedEffects()))
	}
	if len(asked) == 2 && !strings.Contains(asked[1].Rule, "dry run") {
		t.Errorf("requested because of %q", asked[1].Rule)
	}
}

// TestDryRunFiles checks that a dry run can read the files that it writes, and that they do not exist afterwards.
func TestDryRunFiles(t *testing.T) {
	e, _ := openJudged(t, "")
	o := e.Execute(t.Context(), engine.Request{DryRun: true, Code: `
		import fs from 'node:fs/promises';
		await fs.writeFile('out.csv', 'a,b');
		return fs.readFile('out.csv', 'utf8');`})
	if o.Status != core.StatusOK || string(o.Result) != `"a,b"` || len(o.Approvals) != 0 || !strings.Contains(strings.Join(o.Warnings, " "), "out.csv") {
		t.Errorf("%+v %+v", o, o.Error)
	}
	o = e.Execute(t.Context(), engine.Request{Code: `import fs from 'node:fs/promises'; return fs.readdir('./workspace')`})
	if string(o.Result) != `[]` {
		t.Errorf("%s %+v", o.Result, o.Error)
	}
}

// TestDryRunThatFails checks that the policy also refuses calls in a dry run, and that a dry run that fails has
// nothing to approve.
func TestDryRunThatFails(t *testing.T) {
	e, server := openJudged(t, "permissionLevel: read_only")
	if o := e.Execute(t.Context(), engine.Request{DryRun: true, Code: tidies}); o.Status != core.StatusRejected && o.Status != core.StatusDenied {
		t.Errorf("%+v", o)
	}
	e2, _ := openJudged(t, "")
	o := e2.Execute(t.Context(), engine.Request{DryRun: true, Code: `
		const r: any = await files.createDirectory({path: '/srv/nordlys/c'});
		return r.entries[0].name.length;`})
	if o.Status != core.StatusError || !o.DryRun || len(o.Effects) != 1 || len(o.Approvals) != 0 || !strings.Contains(o.Error.Hint, "placeholder values") {
		t.Errorf("%+v %+v", o, o.Error)
	}
	if len(server.RecordedEffects()) != 0 || len(e2.Waiting("")) != 0 {
		t.Error("something happened or waits")
	}
}
