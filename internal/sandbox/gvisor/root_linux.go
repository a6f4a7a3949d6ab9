package gvisor

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
)

const (
	guestPath = confine.ProgramPath // of this binary, in a container
	// user identifies the user that programs run as. gVisor manages users itself, so the machine has no such user.
	user = 1000
	// temporary sets the size of /tmp for interpreters, in bytes. It counts as memory.
	temporary = 64 << 20
	files     = 256
)

// root is the read-only file system of all containers of one runtime.
type root struct {
	runtime string
	dir     string
	spec    spec
	i       *interpreter.Interpreter // nil for the built-in one
	threads int
	relayed bool // its programs have a network
	shares  bool // its guest can share memory with the engine
	command bool // it runs a command instead of a guest
}

// spec has the fields of an OCI runtime specification that are used here.
type spec struct {
	Version  string      `json:"ociVersion"`
	Process  process     `json:"process"`
	Root     specRoot    `json:"root"`
	Hostname string      `json:"hostname"`
	Mounts   []specMount `json:"mounts"`
	Linux    specLinux   `json:"linux"`
}

type process struct {
	User            map[string]int      `json:"user"`
	Args            []string            `json:"args"`
	Env             []string            `json:"env"`
	Cwd             string              `json:"cwd"`
	Capabilities    map[string][]string `json:"capabilities"`
	Rlimits         []rlimit            `json:"rlimits"`
	NoNewPrivileges bool                `json:"noNewPrivileges"`
}

type rlimit struct {
	Type string `json:"type"`
	Hard uint64 `json:"hard"`
	Soft uint64 `json:"soft"`
}

type specRoot struct {
	Path     string `json:"path"`
	Readonly bool   `json:"readonly"`
}

type specMount struct {
	Destination string   `json:"destination"`
	Type        string   `json:"type"`
	Source      string   `json:"source"`
	Options     []string `json:"options"`
}

type specLinux struct {
	Namespaces []map[string]string `json:"namespaces"`
}

// newRoot creates the root of a runtime in dir. command starts its guest.
func newRoot(dir, runtime string, command []string, i *interpreter.Interpreter, network *interpreter.Network) (*root, error) {
	r := &root{runtime: runtime, dir: dir, i: i, threads: 32, relayed: network != nil}
	bounded := confine.Plan{Profile: runtime, Processes: r.threads, Files: files, Ring: network == nil && confine.Shares(runtime)}
	empty, err := r.base(command[0], i == nil || !i.Proc || r.relayed) // otherwise it would be alone there and not start
	if err != nil {
		return nil, err
	}
	if i != nil {
		image, err := r.interpreter(*i, empty)
		if err != nil {
			return nil, err
		}
		r.threads = i.Threads
		bounded.Argv, bounded.Tmp, bounded.Processes = i.Argv(image), temporary, i.Threads
		if bounded.Env, err = r.authorities(i.Env, network); err != nil {
			return nil, err
		}
	}
	if bounded.Ring {
		r.shares = true
		if err := r.write(confine.RingPath, nil); err != nil {
			return nil, err
		}
	}
	if r.relayed {
		bounded.Network = confine.Relayed
		r.threads += confine.RelayThreads
	}
	text, err := json.Marshal(bounded)
	if err != nil {
		return nil, err
	}
	r.specify(string(text), command[1:])
	return r, nil
}

// base adds what every root has: this binary, and an empty /sys, which would otherwise describe gVisor. If hidden is
// set, /proc is empty, too. It returns the path of the empty directory.
func (r *root) base(guest string, hidden bool) (empty string, err error) {
	if err := r.copy(guestPath, guest); err != nil {
		return "", err
	}
	empty = filepath.Join(filepath.Dir(r.dir), "empty")
	if hidden {
		r.mount("/proc", empty, "bind", "ro", "nosuid", "nodev", "noexec")
	}
	r.mount("/sys", empty, "bind", "ro", "nosuid", "nodev", "noexec")
	return empty, os.MkdirAll(empty, 0o755)
}

