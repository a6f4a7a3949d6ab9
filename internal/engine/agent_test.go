package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/admin"
	"retort/internal/agent/model/modeltest"
	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// agentSetup holds an engine with a scripted model, and the demo servers behind it. Tests pass or fail by the
// effects that these servers have recorded.
type agentSetup struct {
	*engine.Engine
	model   *modeltest.FakeServer
	servers map[string]*demo.DemoServer
	home    string
}

func newOffice(t *testing.T, settings string, script func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedStep) *agentSetup {
	t.Helper()
	return newOfficeWith(t, "provider: openai", settings, script)
}

func newOfficeWith(t *testing.T, provider, settings string, script func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedStep) *agentSetup {
	t.Helper()
	o := &agentSetup{servers: map[string]*demo.DemoServer{}, home: t.TempDir()}
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: o.home, Settings: settings, Limits: unlimitedTime}
	if script != nil {
		o.model = modeltest.New(script)
		t.Cleanup(o.model.Close)
		if !strings.Contains(provider, "timeout:") {
			provider += ", timeout: 1h"
		}
		c.Settings += fmt.Sprintf("\nmodel: {%s, url: %q, model: scripted, maxTokens: 1000, price: {input: 3, output: 15}}\n", provider, o.model.URL)
	}
	for _, name := range []string{"crm", "drive"} {
		server, err := demo.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		o.servers[name] = server
		c.Servers = append(c.Servers, engine.Server{Name: name, Dial: server.Dial})
	}
	var err error
	if o.Engine, err = engine.Open(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = o.Close() })
	o.WaitForServers(t.Context())
	testenv.WaitUntil(t, "a search finds tools of crm", func() bool { // Search does not wait until new servers are indexed
		found, err := o.Search(t.Context(), engine.Query{Text: todo, Limit: 5})
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(found.Tools, func(f core.FoundTool) bool { return f.Server == "crm" })
	})
	return o
}

func (o *agentSetup) effects() int { return len(o.servers["crm"].RecordedEffects()) }

// repeatedChanges returns the changes that the CRM server recorded more than once.
func (o *agentSetup) repeatedChanges() (found []string) {
	seen := map[string]bool{}
	for _, e := range o.servers["crm"].RecordedEffects() {
		text, _ := json.Marshal(e)
		key := string(text)
		if seen[key] {
			found = append(found, key)
		}
		seen[key] = true
	}
	return found
}

func writes(programs ...string) func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep {
	return func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedStep {
		return modeltest.ScriptedStep{Text: "Here it is:\n\n```ts\n" + programs[min(n, len(programs))-1] + "\n```\n"}
	}
}

const (
	sleepProgram = `await sleep(1e9)` // runs until it is cancelled
	create       = `await crm.createRecord({ objectType: 'Lead', data: { LastName: 'A', Company: 'C' } });`
	createTwo    = `await crm.createRecord({ objectType: 'Lead', data: { LastName: 'B', Company: 'C' } });`
	todo         = "create a lead record in the crm for company C"
)

