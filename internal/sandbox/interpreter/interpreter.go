// Package interpreter finds the files that a runtime needs, so that the runtime works in a sandbox that contains
// nothing else. The sandbox may be a confined process, a container or a virtual machine.
package interpreter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"time"

	"retort/internal/core"
)

// Interpreter describes a runtime that is installed on the machine, with the harness, the code that turns it into a
// guest.
type Interpreter struct {
	// Runtime is the name of the runtime: "python", "node", "bun" or "deno". It is also the name of its list of
	// allowed system calls.
	Runtime string
	Command string   // path of the executable, or a name to look up in PATH
	Flags   []string // arguments before the path of the harness
	Env     []string // complete environment of the interpreter
	Main    string   // name of the harness file that the interpreter runs
	// Harness returns the files of the harness, the code that makes the interpreter a guest, by name. In every
	// sandbox they are in the directory HarnessDir.
	Harness func() map[string][]byte
	// Exhausted reports whether the interpreter's standard error states that it ran out of memory.
	Exhausted func(stderr string) bool
	// Crashed parses the interpreter's standard error after a crash. The argument file is the name of the program.
	// Crashed returns the line at which the program crashed, or 0 if unknown, and whether the call stack was too
	// deep. The function may be nil.
	Crashed func(stderr, file string) (line int, deep bool)
	// Proc reports whether the interpreter needs a /proc to run.
	Proc bool
	// Compiles reports whether the harness, the code that makes the interpreter a guest, can compile itself and later
	// start from its compiled form.
	Compiles bool
	// Threads is the number of threads that the interpreter needs.
	Threads int
	// Proxied reports whether programs reach the network through a proxy. The code that makes the interpreter a guest
	// reads the proxy's address from HTTPS_PROXY and the path of the certificate authorities from SSL_CERT_FILE.
	Proxied bool
}

// BinDir, HarnessDir and zoneDir are directories in a sandbox. BinDir contains executables, HarnessDir contains the
// code that makes an interpreter a guest, and zoneDir contains time zones.
const (
	BinDir     = "/usr/bin"
	HarnessDir = "/usr/lib/retort"
	zoneDir    = "/usr/share/zoneinfo"
)

const probeTimeout = 10 * time.Second

// FindProgram returns the path of the interpreter's executable. The error is a *core.Error with a hint on how to
// install it.
func (i Interpreter) FindProgram() (string, error) {
	found, err := exec.LookPath(i.Command)
	if err == nil {
		found, err = filepath.Abs(found)
	}
	if err == nil {
		found, err = filepath.EvalSymlinks(found)
	}
	if err != nil {
		return "", core.Errorf(core.KindSandboxUnavailable, "interpreter", "%s is not on this machine: %w", i.Runtime, err).
			WithHint("install it, or set its path: runtimes: {%s: /path/to/%s}", i.Runtime, i.Command)
	}
	return found, nil
}

// FileImage lists the files of the host that a program needs, with their paths in the sandbox.
type FileImage struct {
	Program string // path of the executable in the sandbox
	// Sources maps paths in the sandbox to files or directories of the host, whose paths contain no symbolic links.
	Sources map[string]string
	Empty   []string // directories below those in Sources that are not needed and therefore left empty
}

// NewImage returns the files that an executable of the host needs. The parameter inside is the path of the executable
// in the sandbox.
func NewImage(inside, program string) (*FileImage, error) {
	m := &FileImage{Program: inside, Sources: map[string]string{inside: program}}
	return m, m.addLibraries(program, path.Dir(inside))
}

// CollectImage returns the files that the interpreter needs. The argument found is the path of the interpreter's
// executable, as FindProgram returns it.
func (i Interpreter) CollectImage(found string) (*FileImage, error) {
	m, err := i.collectFiles(found)
	if err != nil {
		return nil, core.Errorf(core.KindSandboxUnavailable, "interpreter", "%s cannot be used as %s: %w", found, i.Runtime, err)
	}
	return m, nil
}

func (i Interpreter) collectFiles(found string) (*FileImage, error) {
	if i.Runtime == "python" {
		m := &FileImage{Sources: map[string]string{}}
		return m, m.addPython(found)
	}
	return NewImage(path.Join(BinDir, i.Runtime), found)
}

