package process

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"retort/internal/pipeline/isolate/process/walls"
	"retort/internal/run"
)

// Interpreter is a runtime that programs of the machine's give, and the harness
// that makes a guest of it.
type Interpreter struct {
	Runtime string   // "python", "node", "bun", "deno"; also names the walls' profile
	Command string   // path, or a name that is looked for in PATH
	Flags   []string // before the path of the harness
	Env     []string // all that it has of an environment, such as where its cache would be
	Main    string   // the file of the harness to start with
	// Harness gives the files of the harness by name. They are what walls.Enter
	// is given in the child.
	Harness func() map[string][]byte
	// Exhausted tells by what it said on its standard error that it ended for
	// want of memory.
	Exhausted func(stderr string) bool
	// Crashed tells by the same, of a program in file: the line at which it
	// crashed, 0 if that is not said, and whether it was for a stack too deep.
	// It may be nil.
	Crashed func(stderr, file string) (line int, deep bool)
	// Proc is set if it does not run without a /proc.
	Proc bool
	// Compiles says that the harness understands CompileArgument and
	// CompiledArgument.
	Compiles bool
	// Threads is how many it needs.
	Threads int
}

const (
	// Where things are behind the walls.
	insideBin     = "/usr/bin"
	insideHarness = "/usr/lib/retort"
	zoneDir       = "/usr/share/zoneinfo"
	// maxDescriptors is how many descriptors an interpreter may have.
	maxDescriptors = 256
	// temporary is the size of /tmp, in bytes. It is memory.
	temporary = 64 << 20
	asking    = 10 * time.Second
)

// kind is what a child needs to become the interpreter, which is looked for when
// it is first needed.
//
// dir gives a directory for harnesses where there are no walls around files; it
// is empty where there are.
func (i Interpreter) kind(guest []string, dir func() (string, error)) *kind {
	k := &kind{runtime: i.Runtime, command: guest, native: true, exhausted: i.Exhausted, crashed: i.Crashed}
	if i.Compiles {
		k.harness = &compiledHarness{}
	}
	k.find = sync.OnceValue(func() error {
		found, err := i.look()
		if err != nil {
			return err
		}
		image, err := i.image(found)
		if err != nil {
			return run.Errorf(run.KindSandboxUnavailable, "process", "%s cannot be used as %s: %w", found, i.Runtime, err)
		}
		k.plan = walls.Plan{
			Profile: i.Runtime, Argv: append(append([]string{image.program}, i.Flags...), path.Join(insideHarness, i.Main)),
			Env: i.Env, Mounts: image.mounts(), Harness: insideHarness, Tmp: temporary, Proc: i.Proc || walls.WantsProc, Files: maxDescriptors, Processes: i.Threads,
		}
		weak, err := dir()
		if err == nil && weak != "" {
			k.plan, err = i.bare(k.plan, weak)
		}
		if err != nil {
			return run.Errorf(run.KindInternal, "process", "the harness of %s cannot be written: %w", i.Runtime, err)
		}
		return nil
	})
	return k
}