// TestTask checks that tasks end with the right Outcome and cause no effect twice, whether the model writes good or
// bad programs, for both API formats.
func TestTask(t *testing.T) {
	// These differ only in the programs, and take turns with the providers.
	programsOnly := []string{"wrong tool name", "type error", "error after one effect", "goes on after it", "does it again", "never right"}
	for name, c := range map[string]struct {
		script   func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep
		status   core.OutcomeStatus
		kind     core.Kind
		attempts int
		effects  int
		asked    string // is in what the model was told at last
	}{
		"right at first":  {writes(create + ` return 'done'`), core.StatusOK, "", 1, 1, ""},
		"wrong tool name": {writes(`return crm.creatRecord({})`, create+` return 1`), core.StatusOK, "", 2, 1, "creatRecord"},
		"type error":      {writes(`return crm.createRecord({ objectTyp: 'Lead', data: {} })`, create+` return 1`), core.StatusOK, "", 2, 1, "objectTyp"},
		"error after one effect": {
			writes(create+` throw new Error('half way')`, createTwo+` return 1`), core.StatusDenied, core.KindPolicy, 2, 1, "Do not make them again",
		},
		"goes on after it": {writes(create+` throw new Error('half way')`, `return 'the rest'`), core.StatusOK, "", 2, 1, "it was made"},
		"does it again":    {writes(create + ` throw new Error('half way')`), core.StatusDenied, core.KindPolicy, 2, 1, "LastName"},
		"never right":      {writes(`const x: number = ;`), core.StatusRejected, core.KindSyntax, 3, 0, "last attempt"},
		"no program": {func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep {
			return modeltest.ScriptedStep{Text: "I would begin by thinking."}
		}, core.StatusError, core.KindRuntime, 3, 0, "There was no program"},
		"endless talk": {func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep {
			return modeltest.ScriptedStep{Endless: true}
		}, core.StatusError, core.KindRuntime, 3, 0, "too long"},
		"declines": {func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep {
			return modeltest.ScriptedStep{Refuse: "no"}
		}, core.StatusDenied, core.KindPolicy, 0, 0, ""},
		"invalid JSON": {func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep { return modeltest.ScriptedStep{Raw: "{"} }, core.StatusError, core.KindUpstreamGone, 0, 0, ""},
		"says nothing": {func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep { return modeltest.ScriptedStep{Hang: true} }, core.StatusTimeout, core.KindUpstreamTimeout, 0, 0, ""},
		"busy for a while": {
			func(n int, a modeltest.ReceivedRequest) modeltest.ScriptedStep {
				if n == 1 {
					return modeltest.ScriptedStep{Status: 429, Header: map[string]string{"Retry-After": "0"}}
				}
				return writes(create+` return 1`)(n, a)
			}, core.StatusOK, "", 1, 1, "",
		},
	} {
		for n, provider := range []string{"openai", "anthropic"} {
			if turn := slices.Index(programsOnly, name); turn >= 0 && turn%2 != n && !testenv.Full() {
				continue
			}
			t.Run(name+"/"+provider, func(t *testing.T) {
				t.Parallel()
				no := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) { return core.ApprovalAnswer{}, true }
				if name == "says nothing" {
					provider += ", timeout: 1s"
				}
				e := newOfficeWith(t, "provider: "+provider, "", c.script)
				o := e.ExecuteTask(core.WithChannel(t.Context(), no), engine.Task{Description: todo})
				if o.Status != c.status || o.Error != nil && o.Error.Kind != c.kind || o.Attempts != c.attempts {
					t.Errorf("%s after %d attempts, %+v; want %s", o.Status, o.Attempts, o.Error, c.status)
				}
				if n := e.effects(); n != c.effects || len(e.repeatedChanges()) > 0 {
					t.Errorf("%d effects, twice %v", n, e.repeatedChanges())
				}
				asked := e.model.Requests()
				if last := asked[len(asked)-1]; !strings.Contains(last.Last, c.asked) {
					t.Errorf("the model was told %s", last.Last)
				}
				if m := o.Stats.Model; m == nil || c.status == core.StatusOK && (m.InputTokens < 100 || m.Cost <= 0 || m.Currency != "$" || o.Program == "") {
					t.Errorf("%+v, program %q", m, o.Program)
				}
			})
		}
	}
}

// TestTaskRepeats checks that a person who is asked about a repeated call sees which effects the task has had so far.
// It also checks that approving a call once does not approve another repetition of it.
func TestTaskRepeats(t *testing.T) {
	var asked []core.Approval
	yes := func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
		asked = append(asked, a)
		return core.ApprovalAnswer{Approve: true, Scope: core.ScopeAlways}, true
	}
	e := newOffice(t, "", writes(create+` throw new Error('a')`, create+create+` throw new Error('b')`, createTwo+createTwo+` return 1`))
	o := e.ExecuteTask(core.WithChannel(t.Context(), yes), engine.Task{Description: todo})
	if o.Status != core.StatusOK || len(asked) != 3 || e.effects() != 5 {
		t.Fatalf("%s %+v, asked %d times, %d effects", o.Status, o.Error, len(asked), e.effects())
	}
	for i, want := range []core.RepeatKind{core.RepeatsSame, core.RepeatsSame, core.RepeatsSimilar} {
		if asked[i].Repeats != want || len(asked[i].Before) == 0 || !strings.Contains(asked[i].RenderText(), "an earlier attempt at the same task already called it") {
			t.Errorf("%d: %s %v", i, asked[i].Repeats, asked[i].Before)
		}
	}
	if len(o.Calls) != 3 {
		t.Errorf("calls of earlier programs: %+v", o.Calls)
	}
}

