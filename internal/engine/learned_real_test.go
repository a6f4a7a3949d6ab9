package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/devel/demo"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

// bundledCalls lists calls of bundled tools that do not declare their results, as TypeScript code. Each call is made
// several times, and the variable i in it counts these repetitions.
var bundledCalls = []string{
	"calendar.listCalendars()", "calendar.listChanges({})", "chat.listChannels({})", "chat.getChannelHistory({channel: 'deployments', limit: 5 + i})",
	"chat.getAuditLog({limit: 5 + i})", "crm.describeObject({objectType: ['Account', 'Contact', 'Lead', 'Deal'][i % 4]})", "crm.listUsers()",
	"database.describeTable({table: (await database.listTables()).tables[0].name})", "database.query({sql: 'SELECT * FROM orders LIMIT ' + (i + 1)})", "files.getFileInfo({path: '/srv/nordlys'})",
	"drive.getSheet({sheetId: 'orders-2026'})", "files.directoryTree({path: '/srv/nordlys', depth: 2})", "issues.listRepositories({per_page: i + 1})",
	"issues.listIssues({owner: 'nordlys', repo: 'aurora', page: i + 1})", "issues.getIssue({owner: 'nordlys', repo: 'aurora', issue_number: i + 1})",
	"issues.listPullRequests({owner: 'nordlys', repo: 'aurora', page: i + 1})", "mail.listHistory({maxResults: i + 1})", "sheets.listSpreadsheets({})",
	"sheets.listRevisions({spreadsheetId: 'orders-2026'})", "sheets.readRange({spreadsheetId: 'orders-2026', range: 'A1:C' + (i + 2)})",
}

// realCalls lists calls of tools of published servers from npm. The test removes the result types that the tools
// declare.
func realCalls(dir string) []string {
	return []string{
		"everything.echo({message: 'call ' + i})", "everything.getSum({a: i, b: 1})", "everything.getResourceLinks({count: i + 1})",
		"everything.getStructuredContent({location: ['New York', 'Chicago', 'Los Angeles'][i % 3]})", "everything.getTinyImage()", "everything.getEnv()",
		fmt.Sprintf("filesystem.getFileInfo({path: %q})", dir), fmt.Sprintf("filesystem.listDirectory({path: %q})", dir), "filesystem.listAllowedDirectories()",
		fmt.Sprintf("filesystem.writeFile({path: %q + '/f' + i, content: 'x'})", dir), fmt.Sprintf("filesystem.directoryTree({path: %q})", dir),
		"memory.createEntities({entities: [{name: 'e' + i, entityType: 'test', observations: ['o']}]})", "memory.readGraph()", "memory.searchNodes({query: 'e'})", "memory.openNodes({names: ['e0']})",
	}
}

// TestTenCallsOfTwentyToolsTellMisspeltFields checks that a program that misspells a field of a result gets a warning
// after ten calls of the tool, although the tool does not declare its result.
func TestTenCallsOfTwentyToolsTellMisspeltFields(t *testing.T) {
	var servers []engine.Server
	for _, name := range demo.ServerNames() {
		servers = append(servers, engine.Server{Name: name, Dial: demo.DialFunc(name)})
	}
	learnAndMisspell(t, servers, bundledCalls, 18)
}

func TestTenCallsOfRealToolsTellMisspeltFields(t *testing.T) {
	modules, dir := filepath.Join(testenv.NPM(t), "@modelcontextprotocol"), t.TempDir()
	var servers []engine.Server
	for name, args := range map[string][]string{"everything": {"stdio"}, "filesystem": {dir}, "memory": nil} {
		args = append([]string{filepath.Join(modules, "server-"+name, "dist", "index.js")}, args...)
		dial := func(ctx context.Context) (io.ReadWriteCloser, error) {
			cmd := exec.CommandContext(context.WithoutCancel(ctx), "node", args...)
			cmd.Env = append(cmd.Environ(), "MEMORY_FILE_PATH="+filepath.Join(dir, "memory.jsonl"))
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe()
			return child{out, in, cmd}, cmd.Start()
		}
		servers = append(servers, engine.Server{Name: name, Dial: removeMember(dial, "outputSchema")})
	}
	learnAndMisspell(t, servers, realCalls(dir), 13)
}

