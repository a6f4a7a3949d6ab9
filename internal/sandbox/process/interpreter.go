package process

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"retort/internal/core"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

// RuntimeInterpreter describes a runtime that is installed on the machine. Its name is also the name of the list of
// system calls that its children may make. A child gets the interpreter's harness, the code that makes it a guest,
// from confine.Enter.
type RuntimeInterpreter = interpreter.Interpreter

const (
	// maxDescriptors bounds the number of open file descriptors of an interpreter.
	maxDescriptors = 256
	// tmpSize sets the size of an interpreter's /tmp in bytes. The files there count as memory of the program.
	tmpSize = 64 << 20
)

// interpreterKind returns the kind of children that execute an interpreter. The interpreter is searched for on first
// use. If children see the host's file system, dir returns the directory to which the harness (the code that makes
// the interpreter a guest) is written, otherwise "".
func interpreterKind(i RuntimeInterpreter, guest []string, dir func() (string, error), network *interpreter.ProxyNetwork) *childKind {
	k := &childKind{runtime: i.Runtime, command: guest, native: true, exhausted: i.Exhausted, crashed: i.Crashed}
	if i.Compiles {
		k.harness = &compiledHarness{}
	}
	k.find = sync.OnceValue(func() error {
		found, err := i.FindProgram()
		if err != nil {
			return err
		}
		image, err := i.CollectImage(found)
		if err != nil {
			return err
		}
		k.plan = confine.SandboxPlan{
			Profile: i.Runtime, Argv: i.CommandLine(image), Env: i.Env, Mounts: imageMounts(image), Harness: interpreter.HarnessDir,
			Tmp: tmpSize, Proc: i.Proc || confine.WantsProc, Files: maxDescriptors, Processes: i.Threads,
		}
		weak, err := dir()
		if err == nil && weak != "" {
			k.plan, err = barePlan(i, k.plan, weak)
		} else if err == nil && i.Proxied && network != nil {
			addNetwork(network, &k.plan)
		}
		if err != nil {
			return core.Errorf(core.KindInternal, "process", "the harness of %s cannot be written: %w", i.Runtime, err)
		}
		return nil
	})
	return k
}

func imageMounts(m *interpreter.FileImage) []confine.PlanMount {
	var list []confine.PlanMount
	for _, target := range slices.Sorted(maps.Keys(m.Sources)) {
		list = append(list, confine.PlanMount{Source: m.Sources[target], Target: target})
	}
	for _, target := range m.Empty {
		list = append(list, confine.PlanMount{Target: target, Empty: true})
	}
	return list
}

// barePlan returns the confinement plan of a child that sees the host's file system. All files keep their paths on
// the host. The harness, which is the code that makes the interpreter a guest, is written to a new directory below
// dir.
func barePlan(i RuntimeInterpreter, p confine.SandboxPlan, dir string) (confine.SandboxPlan, error) {
	p.Harness = filepath.Join(dir, i.Runtime)
	if err := os.Mkdir(p.Harness, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return p, err
	}
	for name, data := range i.Harness() {
		if err := os.WriteFile(filepath.Join(p.Harness, name), data, 0o644); err != nil {
			return p, err
		}
	}
	argv := slices.Clone(p.Argv)
	argv[len(argv)-1] = filepath.Join(p.Harness, i.Main)
	for _, m := range p.Mounts {
		if m.Target == argv[0] {
			argv[0] = m.Source
			break
		}
	}
	p.Argv = argv
	return p, nil
}