// TestTaskResumes checks that a task whose program waits for a person continues when it is resumed, and that the
// model may then still repair the program.
func TestTaskResumes(t *testing.T) {
	e := newOffice(t, "approval: {autoApproveMedium: false}", writes(create+` throw new Error('a')`, `return 'mended'`))
	o := e.ExecuteTask(t.Context(), engine.Task{Description: todo})
	if o.Status != core.StatusPendingApproval || o.Task == "" || e.effects() != 0 {
		t.Fatalf("%s %+v", o.Status, o.Error)
	}
	if other := e.As("somebody").Resume(t.Context(), o.ExecutionID, 0); other.Status != core.StatusRejected {
		t.Errorf("somebody else has resumed it: %s", other.Status)
	}
	for range 10 { // the program, then the call
		waiting := e.Waiting(o.ExecutionID)
		for _, a := range waiting {
			if err := e.Decide(a.ID, a.Digest, core.ApprovalAnswer{Approve: true}); err != nil {
				t.Fatal(err)
			}
		}
		if o = e.Resume(t.Context(), o.ExecutionID, 0); o.Status != core.StatusPendingApproval {
			break
		}
	}
	if o.Status != core.StatusOK || string(o.Result) != `"mended"` || o.Attempts != 2 || e.effects() != 1 {
		t.Errorf("%s %s %+v after %d attempts, %d effects", o.Status, o.Result, o.Error, o.Attempts, e.effects())
	}
}

// TestTaskWithoutModel checks that without a model the Outcome has all that the caller needs to write the program,
// and that its skeleton program passes the check.
func TestTaskWithoutModel(t *testing.T) {
	for _, lang := range []core.Language{core.TypeScript, core.Python} {
		e := newOffice(t, "", nil)
		o := e.ExecuteTask(t.Context(), engine.Task{Description: "update the notes of a record\u2028 */ with ${text} of document abc", Language: lang, Inputs: json.RawMessage(`{"id":"x","__proto__":1}`)})
		if o.Status != core.StatusRejected || o.TaskContext == nil || len(o.Tools) == 0 || len(o.Definitions) != len(o.Tools) || o.Error.Message != "no model configured" || !strings.Contains(o.Error.Hint, "model: {provider:") {
			t.Fatalf("%s %+v %+v", o.Status, o.Error, o.TaskContext)
		}
		ran := e.Execute(t.Context(), engine.Request{Code: o.Skeleton, Language: lang})
		if ran.Status != core.StatusOK || !strings.Contains(string(ran.Result), "crm.") || ran.Stats.ToolCalls != 0 {
			t.Errorf("the skeleton: %s %s %+v\n%s", ran.Status, ran.Result, ran.Error, o.Skeleton)
		}
		text, err := json.Marshal(o)
		if err != nil || !strings.Contains(string(text), `"skeleton":`) || !strings.Contains(string(text), `"definitions":`) {
			t.Errorf("%s %v", text, err)
		}
	}
}

