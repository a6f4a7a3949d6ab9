//go:build linux

package process

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/guest"
	"retort/internal/sandbox/sandboxtest"
)

// TestMain lets the test binary also act as another process, which its first argument names. With the argument
// "guest" it acts like `retort guest`, the process inside a sandbox.
func TestMain(m *testing.M) {
	if len(os.Args) < 2 {
		os.Exit(m.Run())
	}
	if os.Args[1] == confine.Argument {
		if err := confine.Enter(harness); err != nil {
			os.Exit(1)
		}
		os.Args = slices.Delete(os.Args, 1, 2)
	}
	switch os.Args[1] {
	case "guest":
		if err := beGuest(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "rogue":
		violatingGuest(os.Args[2])
	case "probe":
		sandboxtest.RunProbe(os.Args[2], os.Stdin, os.Stdout)
	case "devour":
		useUpMemory()
	case "command":
		os.Exit(sandboxtest.BeCommand(os.Args[2:], os.Stdin, os.Stdout, os.Stderr))
	case "engine":
		host(os.Args[2:]...)
	case "confine":
		if err := confineSelf(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Args = slices.Delete(os.Args, 1, 2)
		os.Exit(m.Run())
	default:
		os.Exit(m.Run())
	}
	os.Exit(0)
}

func beGuest(arguments []string) error {
	switch strings.Join(arguments, " ") {
	case CompileArgument:
		return guest.CompilePrelude(os.Stdout)
	case CompiledArgument:
		return guest.MainCompiled(os.Stdin, os.Stdout)
	}
	return guest.Main(os.Stdin, os.Stdout)
}

// TestContract checks that every runtime fulfils the contract of package sandboxtest. On Bun and Deno it runs only
// the tests of how guests start, are limited and end. The other tests concern the guest's script, which these
// runtimes share with Node.
func TestContract(t *testing.T) {
	parts := map[string][]string{"deno": sandboxtest.OfInterpreters(), "bun": append(sandboxtest.OfInterpreters(), "cancel")}
	for _, runtime := range testedRuntimes {
		t.Run(runtime, func(t *testing.T) {
			o := optionsFor(t, runtime)
			o.MaxWarm = 2
			sandboxtest.RunPart(t, runtime, 1, func(t *testing.T) sandbox.Backend { return New(o) }, parts[runtime]...)
		})
	}
}

// optionsFor returns the Options of a backend that has the runtime. It skips the test if the runtime is not
// installed.
func optionsFor(t *testing.T, runtime string) Options {
	if runtime == quickjs {
		return Options{}
	}
	return Options{Interpreters: []RuntimeInterpreter{interpreterHere(t, runtime, core.DefaultLimits().Memory)}}
}

var echo = sandbox.HostFunc(func(_ context.Context, c core.ToolCall) (core.CallResult, error) {
	return core.CallResult{Value: c.Arguments}, nil
})