// bare is the plan for walls without a file system: everything is where it is on
// the machine, and the harness lies in a directory that is made for it.
func (i Interpreter) bare(p walls.Plan, dir string) (walls.Plan, error) {
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

// look finds the program. Its error is a *run.Error that says how to get it.
func (i Interpreter) look() (string, error) {
	found, err := exec.LookPath(i.Command)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err == nil {
		found, err = filepath.EvalSymlinks(found)
	}
	if err != nil {
		return "", run.Errorf(run.KindSandboxUnavailable, "process", "%s is not on this machine: %w", i.Runtime, err).
			WithHint("install it, or set its path: runtimes: {%s: /path/to/%s}", i.Runtime, i.Command)
	}
	return found, nil
}

// image is what an interpreter needs of the machine's files.
type image struct {
	program string            // behind the walls
	sources map[string]string // target → source
	empty   []string          // directories of the library that nobody needs
}

func (m *image) mounts() []walls.Mount {
	var list []walls.Mount
	for _, target := range sortedKeys(m.sources) {
		list = append(list, walls.Mount{Source: m.sources[target], Target: target})
	}
	for _, target := range m.empty {
		list = append(list, walls.Mount{Target: target, Empty: true})
	}
	return list
}

// image collects the files of the interpreter at path found.
func (i Interpreter) image(found string) (*image, error) {
	m := &image{sources: map[string]string{}}
	if i.Runtime == "python" {
		return m, m.python(found)
	}
	m.program = path.Join(insideBin, i.Runtime)
	m.sources[m.program] = found
	return m, m.libraries(found, insideBin)
}

// pythonSays is what a Python tells of itself.
type pythonSays struct {
	Executable string   `json:"executable"`
	Prefix     string   `json:"prefix"`
	Library    string   `json:"library"`
	Version    []int    `json:"version"`
	Extensions []string `json:"extensions"`
}

const askPython = `import json, os, sys, glob
library = os.path.realpath(os.path.dirname(os.__file__))
dynload = [p for p in sys.path if p.endswith("lib-dynload")]
print(json.dumps({"executable": os.path.realpath(sys.executable), "prefix": os.path.realpath(sys.base_prefix), "library": library,
	"version": list(sys.version_info[:2]), "extensions": [os.path.realpath(f) for d in dynload for f in glob.glob(d + "/*.so")]}))`

// python collects the files of a Python: the program, its library, and the
// libraries that both are linked with. Installed packages are left out.
func (m *image) python(found string) error {
	ctx, cancel := context.WithTimeout(context.Background(), asking)
	defer cancel()
	var said, complaint bytes.Buffer
	ask := exec.CommandContext(ctx, found, "-I", "-S", "-c", askPython) // not behind walls: it is the user's own, and runs nothing else
	ask.Stdout, ask.Stderr = &said, &complaint
	if err := ask.Run(); err != nil {
		return fmt.Errorf("it does not say where its library is: %w%s", err, firstLine(complaint.String()))
	}
	var python pythonSays
	if err := json.Unmarshal(said.Bytes(), &python); err != nil || len(python.Version) != 2 || python.Executable == "" || python.Library == "" {
		return fmt.Errorf("it does not say where its library is, but %.100q", said.String())
	}
	if python.Version[0] != 3 || python.Version[1] < 9 {
		return fmt.Errorf("it is version %d.%d; 3.9 or later is needed", python.Version[0], python.Version[1])
	}
	version := fmt.Sprintf("python%d.%d", python.Version[0], python.Version[1])
	library := path.Join("/usr", relativeLibrary(python, version))
	m.program = path.Join(insideBin, version)
	m.sources[m.program], m.sources[library] = python.Executable, python.Library
	if zones, err := filepath.EvalSymlinks(zoneDir); err == nil && isDir(zones) { // for the module zoneinfo
		m.sources[zoneDir] = zones
	}
	for _, packages := range []string{"site-packages", "dist-packages", "test", "idlelib", "ensurepip"} {
		if isDir(filepath.Join(python.Library, packages)) {
			m.empty = append(m.empty, path.Join(library, packages))
		}
	}
	for _, file := range append([]string{python.Executable}, python.Extensions...) {
		// An extension may be there without what it needs; it is then of no use.
		if err := m.libraries(file, insideBin); err != nil && (file == python.Executable || !errors.Is(err, errMissing)) {
			return err
		}
	}
	return nil
}

// relativeLibrary is where a Python looks for its library below its prefix:
// lib/python3.11, or lib64/python3.11.
func relativeLibrary(p pythonSays, version string) string {
	if rel, err := filepath.Rel(p.Prefix, p.Library); err == nil && path.Base(rel) == version && path.Dir(rel) != "." && rel[0] != '.' {
		return rel
	}
	return path.Join("lib", version)
}
