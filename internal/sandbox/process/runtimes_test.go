//go:build linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/sandbox/guest/nodejs"
	"retort/internal/sandbox/guest/python"
)

// testedRuntimes lists the runtimes that must fulfil the contract of package sandboxtest in this package's sandboxes.
var testedRuntimes = []string{quickjs, "python", "node", "bun", "deno"}

// interpreterHere returns the description of a runtime that is installed on this machine. It skips the test if the
// runtime is not installed. memory is the program's memory limit in bytes.
func interpreterHere(t testing.TB, runtime string, memory int64) RuntimeInterpreter {
	t.Helper()
	command := testenv.Need(t, runtime)
	if runtime == "python" {
		// What version managers put into PATH is no program that could be taken
		// behind walls.
		out, err := exec.Command(command, "-c", "import sys; print(sys.executable)").Output()
		testenv.Missing(t, runtime, err)
		command = strings.TrimSpace(string(out))
	}
	if runtime == "node" {
		needNode20(t, command)
	}
	return described(runtime, command, memory)
}

// described returns the description of a runtime whose interpreter is at the path command.
func described(runtime, command string, memory int64) RuntimeInterpreter {
	if runtime == "python" {
		return RuntimeInterpreter{
			Runtime: runtime, Command: command, Flags: []string{"-I", "-S", "-B"}, Main: python.Main, Harness: python.GuestFiles, Compiles: true, Threads: 64,
			Exhausted: func(string) bool { return false }, Crashed: python.ParseCrash,
		}
	}
	for _, r := range nodejs.Runtimes() {
		if r.Name == runtime {
			return RuntimeInterpreter{
				Runtime: runtime, Command: command, Flags: r.Args(memory), Env: r.Env, Proc: r.Proc, Main: nodejs.FileName, Harness: scriptFiles, Threads: 64,
				Exhausted: nodejs.OutOfMemory,
			}
		}
	}
	panic("there is no runtime " + runtime)
}

func scriptFiles() map[string][]byte {
	source, err := nodejs.ScriptSource()
	if err != nil {
		panic(err)
	}
	return map[string][]byte{nodejs.FileName: source}
}

// harness returns the files of a runtime's harness, the code that makes the interpreter a guest. Tests pass the
// function harness to confine.Enter.
func harness(profile string) map[string][]byte {
	if profile == "python" {
		return python.GuestFiles()
	}
	return scriptFiles()
}

// needNode20 skips the test if the machine's Node is older than version 20.
func needNode20(t testing.TB, path string) {
	t.Helper()
	out, err := exec.Command(path, "--version").Output()
	testenv.Missing(t, "node", err)
	major, _, _ := strings.Cut(strings.TrimPrefix(string(out), "v"), ".")
	if n, _ := strconv.Atoi(major); n < 20 {
		t.Skipf("this Node is too old: %s", out)
	}
}