// PythonAt returns the Python executable that runs when the given file is started. The file may be a version
// manager's shim, which starts another file.
func PythonAt(found string) (string, error) {
	said, err := pythonOf(found)
	return said.Executable, err
}

// PythonImage returns the files that a Python installation needs. The parameter inside is the path of its executable
// in the sandbox.
func PythonImage(inside, program string) (*FileImage, error) {
	m := &FileImage{Sources: map[string]string{}}
	if err := m.addPython(program); err != nil {
		return nil, err
	}
	if m.Program != inside {
		m.Sources[inside] = m.Sources[m.Program]
		delete(m.Sources, m.Program)
		m.Program = inside
	}
	return m, nil
}

// WithFile returns a copy of the image with one more file or folder of the host, at its own path.
func (m *FileImage) WithFile(file string) *FileImage {
	more := &FileImage{Program: m.Program, Sources: maps.Clone(m.Sources), Empty: m.Empty}
	more.Sources[file] = file
	return more
}

// CommandLine returns the command line of the interpreter in the sandbox.
func (i Interpreter) CommandLine(m *FileImage) []string {
	return append(append([]string{m.Program}, i.Flags...), path.Join(HarnessDir, i.Main))
}

// pythonSays is the description that a Python interpreter prints of itself: its version and the paths of its files.
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

// addPython adds to the image the files of a Python installation: the executable, the standard library, and all
// shared libraries that they need. It omits installed packages.
func (m *FileImage) addPython(found string) error {
	python, err := pythonOf(found)
	if err != nil {
		return err
	}
	return m.addPythonFiles(python)
}

// pythonOf runs a Python interpreter to find out its version and the locations of its files.
func pythonOf(found string) (python pythonSays, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	var said, complaint bytes.Buffer
	ask := exec.CommandContext(ctx, found, "-I", "-S", "-c", askPython) // not confined: it is the user's own, and runs nothing else
	ask.Stdout, ask.Stderr = &said, &complaint
	if err := ask.Run(); err != nil {
		return python, fmt.Errorf("it does not report where its library is: %w%s", err, firstLine(complaint.String()))
	}
	if err := json.Unmarshal(said.Bytes(), &python); err != nil || len(python.Version) != 2 || python.Executable == "" ||
		python.Library == "" {
		return python, fmt.Errorf("it does not report where its library is, but prints %.100q", said.String())
	}
	return python, nil
}

func (m *FileImage) addPythonFiles(python pythonSays) error {
	if python.Version[0] != 3 || python.Version[1] < 9 {
		return fmt.Errorf("it is version %d.%d; 3.9 or later is required", python.Version[0], python.Version[1])
	}
	version := fmt.Sprintf("python%d.%d", python.Version[0], python.Version[1])
	library := path.Join("/usr", relativeLibrary(python, version))
	m.Program = path.Join(BinDir, version)
	m.Sources[m.Program], m.Sources[library] = python.Executable, python.Library
	if zones, err := filepath.EvalSymlinks(zoneDir); err == nil && isDir(zones) { // for the module zoneinfo
		m.Sources[zoneDir] = zones
	}
	for _, packages := range []string{"site-packages", "dist-packages", "test", "idlelib", "ensurepip"} {
		if isDir(filepath.Join(python.Library, packages)) {
			m.Empty = append(m.Empty, path.Join(library, packages))
		}
	}
	for _, file := range append([]string{python.Executable}, python.Extensions...) {
		// An extension module may lack its libraries. It then cannot be used.
		if err := m.addLibraries(file, BinDir); err != nil && (file == python.Executable || !errors.Is(err, errMissing)) {
			return err
		}
	}
	return nil
}

// relativeLibrary returns the path of a Python's standard library relative to its prefix, such as lib/python3.11 or
// lib64/python3.11.
func relativeLibrary(p pythonSays, version string) string {
	if rel, err := filepath.Rel(p.Prefix, p.Library); err == nil && path.Base(rel) == version && path.Dir(rel) != "." && rel[0] != '.' {
		return rel
	}
	return path.Join("lib", version)
}
