package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"retort": func() { detach(); main() }, "changing": changing, "stocked": stocked, "replayed": replayed, "client": client, "ask": ask, "hold": hold, "oauthserver": oauthServer, "browse": browse, "model": scriptedModel, "visitor": visitor,
	})
}

// TestScripts checks that the scripts in testdata/script succeed. They use the command as users do. Scripts named
// hole-* check that a security hole stays closed. A condition such as [dockerd] is true if testenv.IsAvailable returns
// true for that name.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "../../testdata/script",
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		RequireExplicitExec: true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"exits": exits, "awaits": awaits, "sets": sets, "lives": lives, "appears": appears, "port": port, "execution": execution, "dockerd": dockerd},
		Condition: func(name string) (bool, error) {
			return name == "full" && testenv.Full() || testenv.IsAvailable(t, name), nil
		},
		Setup: func(e *testscript.Env) error {
			e.Setenv("VERSION", engine.Version)
			e.Values[test{}] = e.T()
			examples, err := filepath.Abs(filepath.Join("..", "..", "examples"))
			if err != nil {
				return err
			}
			e.Setenv("EXAMPLES", examples)
			e.Setenv("KERNEL", filepath.Join(filepath.Dir(examples), "testdata", "kernel")) // where scripts/test.sh puts one
			e.Setenv("HOME", filepath.Join(e.WorkDir, ".user"))                             // where the key lies
			file := filepath.Join(e.WorkDir, ".mcp.json")
			if _, err := os.Stat(file); err == nil {
				return nil
			}
			script, err := os.ReadFile(filepath.Join("..", "..", "testdata", "script", strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")+".txtar"))
			if err != nil {
				return err
			}
			return os.WriteFile(file, demoConfig(string(script)), 0o644)
		},
	})
}

// execution implements the script command "execution NAME". It stores the execution id of the last printed Outcome in
// a variable.
func execution(ts *testscript.TestScript, _ bool, args []string) {
	var o core.Outcome
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &o))
	ts.Setenv(args[0], o.ExecutionID)
}

// exits implements the script command "exits CODE COMMAND…". It runs COMMAND and fails unless the exit code is CODE.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	code, err := 0, ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if args[0] != strconv.Itoa(code) {
		ts.Fatalf("%s ended with %d, want %s", strings.Join(args[1:], " "), code, args[0])
	}
}

// appears implements the script command "appears FILE". It waits until the file exists.
func appears(ts *testscript.TestScript, _ bool, args []string) {
	there := func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil }
	if !testenv.Poll(there) {
		ts.Fatalf("there is no %s", args[0])
	}
}

// test is the key in a script's environment under which the testing.TB of the running test is stored.
type test struct{}

// dockerd implements the script command "dockerd". It starts a Docker daemon for the script and sets DOCKER_HOST to
// its address.
func dockerd(ts *testscript.TestScript, _ bool, _ []string) {
	d := testenv.StartDockerd(ts.Value(test{}).(testing.TB))
	ts.Defer(d.End)
	ts.Setenv("DOCKER_HOST", d.Host())
}

// sets implements the script command "sets NAME". It stores the output of the last command in a variable.
func sets(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// awaits implements the script command "awaits NAME [COUNT]". It waits until a question waits for a person, and stores
// the question's id in a variable. With COUNT, it waits until the question stands for COUNT equal questions.
func awaits(ts *testscript.TestScript, _ bool, args []string) {
	count := 0
	if len(args) > 1 {
		var err error
		count, err = strconv.Atoi(args[1])
		ts.Check(err)
	}
	found := -1
	var list struct{ Approvals []core.Approval }
	waits := func() bool {
		if ts.Exec("retort", "approvals", "list", "--json") != nil || json.Unmarshal([]byte(ts.ReadFile("stdout")), &list) != nil {
			return false
		}
		found = slices.IndexFunc(list.Approvals, func(a core.Approval) bool { return a.Count >= count })
		return found >= 0
	}
	if !testenv.Poll(waits) {
		ts.Fatalf("nothing waits")
	}
	ts.Setenv(args[0], list.Approvals[found].ID)
}

// demoConfig returns the .mcp.json for a script that has none. The file contains the bundled server crm, and also
// drive and sheets if the script mentions them. More servers would only cost time, because each command in a script
// starts all of them. The file always contains a server, because the checks are less strict for a program that cannot
// call any tool.
func demoConfig(script string) []byte {
	type server struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
	}
	servers := map[string]server{}
	for _, name := range []string{"crm", "drive", "sheets"} {
		if name == "crm" || strings.Contains(script, name) {
			servers[name] = server{"retort", []string{"demo-server", name}}
		}
	}
	data, err := json.Marshal(map[string]any{"mcpServers": servers})
	if err != nil {
		panic(err)
	}
	return data
}