type child struct {
	io.Reader
	io.WriteCloser
	cmd *exec.Cmd
}

func (c child) Close() error {
	_ = c.WriteCloser.Close()
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
	return nil
}

// learnAndMisspell makes each call ten times, and then runs programs that misspell a field of its answer. The test
// fails if the number of tools with a field that can be misspelled is below the argument least.
func learnAndMisspell(t *testing.T, servers []engine.Server, calls []string, least int) {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Limits: unlimitedTime, Home: t.TempDir(), Servers: servers})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	e.WaitForServers(t.Context())
	yes := func(context.Context, core.Approval) (core.ApprovalAnswer, bool) {
		return core.ApprovalAnswer{Approve: true}, true
	}
	ctx := core.WithChannel(t.Context(), yes)
	for _, call := range calls {
		if o := e.Execute(ctx, engine.Request{Code: "for (let i = 0; i < 10; i++) await " + call + ";"}); o.Status != core.StatusOK {
			t.Fatalf("%s: %s %+v", call, o.Status, o.Error)
		}
	}
	told := 0
	for i, call := range calls {
		name, _, _ := strings.Cut(call, "(")
		l := waitForLearned(t, e, name, 10)
		if path, right, wrong := findMisspelling(l.Schema); wrong != "" {
			told++
			for _, language := range languages(i) {
				misspell(ctx, t, e, language, call, path, right, wrong)
			}
		}
	}
	if told < least {
		t.Errorf("%d tools have something to misspell, want %d", told, least)
	}
}

// languages returns the languages in which to misspell a field of the tool with the given number. It returns both if
// RETORT_FULL is set. Otherwise it returns one, which alternates from tool to tool.
func languages(tool int) []core.Language {
	all := []core.Language{core.TypeScript, core.JavaScript}
	if testenv.Full() {
		return all
	}
	return all[tool%2 : tool%2+1]
}

// misspell runs a program that spells a field of an answer correctly on line 2 and wrongly on line 3.
// It checks that the only warning is about line 3.
func misspell(ctx context.Context, t *testing.T, e *engine.Engine, language core.Language, call, path, right, wrong string) {
	t.Helper()
	code := fmt.Sprintf("const i = 1, r = await %s;\nconst right = r%s?.%s;\nreturn [right, r%[2]s?.%[4]s];", call, path, right, wrong)
	o := e.Execute(ctx, engine.Request{Language: language, Code: code})
	if o.Status != core.StatusOK || len(o.Warnings) != 1 || !strings.HasPrefix(o.Warnings[0], "line 3:") || !strings.Contains(o.Warnings[0], fmt.Sprintf("Did you mean '%s'?", right)) {
		t.Errorf("%s\nin %s: %s %+v, warnings %q, want one about line 3 that says %s", code, language, o.Status, o.Error, o.Warnings, right)
	}
}

// findMisspelling finds a field in a schema. It returns the path to it, and the path with a wrong spelling.
func findMisspelling(schema []byte) (path, right, wrong string) {
	var s struct {
		Type       any
		Items      json.RawMessage
		Properties map[string]json.RawMessage

		AdditionalProperties json.RawMessage
	}
	_ = json.Unmarshal(schema, &s)
	switch {
	case len(s.AdditionalProperties) > 0: // any name may be right
		return "", "", ""
	case len(s.Items) > 0:
		path, right, wrong = findMisspelling(s.Items)
		return "[0]" + path, right, wrong
	case s.Type == "string":
		return "", "length", "lengtth"
	}
	var names []string
	for name := range s.Properties {
		if len(name) > 3 && name[1] != name[2] && !strings.ContainsAny(name, "-") {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "", "", ""
	}
	slices.Sort(names)
	right = names[0]
	return "", right, right[:1] + right[2:3] + right[1:2] + right[3:]
}