// specify sets the specification with which containers are started. walled is the plan with which the first process
// confines itself.
func (r *root) specify(walled string, command []string) {
	r.spec = spec{
		Version: "1.0.2", Root: specRoot{Path: r.dir, Readonly: true}, Hostname: "retort", Mounts: r.spec.Mounts,
		Process: process{
			User: map[string]int{"uid": user, "gid": user}, Args: append([]string{guestPath, confine.ContainedArgument, walled}, command...), Env: []string{}, Cwd: "/",
			Capabilities: map[string][]string{}, NoNewPrivileges: true,
			Rlimits: []rlimit{{"RLIMIT_CORE", 0, 0}, {"RLIMIT_NOFILE", files, files}},
		},
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		r.spec.Linux.Namespaces = append(r.spec.Linux.Namespaces, map[string]string{"type": kind})
	}
}

// authorities adds the file of trusted certificate authorities if programs have a network, and returns their
// environment.
func (r *root) authorities(env []string, network *interpreter.Network) ([]string, error) {
	env, source := network.Join(env, confine.ProxyPort)
	if source == "" {
		return env, nil
	}
	return env, r.copy(interpreter.CertificatesPath, source)
}

// interpreter adds the files of an interpreter. Directories are mounted from the machine, and files are copied,
// because each mount slows down every start.
func (r *root) interpreter(i interpreter.Interpreter, empty string) (*interpreter.Image, error) {
	found, err := i.Look()
	if err != nil {
		return nil, err
	}
	image, err := i.Image(found)
	if err != nil {
		return nil, err
	}
	for _, target := range slices.Sorted(maps.Keys(image.Sources)) {
		info, err := os.Stat(image.Sources[target])
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			r.mount(target, image.Sources[target], "bind", "ro", "nosuid", "nodev")
		default:
			if err := r.copy(target, image.Sources[target]); err != nil {
				return nil, err
			}
		}
	}
	for _, target := range image.Empty {
		r.mount(target, empty, "bind", "ro", "nosuid", "nodev", "noexec")
	}
	for name, data := range i.Harness() {
		if err := r.write(path.Join(interpreter.HarnessDir, name), data); err != nil {
			return nil, err
		}
	}
	r.scratch()
	return image, nil
}

// scratch adds /tmp.
func (r *root) scratch() {
	r.mount("/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "noexec", "mode=1777", "size="+strconv.Itoa(temporary))
}

func (r *root) mount(target, source, kind string, options ...string) {
	r.spec.Mounts = append(r.spec.Mounts, specMount{Destination: target, Type: kind, Source: source, Options: options})
}

// at returns the path on the machine of a file of the root, and creates its folder.
func (r *root) at(inside string) (string, error) {
	where := filepath.Join(r.dir, filepath.FromSlash(inside))
	return where, os.MkdirAll(filepath.Dir(where), 0o755)
}

func (r *root) write(inside string, data []byte) error {
	where, err := r.at(inside)
	if err != nil {
		return err
	}
	return os.WriteFile(where, data, 0o644)
}

// copy puts a file of the machine into the root, as a hard link if possible. It does not change if the file on the
// machine is replaced.
func (r *root) copy(inside, source string) error {
	where, err := r.at(inside)
	if err != nil {
		return err
	}
	if unix.Linkat(unix.AT_FDCWD, source, unix.AT_FDCWD, where, unix.AT_SYMLINK_FOLLOW) == nil {
		return nil
	}
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := os.OpenFile(where, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// bundle writes the files that runsc reads for a container. shared is the file that the container shares with the
// engine, or "".
func (r *root) bundle(dir, shared string) error {
	own := r.spec
	if shared != "" {
		own.Mounts = append(slices.Clip(own.Mounts), specMount{Destination: confine.RingPath, Type: "bind", Source: shared, Options: []string{"rw", "nosuid", "nodev", "noexec"}})
	}
	data, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600), os.Mkdir(filepath.Join(dir, "state"), 0o700))
}
