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

// Interpreter represents a runtime that is installed on the machine. Its name is also the name of its confinement
// profile. Its harness is what confine.Enter receives in the child.
type Interpreter = interpreter.Interpreter

const (
	// maxDescriptors bounds the descriptors of an interpreter.
	maxDescriptors = 256
	// temporary sets the size of /tmp, in bytes. It counts as memory.
	temporary = 64 << 20
)

// interpreted returns the kind of children that become an interpreter. The interpreter is looked for on first use.
// dir returns the directory for harnesses if children have no file system of their own, and else "".
func interpreted(i Interpreter, guest []string, dir func() (string, error), network *interpreter.Network) *kind {
	k := &kind{runtime: i.Runtime, command: guest, native: true, exhausted: i.Exhausted, crashed: i.Crashed}
	if i.Compiles {
		k.harness = &compiledHarness{}
	}
	k.find = sync.OnceValue(func() error {
		found, err := i.Look()
		if err != nil {
			return err
		}
		image, err := i.Image(found)
		if err != nil {
			return err
		}
		k.plan = confine.Plan{
			Profile: i.Runtime, Argv: i.Argv(image), Env: i.Env, Mounts: mounts(image), Harness: interpreter.HarnessDir,
			Tmp: temporary, Proc: i.Proc || confine.WantsProc, Files: maxDescriptors, Processes: i.Threads,
		}
		weak, err := dir()
		if err == nil && weak != "" {
			k.plan, err = bare(i, k.plan, weak)
		} else if err == nil && i.Proxied && network != nil {
			join(network, &k.plan)
		}
		if err != nil {
			return core.Errorf(core.KindInternal, "process", "the harness of %s cannot be written: %w", i.Runtime, err)
		}
		return nil
	})
	return k
}

func mounts(m *interpreter.Image) []confine.Mount {
	var list []confine.Mount
	for _, target := range slices.Sorted(maps.Keys(m.Sources)) {
		list = append(list, confine.Mount{Source: m.Sources[target], Target: target})
	}
	for _, target := range m.Empty {
		list = append(list, confine.Mount{Target: target, Empty: true})
	}
	return list
}

// bare returns the plan for a confinement without a file system of its own: all files are at their places on the
// machine, and the harness is in a directory made for it.
func bare(i Interpreter, p confine.Plan, dir string) (confine.Plan, error) {
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
