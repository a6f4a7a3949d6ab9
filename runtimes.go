package retort

import (
	"retort/internal/config"
	"retort/internal/guest/python"
	"retort/internal/pipeline/isolate/process"
)

// interpreters are the runtimes that the machine may have beside the built-in
// one, with the harnesses that make guests of them.
func interpreters(c config.Runtimes) []process.Interpreter {
	return []process.Interpreter{{
		Runtime: "python", Command: c.Python, Flags: []string{"-I", "-S", "-B"}, Main: python.Main, Harness: python.Files,
		Exhausted: []string{"MemoryError"}, Threads: 64,
	}}
}

// harnessOf gives the files of a runtime's harness, on the inside.
func harnessOf(runtime string) map[string][]byte {
	for _, i := range interpreters(config.Runtimes{}) {
		if i.Runtime == runtime {
			return i.Harness()
		}
	}
	return nil
}
