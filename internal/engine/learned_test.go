package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// tracker returns a server that answers with JSON as text and declares no output schema.
func tracker(pin string) *scriptedServer {
	return &scriptedServer{
		tools: func() string {
			return `{"name":"list_issues","description":"Lists issues` + pin + `.","inputSchema":{"type":"object","properties":{"page":{"type":"integer"}}},"annotations":{"readOnlyHint":true}}`
		},
		answer: func(_ string, arguments json.RawMessage) string {
			var a struct{ Page int }
			_ = json.Unmarshal(arguments, &a)
			doc := fmt.Sprintf(`[{"number":%d,"title":"planted-title-%d","created_at":"2026-01-31T10:00:00Z","closed_at":null,"author":{"login":"planted-login"},"labels":["planted-label"],
				"by_user":{"planted@example.org":{"n":1},"4711-8":{"n":2}},"by_ref":{"INC4711":1,"deadbeef":"x","plantcorp":null},"votes":{"Hanne Plantova":1}}%s]`,
				a.Page+71100, a.Page, strings.Repeat(`,{"number":2,"title":"x","created_at":"2026-01-31T10:00:00Z","closed_at":"2026-02-01T10:00:00Z","author":{"login":"y"},"labels":[],"milestone":"z","by_user":{},"votes":{}}`, a.Page%2))
			text, _ := json.Marshal(doc)
			return `{"content":[{"type":"text","text":` + string(text) + `}]}`
		},
	}
}

func openTracker(t *testing.T, home, settings string, p *scriptedServer) *engine.Engine {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: home, Keys: filepath.Join(home, "keys"), Settings: settings, Servers: []engine.Server{{Name: "tracker", Dial: p.dial}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	e.WaitForServers(t.Context())
	return e
}

const tenCalls = `for (let page = 0; page < 10; page++) await tracker.listIssues({page});`

// waitForLearned waits until the engine has learned from the given number of a tool's results, and returns the inferred
// type.
func waitForLearned(t *testing.T, e *engine.Engine, tool string, answers int) (l *core.LearnedSchema) {
	t.Helper()
	testenv.WaitUntil(t, fmt.Sprintf("%d results of %s are known", answers, tool), func() bool {
		known, ok := e.Toolset().FindTool(tool)
		if ok {
			l = known.Learned
		}
		return l != nil && l.Observations >= answers
	})
	return l
}

// TestLearnedTypesWarnOfMisspeltFields checks that result types are inferred from results, that definitions show
// them, and that a program that misspells a field gets a warning.
func TestLearnedTypesWarnOfMisspeltFields(t *testing.T) {
	e := openTracker(t, t.TempDir(), "", tracker(""))
	if o := e.Execute(t.Context(), engine.Request{Code: tenCalls}); o.Status != core.StatusOK {
		t.Fatalf("%+v", o.Error)
	}
	waitForLearned(t, e, "tracker.listIssues", 10)
	definitions, err := e.Describe(t.Context(), []string{"tracker.listIssues"}, core.TypeScript)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Promise<ListIssuesOutput>", "@learned from 10 answers", "milestone?: string;", "closed_at: string | null;", "labels: string[];", "by_user: { [key: string]: { n: number } };", "votes: { [key: string]: number };"} {
		if !strings.Contains(definitions[0].Definition, want) {
			t.Errorf("the definition lacks %q:\n%s", want, definitions[0].Definition)
		}
	}
	for code, want := range map[string]string{
		`const all = await tracker.listIssues({}); return all.map(i => i.titel)`:                                                                   `line 1: "titel" never occurred in N results of tracker.listIssues. Did you mean 'title'?`,
		`const [{ authr }] = await tracker.listIssues({}); return authr`:                                                                           `Did you mean 'author'?`,
		`return (await tracker.listIssues({})).items`:                                                                                              `"items" never occurred in N results of tracker.listIssues: the value at that place is a list`,
		`for (const i of await tracker.listIssues({})) console.log(i.author.name)`:                                                                 `there are login`,
		`const n = (await tracker.listIssues({}))[0].number; return n.toUpperCase()`:                                                               `the value has the type number`,
		`const all = await tracker.listIssues({}); return all.map(i => [i.title.length, i.milestone?.length, i.by_user["x"]?.n, i.votes.whoever])`: "",
		`const one: {[k: string]: string} = (await tracker.listIssues({}))[0]; return one`:                                                         "",
		`const all = await tracker.listIssues({page: (await tracker.listIssues({}))[0].title}); return all.length`:                                 "",
	} {
		o := e.Execute(t.Context(), engine.Request{Code: code})
		if o.Status == core.StatusRejected {
			t.Errorf("%s is refused: %+v", code, o.Error)
		}
		if got := manyAnswers.ReplaceAllString(strings.Join(o.Warnings, "\n"), "N results"); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: warnings %q, want %q", code, got, want)
		}
	}
}

var manyAnswers = regexp.MustCompile(`1\d results`)

