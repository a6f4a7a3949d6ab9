// Package runtimes says which runtimes a machine may have beside the built-in
// one, and which harness makes a guest of each.
package runtimes

import (
	"cmp"

	"retort/internal/sandbox/guest/nodejs"
	"retort/internal/sandbox/guest/python"
	"retort/internal/sandbox/interpreter"
)

// threads is how many a runtime of the machine's may have.
const threads = 64

// All are the runtimes, for programs with so many bytes of memory. Commands are
// paths or names of programs by runtime; the usual name is looked for where there
// is none.
func All(commands map[string]string, memory int64) []interpreter.Interpreter {
	all := []interpreter.Interpreter{{
		Runtime: "python", Command: cmp.Or(commands["python"], "python3"), Flags: []string{"-I", "-S", "-B"}, Env: []string{"MALLOC_ARENA_MAX=1"}, Main: python.Main, Harness: python.Files, Compiles: true,
		Exhausted: func(string) bool { return false }, Crashed: python.Crash, Threads: threads, Proxied: true,
	}}
	for _, r := range nodejs.Runtimes() {
		all = append(all, interpreter.Interpreter{
			Runtime: r.Name, Command: cmp.Or(commands[r.Name], r.Name), Flags: r.Args(memory), Env: r.Env, Proc: r.Proc, Main: nodejs.FileName, Harness: scriptFiles,
			Exhausted: nodejs.OutOfMemory, Threads: threads,
		})
	}
	return all
}

func scriptFiles() map[string][]byte {
	source, err := nodejs.Source()
	if err != nil {
		panic("runtimes: " + err.Error()) // it is part of this program
	}
	return map[string][]byte{nodejs.FileName: source}
}

// Harness gives the files of a runtime's harness: what confine.Enter asks for.
func Harness(runtime string) map[string][]byte {
	for _, i := range All(nil, 0) {
		if i.Runtime == runtime {
			return i.Harness()
		}
	}
	return nil
}
