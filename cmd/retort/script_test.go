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

// TestScripts runs the scripts of testdata/script, which use the command as people do. Those named
// hole-* reproduce a security hole that was closed. A condition such as [dockerd] is true if
// testenv.IsAvailable reports that it is.
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

// execution sets a variable to the id of the Outcome that was printed last: execution ID
func execution(ts *testscript.TestScript, _ bool, args []string) {
	var o core.Outcome
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &o))
	ts.Setenv(args[0], o.ExecutionID)
}

// exits runs a command that must end with a code: exits 3 retort call …
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

// appears waits until there is a file: appears FILE
func appears(ts *testscript.TestScript, _ bool, args []string) {
	there := func() bool { _, err := os.Stat(ts.MkAbs(args[0])); return err == nil }
	if !testenv.Poll(there) {
		ts.Fatalf("there is no %s", args[0])
	}
}

// test is the key of the test that a script is.
type test struct{}

// dockerd starts a daemon of Docker's for a script, which finds it by DOCKER_HOST.
func dockerd(ts *testscript.TestScript, _ bool, _ []string) {
	d := testenv.StartDockerd(ts.Value(test{}).(testing.TB))
	ts.Defer(d.End)
	ts.Setenv("DOCKER_HOST", d.Host())
}

// sets sets a variable to what the last command has printed: sets NAME
func sets(ts *testscript.TestScript, _ bool, args []string) {
	ts.Setenv(args[0], strings.TrimSpace(ts.ReadFile("stdout")))
}

// awaits waits until something waits for a person, and sets a variable to its id; with a number,
// until so many equal questions are shown as one: awaits ID [COUNT]
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

// demoConfig returns the .mcp.json of a script that has none: the bundled server crm, and drive and sheets if the script names
// them. More servers would only cost time, because each command that a script runs starts all of them. One is always there,
// because a program that can call nothing is judged less strictly.
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
