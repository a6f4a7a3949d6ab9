package engine

import (
	"os"
	"strings"

	"retort/internal/base/reaper"
	"retort/internal/pipeline/check/typescript"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/guest/vminit"
	"retort/internal/sandbox/process"
	"retort/internal/sandbox/runtimes"
)

// Init must be the first call in main of a program that embeds the engine. The engine starts the same binary to run
// as the guest of a sandbox, as the compiler that checks programs, or as the reaper that cleans up after the engine.
// In such a process, Init performs that role and does not return.
func Init() {
	role := os.Args[min(1, len(os.Args)):]
	if len(role) > 1 && role[0] == confine.Argument {
		if err := confine.Enter(runtimes.HarnessFiles); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		role = role[1:]
	}
	if len(role) > 2 && role[0] == confine.ContainedArgument {
		if err := confine.EnterContained(role[1]); err != nil {
			os.Exit(confine.ExitStatus(err))
		}
		role = role[2:]
	}
	switch strings.Join(role, " ") {
	case guestArgument:
		exit(guest.Main(os.Stdin, os.Stdout))
	case guestArgument + " " + process.CompiledArgument:
		exit(guest.MainCompiled(os.Stdin, os.Stdout))
	case guestArgument + " " + vminit.RestoredArgument:
		exit(guest.MainRestored(os.Stdin, os.Stdout))
	case vminit.Argument:
		exit(vminit.Main())
	case guestArgument + " " + process.CompileArgument:
		exit(guest.CompilePrelude(os.Stdout))
	case reaperArgument:
		reaper.Serve()
		os.Exit(0)
	case compilerArgument:
		typescript.TuneCollector()
		exit(typescript.ServeCompiler(os.Stdin, os.Stdout))
	}
}

func exit(err error) {
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

const (
	guestArgument    = "guest"
	reaperArgument   = "reaper"
	compilerArgument = "compiler"
)
