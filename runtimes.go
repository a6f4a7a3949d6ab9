package retort

import (
	"retort/internal/config"
	"retort/internal/guest/python"
	"retort/internal/guest/script"
	"retort/internal/pipeline/isolate/process"
	"retort/internal/run"
)

// interpreters are the runtimes that the machine may have beside the built-in
// one, with the harnesses that make guests of them.
func interpreters(c config.Runtimes, l run.Limits) []process.Interpreter {
	commands := map[string]string{"node": c.Node, "bun": c.Bun, "deno": c.Deno}
	all := []process.Interpreter{{
		Runtime: "python", Command: c.Python, Flags: []string{"-I", "-S", "-B"}, Main: python.Main, Harness: python.Files,
		Exhausted: func(stderr string) bool { return false }, Threads: 64,
	}}
	for _, r := range script.Runtimes() {
		all = append(all, process.Interpreter{
			Runtime: r.Name, Command: commands[r.Name], Flags: r.Args(l.Memory), Env: r.Env, Proc: r.Proc, Main: script.FileName, Harness: scriptHarness,
			Exhausted: script.OutOfMemory, Threads: 64, Reserve: script.Reserve,
		})
	}
	return all
}

func scriptHarness() map[string][]byte {
	source, err := script.Source()
	if err != nil {
		panic("retort: " + err.Error()) // it is part of this program
	}
	return map[string][]byte{script.FileName: source}
}

// harnessOf gives the files of a runtime's harness, on the inside.
func harnessOf(runtime string) map[string][]byte {
	for _, i := range interpreters(config.Runtimes{}, run.Limits{}) {
		if i.Runtime == runtime {
			return i.Harness()
		}
	}
	return nil
}
