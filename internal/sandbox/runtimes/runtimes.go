// Package runtimes lists the runtimes that a machine may have in addition to the built-in one. Each comes with the
// harness, the code that turns the interpreter into a guest.
package runtimes

import (
	"cmp"

	"retort/internal/core"
	"retort/internal/sandbox/guest/nodejs"
	"retort/internal/sandbox/guest/python"
	"retort/internal/sandbox/interpreter"
)

// maxThreads bounds the threads of an installed runtime.
const maxThreads = 64

// SupportedRuntimes returns the supported runtimes, configured for programs whose memory limit in bytes is memory.
// commands maps runtimes to paths or names of executables. A runtime that is not in commands is looked up under its
// usual name.
func SupportedRuntimes(commands map[string]string, memory int64) []interpreter.Interpreter {
	all := []interpreter.Interpreter{{
		Runtime: "python", Command: cmp.Or(commands["python"], core.DefaultCommand("python")), Flags: []string{"-I", "-S", "-B"},
		Env: []string{"MALLOC_ARENA_MAX=1"}, Main: python.Main, Harness: python.GuestFiles, Compiles: true,
		Exhausted: func(string) bool { return false }, Crashed: python.ParseCrash, Threads: maxThreads, Proxied: true,
	}}
	for _, r := range nodejs.Runtimes() {
		all = append(all, interpreter.Interpreter{
			Runtime: r.Name, Command: cmp.Or(commands[r.Name], core.DefaultCommand(r.Name)), Flags: r.Args(memory), Env: r.Env, Proc: r.Proc,
			Main: nodejs.FileName, Harness: scriptFiles,
			Exhausted: nodejs.OutOfMemory, Threads: maxThreads,
		})
	}
	return all
}

func scriptFiles() map[string][]byte {
	source, err := nodejs.ScriptSource()
	if err != nil {
		panic("runtimes: " + err.Error()) // it is part of this program
	}
	return map[string][]byte{nodejs.FileName: source}
}

// HarnessFiles returns the files of a runtime's harness, the code that makes its interpreter a guest. It is an
// argument of confine.Enter.
func HarnessFiles(runtime string) map[string][]byte {
	for _, i := range SupportedRuntimes(nil, 0) {
		if i.Runtime == runtime {
			return i.Harness()
		}
	}
	return nil
}