// TestTaskWithCode checks that a task that comes with a program calls no model, and that only the tools it names are
// available.
func TestTaskWithCode(t *testing.T) {
	e := newOffice(t, "", writes("return 0"))
	for _, c := range []struct {
		code  string
		tools []string
		want  core.OutcomeStatus
	}{
		{`return (await drive.getDocument({documentId: inputs.id})).title`, []string{"drive.getDocument"}, core.StatusOK},
		{`return (await callMCPTool('drive__get_document', {documentId: inputs.id})).title`, []string{"drive__get_document"}, core.StatusOK},
		{`return (await drive.getDocument({documentId: inputs.id})).title`, nil, core.StatusRejected},
		{`return await callMCPTool('cr' + 'm__create_record', {objectType: 'Lead', data: {}})`, []string{"drive.getDocument"}, core.StatusDenied},
		{create, []string{"drive.getDocument"}, core.StatusRejected},
		{`return (await searchTools('create a record')).length`, []string{"drive.getDocument"}, core.StatusOK},
		{`return 1`, []string{"drive.nothing"}, core.StatusRejected},
	} {
		o := e.ExecuteTask(t.Context(), engine.Task{Code: c.code, RequiredTools: c.tools, Inputs: json.RawMessage(`{"id":"abc123"}`)})
		if o.Status != c.want {
			t.Errorf("%s: %s %+v", c.code, o.Status, o.Error)
		}
	}
	if len(e.model.Requests()) > 0 || e.effects() > 0 {
		t.Errorf("asked %d times, %d effects", len(e.model.Requests()), e.effects())
	}
	o := e.ExecuteTask(t.Context(), engine.Task{Code: "\nconst x: string = 1;\nreturn nothing;", Inputs: json.RawMessage(`{"a":1}`)})
	if o.Error == nil || o.Error.Line != 3 || strings.Contains(o.Error.Frame, "inputs") || !strings.Contains(o.Error.Frame, "> 3 |") {
		t.Errorf("%+v", o.Error)
	}
}

// TestTaskHides checks that secrets and personal values are in no request to the model, wherever they occur.
func TestTaskHides(t *testing.T) {
	t.Setenv("MODEL_KEY", "key-of-the-model-123")
	e := newOffice(t, "servers: {crm: {trusted: false}}", func(n int, _ modeltest.ReceivedRequest) modeltest.ScriptedStep {
		if n == 1 {
			return modeltest.ScriptedStep{Text: "```ts\nthrow new Error('not found: ' + inputs.to + ' hanne@example.org')\n```"}
		}
		return modeltest.ScriptedStep{Text: "```ts\nreturn inputs.to\n```"}
	})
	o := e.ExecuteTask(t.Context(), engine.Task{Description: "write to ann.smith@example.org", Inputs: json.RawMessage(`{"to":"bob.jones@example.org"}`)})
	if o.Status != core.StatusOK || strings.Contains(string(o.Result), "bob.jones") {
		t.Errorf("%s %s %+v", o.Status, o.Result, o.Error)
	}
	for _, a := range e.model.Requests() {
		for _, secret := range []string{"ann.smith", "bob.jones", "hanne@"} {
			if strings.Contains(a.Body, secret) {
				t.Errorf("%s has left: %s", secret, a.Body)
			}
		}
	}
	if !strings.Contains(e.model.Requests()[0].Body, "[EMAIL_") {
		t.Errorf("there is no token: %s", e.model.Requests()[0].Body)
	}
}

// TestTaskBudget checks that a task's limit of model tokens is applied before the model is called.
func TestTaskBudget(t *testing.T) {
	e := newOffice(t, "orchestrator: {tokens: 3000}", func(int, modeltest.ReceivedRequest) modeltest.ScriptedStep {
		return modeltest.ScriptedStep{Text: "```ts\nreturn nothing\n```", Tokens: 1900}
	})
	o := e.ExecuteTask(t.Context(), engine.Task{Description: todo, Budget: engine.Budget{Tokens: 2000}})
	if asked := len(e.model.Requests()); o.Status == core.StatusOK || asked != 1 || o.Attempts != 1 || !strings.Contains(fmt.Sprint(o.Warnings, o.Error), "tokens of the model") {
		t.Errorf("%s %+v %v, asked %d times", o.Status, o.Error, o.Warnings, len(e.model.Requests()))
	}
	o = e.ExecuteTask(t.Context(), engine.Task{Description: todo, Budget: engine.Budget{Attempts: 1}})
	if o.Attempts != 1 {
		t.Errorf("%d attempts", o.Attempts)
	}
}