// TestLearnedTypesHaveNoValues checks that the stored types contain no value of a result, nor a key that is personal
// data.
func TestLearnedTypesHaveNoValues(t *testing.T) {
	for _, settings := range []string{"pii: {types: {badge: {pattern: 'plantc[a-z]+'}}}", "piiTokenization: false"} {
		home := t.TempDir()
		e := openTracker(t, home, settings, tracker(""))
		if o := e.Execute(t.Context(), engine.Request{Code: tenCalls}); o.Status != core.StatusOK {
			t.Fatalf("%+v", o.Error)
		}
		waitForLearned(t, e, "tracker.listIssues", 10)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		found := false
		_ = filepath.WalkDir(filepath.Join(home, "catalog"), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, _ := os.ReadFile(path)
			found = found || strings.Contains(string(text), "created_at")
			if strings.Contains(string(text), "plantcorp") && settings != "piiTokenization: false" {
				t.Errorf("%s has a key that is personal: %s", path, text)
			}
			for _, value := range []string{"planted", "Plantova", "Hanne", "4711", "deadbeef", "711", "2026-01", "EMAIL_"} {
				if strings.Contains(string(text), value) && strings.Contains(path, "shapes") {
					t.Errorf("%s has %q: %s", path, value, text)
				}
			}
			return nil
		})
		if !found {
			t.Error("nothing was kept")
		}
	}
}

// TestLearnedTypesLastAsLongAsTheDefinition checks that inferred types survive a restart, and are dropped when the
// tool's definition changes.
func TestLearnedTypesLastAsLongAsTheDefinition(t *testing.T) {
	home := t.TempDir()
	for _, tt := range []struct {
		pin, settings string
		want          int
	}{{"", "", 0}, {"", "", 10}, {"", "results: {learn: false}", 0}, {"", "", 10}, {" now", "toolChanges: note", 0}, {" now", "toolChanges: note", 10}} {
		e := openTracker(t, home, tt.settings, tracker(tt.pin))
		tool, ok := e.Toolset().FindTool("tracker.listIssues")
		if !ok {
			t.Fatalf("%+v: no tool", tt)
		}
		got := 0
		if tool.Learned != nil {
			got = tool.Learned.Observations
		}
		if got != tt.want {
			t.Errorf("%+v: %d answers are known", tt, got)
		}
		if got == 0 {
			e.Execute(t.Context(), engine.Request{Code: tenCalls})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// removeMember wraps a server and removes a member from the definitions of its tools.
func removeMember(dial func(context.Context) (io.ReadWriteCloser, error), member string) func(context.Context) (io.ReadWriteCloser, error) {
	return func(ctx context.Context) (io.ReadWriteCloser, error) {
		conn, err := dial(ctx)
		if err != nil {
			return nil, err
		}
		out, in := io.Pipe()
		go func() {
			lines := bufio.NewReader(conn)
			for {
				line, err := lines.ReadBytes('\n')
				if bytes.Contains(line, []byte(`"tools":[`)) {
					line = stripped(line, member)
				}
				if _, failed := in.Write(line); err != nil || failed != nil {
					_ = in.CloseWithError(err)
					return
				}
			}
		}()
		return stripping{out, conn}, nil
	}
}

func stripped(line []byte, member string) []byte {
	var m map[string]any
	if json.Unmarshal(line, &m) != nil {
		return line
	}
	result, _ := m["result"].(map[string]any)
	tools, _ := result["tools"].([]any)
	for _, tool := range tools {
		delete(tool.(map[string]any), member)
	}
	text, _ := json.Marshal(m)
	return append(text, '\n')
}

type stripping struct {
	io.Reader
	io.ReadWriteCloser
}

func (s stripping) Read(p []byte) (int, error) { return s.Reader.Read(p) }

// TestDryRunsAnswerInLearnedShapes checks that the simulated result of a tool in a dry run has the type inferred from
// earlier results.
func TestDryRunsAnswerInLearnedShapes(t *testing.T) {
	p := tracker("")
	p.tools = func() string { return `{"name":"create_issue","inputSchema":{"type":"object"}}` }
	e := openTracker(t, t.TempDir(), "", p)
	yes := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		return core.ApprovalAnswer{Approve: true}, true
	}
	if o := e.Execute(core.WithChannel(t.Context(), yes), engine.Request{Code: "await tracker.createIssue({})"}); o.Status != core.StatusOK {
		t.Fatalf("%+v", o.Error)
	}
	waitForLearned(t, e, "tracker.createIssue", 1)
	o := e.Execute(t.Context(), engine.Request{Code: "const [i] = await tracker.createIssue({}); return [i.author.login.length > 0, i.created_at.slice(0, 4)]", DryRun: true})
	if string(o.Result) != `[true,"1970"]` || len(p.got()) == 0 || strings.Contains(p.got(), "\n") {
		t.Errorf("%s %s %+v; it was sent %q", o.Status, o.Result, o.Error, p.got())
	}
	if l, _ := e.Toolset().FindTool("tracker.createIssue"); l.Learned.Observations != 1 {
		t.Error("what was made up has taught something")
	}
}