// TestTaskPhases checks that the phases of a task are reported and recorded in their order.
func TestTaskPhases(t *testing.T) {
	e := newOffice(t, "", writes(`return 1`))
	var told []core.TaskPhase
	o := e.ExecuteTask(t.Context(), engine.Task{ID: "task-1", Description: todo, Progress: func(s engine.TaskStep) {
		if !slices.Contains(told, s.Phase) {
			told = append(told, s.Phase)
		}
	}})
	if o.Status != core.StatusOK || o.Task != "task-1" || !slices.Equal(told, core.TaskPhases()) {
		t.Errorf("%s, %v", o.Status, told)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	page, err := admin.QueryAudit(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: e.home}, admin.AuditQuery{Filter: admin.AuditFilter{Kinds: []string{string(core.EventTask)}}})
	want := []string{"queued", "begun"}
	for _, phase := range core.TaskPhases() {
		want = append(want, string(phase))
	}
	want = append(want, "ok")
	var got []string
	for _, entry := range slices.Backward(page.Entries) {
		got = append(got, entry.Status)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestTaskOffersSkills checks that a matching skill is offered first, and that the tools it calls are available.
func TestTaskOffersSkills(t *testing.T) {
	e := newOffice(t, "", writes("import { title } from './skills/document-title';\nreturn title('abc123')"))
	saved := e.SaveSkill(t.Context(), engine.Request{}, engine.SkillDraft{Name: "document-title", Description: "The title of a document by its id",
		Code: "export async function title(id: string): Promise<string> { return (await drive.getDocument({ documentId: id })).title; }"})
	if saved.Status != core.StatusOK {
		t.Fatalf("%+v", saved.Error)
	}
	o := e.ExecuteTask(t.Context(), engine.Task{Description: "the title of the document with the id abc123"})
	if o.Status != core.StatusOK || !strings.Contains(e.model.Requests()[0].Body, "document-title") {
		t.Errorf("%s %+v\n%s", o.Status, o.Error, e.model.Requests()[0].Last)
	}
}

// TestTaskTemplatesOfOnesOwn checks that an engine can be opened if the project has valid templates of its own.
func TestTaskTemplatesOfOnesOwn(t *testing.T) {
	home := t.TempDir()
	if err := os.MkdirAll(filepath.Join(home, "templates"), 0o755); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"repair.md": "fine", "skill.md": "ours: {{.name}}", "wrapper.py": "# ours\n{{.code}}"} {
		if err := os.WriteFile(filepath.Join(home, "templates", file), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
}

// TestTaskTemplates checks that Open fails if a template of the project is wrong, and that the error names the file
// and the line.
func TestTaskTemplates(t *testing.T) {
	for file, c := range map[string][2]string{
		"task.md":     {"one\n{{.tsk}}", "task.md:2"},
		"system.md":   {"a\n\n{{if}}", "system.md:3"},
		"skill.md":    {"{{range .functions}}\n", "skill.md:"},
		"skeleton.py": {"x = nope", "skeleton.py: its output fails the program check, at line 1"},
		"skeleton.ts": {"const x: number = 'a'; return nope;", "skeleton.ts: its output fails the program check, at line 1"},
		"wrapper.ts":  {"// ours\n", "{{.code}} is missing from its output"},
		"repair.md":   {"{{.message}}\n{{.nothing}}", "repair.md:2"},
		"stub.ts":     {"{{.name}}", "stub.ts: {{.definition}} is missing from its output"},
		"stub.py":     {"{{.definition}}\n{{.nme}}", "stub.py:2"},
		"wrapper.py":  {"# ours\n{{.code}}\nx = nope", "wrapper.py: its output fails the program check, at line"},
	} {
		home := t.TempDir()
		if err := os.MkdirAll(filepath.Join(home, "templates"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "templates", file), []byte(c[0]), 0o644); err != nil {
			t.Fatal(err)
		}
		e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: home})
		if (err == nil) != (c[1] == "") || err != nil && !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want %q", file, err, c[1])
		}
		if err == nil {
			_ = e.Close()
		}
	}
}

// TestTaskRepeatsNothing checks that no call of an earlier program happens again without a person's approval, however
// a later program of the task repeats it.
func TestTaskRepeatsNothing(t *testing.T) {
	const (
		fails = ` throw new Error('half way')`
		other = `await crm.updateRecord({ objectType: 'Lead', recordId: '00Q001001', data: { Company: 'D' } });`
	)
	skill := engine.SkillDraft{
		Name: "make-lead", Description: "Creates a lead record in the crm for a company",
		Code: "export async function lead(): Promise<void> { " + create + " }",
	}
	for name, c := range map[string]struct {
		lang     core.Language
		programs []string
		attempts int
		effects  int
	}{
		"as it was":            {programs: []string{create + fails, create}, attempts: 2, effects: 1},
		"in another order":     {programs: []string{create + fails, `await crm.createRecord({ data: { Company: 'C', LastName: 'A' }, objectType: 'Lead' });`}, attempts: 2, effects: 1},
		"with another value":   {programs: []string{create + fails, createTwo}, attempts: 2, effects: 1},
		"by its name":          {programs: []string{create + fails, `await callMCPTool('crm__create_record', { objectType: 'Lead', data: { LastName: 'A', Company: 'C' } });`}, attempts: 2, effects: 1},
		"in a skill":           {programs: []string{create + fails, "import { lead } from './skills/make-lead';\nawait lead();"}, attempts: 2, effects: 1},
		"first in a skill":     {programs: []string{"import { lead } from './skills/make-lead';\nawait lead();" + fails, create}, attempts: 2, effects: 1},
		"at the third attempt": {programs: []string{create + fails, `throw new Error('nothing')`, create}, attempts: 3, effects: 1},
		"after another call":   {programs: []string{create + fails, other + create}, attempts: 2, effects: 2},
		"where it is caught":   {programs: []string{create + fails, `try { ` + create + ` } catch {} return 1`}, attempts: 2, effects: 1},
		"side by side":         {programs: []string{create + fails, `await Promise.allSettled([1, 2, 3].map(() => crm.createRecord({ objectType: 'Lead', data: { LastName: 'A', Company: 'C' } })));`}, attempts: 2, effects: 1},
		"in Python": {lang: core.Python, programs: []string{
			"crm.create_record(object_type='Lead', data={'LastName': 'A', 'Company': 'C'})\nraise ValueError('half way')",
			"crm.create_record(data={'Company': 'C', 'LastName': 'A'}, object_type='Lead')",
		}, attempts: 2, effects: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newOffice(t, "", writes(c.programs...))
			if saved := e.SaveSkill(t.Context(), engine.Request{}, skill); saved.Status != core.StatusOK {
				t.Fatalf("%+v", saved.Error)
			}
			asked := 0
			no := func(_ context.Context, a core.Approval) (core.ApprovalAnswer, bool) {
				if a.Repeats != "" {
					asked++
					if same := name != "with another value"; same != (a.Repeats == core.RepeatsSame) || !strings.Contains(a.RenderText(), "LastName") {
						t.Errorf("%s: %s", a.Repeats, a.RenderText())
					}
				}
				return core.ApprovalAnswer{Approve: a.Repeats == ""}, true
			}
			o := e.ExecuteTask(core.WithChannel(t.Context(), no), engine.Task{Description: todo, Language: c.lang})
			if o.Attempts != c.attempts || asked == 0 || e.effects() != c.effects || len(e.repeatedChanges()) > 0 {
				t.Errorf("%s %+v after %d attempts, asked %d times, %d effects, twice %v", o.Status, o.Error, o.Attempts, asked, e.effects(), e.repeatedChanges())
			}
			for _, a := range e.model.Requests()[1:] { // each later prompt lists it
				if !strings.Contains(a.Last, "Do not make them again") || !strings.Contains(a.Last, "LastName") {
					t.Errorf("the model is not told what was made: %s", a.Last)
				}
			}
		})
	}
}
