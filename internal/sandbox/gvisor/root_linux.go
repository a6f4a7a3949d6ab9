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
	guestPath = confine.ProgramPath // path of this binary in a container
	// programUser is the id of the user that programs run as. gVisor manages users itself, so this user need not
	// exist on the host.
	programUser = 1000
	// tmpSize sets the size of an interpreter's /tmp in bytes. The files there count as memory of the container.
	tmpSize = 64 << 20
	files   = 256
)

// guestRoot represents the read-only file system that all containers of one runtime share.
type guestRoot struct {
	runtime string
	dir     string
	spec    ociSpec
	i       *interpreter.Interpreter // interpreter of the runtime; nil for the built-in runtime
	threads int
	relayed bool // programs have network access, so the guest runs behind a relay
	shares  bool // the guest can share memory with the engine
	command bool // the containers run a host command instead of a guest
}

// ociSpec holds the fields of an OCI runtime specification that this package uses.
type ociSpec struct {
	Version  string      `json:"ociVersion"`
	Process  ociProcess  `json:"process"`
	Root     specRoot    `json:"root"`
	Hostname string      `json:"hostname"`
	Mounts   []specMount `json:"mounts"`
	Linux    specLinux   `json:"linux"`
}

type ociProcess struct {
	User            map[string]int      `json:"user"`
	Args            []string            `json:"args"`
	Env             []string            `json:"env"`
	Cwd             string              `json:"cwd"`
	Capabilities    map[string][]string `json:"capabilities"`
	Rlimits         []ociRlimit         `json:"rlimits"`
	NoNewPrivileges bool                `json:"noNewPrivileges"`
}

type ociRlimit struct {
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

// newRoot creates the root file system of a runtime in dir. command starts the runtime's guest.
func newRoot(dir, runtime string, command []string, i *interpreter.Interpreter, network *interpreter.ProxyNetwork) (*guestRoot, error) {
	r := &guestRoot{runtime: runtime, dir: dir, i: i, threads: 32, relayed: network != nil}
	bounded := confine.SandboxPlan{Profile: runtime, Processes: r.threads, Files: files, Ring: network == nil && confine.SharesMemory(runtime)}
	empty, err := r.addBase(command[0], i == nil || !i.Proc || r.relayed) // otherwise it would be alone there and not start
	if err != nil {
		return nil, err
	}
	if i != nil {
		image, err := r.addInterpreter(*i, empty)
		if err != nil {
			return nil, err
		}
		r.threads = i.Threads
		bounded.Argv, bounded.Tmp, bounded.Processes = i.CommandLine(image), tmpSize, i.Threads
		if bounded.Env, err = r.addAuthorities(i.Env, network); err != nil {
			return nil, err
		}
	}
	if bounded.Ring {
		r.shares = true
		if err := r.writeFile(confine.RingPath, nil); err != nil {
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
	r.writeSpec(string(text), command[1:])
	return r, nil
}

// addBase adds what every root contains: this binary and an empty /sys, because a real /sys would describe gVisor. If
// hidden is set, it also adds an empty /proc. It returns the path of the empty directory of the host that it mounts
// at /sys and /proc.
func (r *guestRoot) addBase(guest string, hidden bool) (empty string, err error) {
	if err := r.copyFile(guestPath, guest); err != nil {
		return "", err
	}
	empty = filepath.Join(filepath.Dir(r.dir), "empty")
	if hidden {
		r.addMount("/proc", empty, "bind", "ro", "nosuid", "nodev", "noexec")
	}
	r.addMount("/sys", empty, "bind", "ro", "nosuid", "nodev", "noexec")
	return empty, os.MkdirAll(empty, 0o755)
}

// writeSpec sets the OCI specification with which containers are started. The argument walled is a SandboxPlan as
// JSON, with which the first process of a container confines itself.
func (r *guestRoot) writeSpec(walled string, command []string) {
	r.spec = ociSpec{
		Version: "1.0.2", Root: specRoot{Path: r.dir, Readonly: true}, Hostname: "retort", Mounts: r.spec.Mounts,
		Process: ociProcess{
			User: map[string]int{"uid": programUser, "gid": programUser},
			Args: append([]string{guestPath, confine.ContainedArgument, walled}, command...), Env: []string{}, Cwd: "/",
			Capabilities: map[string][]string{}, NoNewPrivileges: true,
			Rlimits: []ociRlimit{{"RLIMIT_CORE", 0, 0}, {"RLIMIT_NOFILE", files, files}},
		},
	}
	for _, kind := range []string{"pid", "network", "ipc", "uts", "mount"} {
		r.spec.Linux.Namespaces = append(r.spec.Linux.Namespaces, map[string]string{"type": kind})
	}
}

// addAuthorities adds the file of trusted certificate authorities to the root if programs have network access. It
// returns the environment variables that point to that file.
func (r *guestRoot) addAuthorities(env []string, network *interpreter.ProxyNetwork) ([]string, error) {
	env, source := network.ProxyEnvironment(env, confine.ProxyPort)
	if source == "" {
		return env, nil
	}
	return env, r.copyFile(interpreter.CertificatesPath, source)
}

// addInterpreter adds to the root the files of an interpreter. Directories are mounted from the host. Single files
// are copied, because each mount slows down every start.
func (r *guestRoot) addInterpreter(i interpreter.Interpreter, empty string) (*interpreter.FileImage, error) {
	found, err := i.FindProgram()
	if err != nil {
		return nil, err
	}
	image, err := i.CollectImage(found)
	if err != nil {
		return nil, err
	}
	for _, target := range slices.Sorted(maps.Keys(image.Sources)) {
		info, err := os.Stat(image.Sources[target])
		switch {
		case err != nil:
			return nil, err
		case info.IsDir():
			r.addMount(target, image.Sources[target], "bind", "ro", "nosuid", "nodev")
		default:
			if err := r.copyFile(target, image.Sources[target]); err != nil {
				return nil, err
			}
		}
	}
	for _, target := range image.Empty {
		r.addMount(target, empty, "bind", "ro", "nosuid", "nodev", "noexec")
	}
	for name, data := range i.Harness() {
		if err := r.writeFile(path.Join(interpreter.HarnessDir, name), data); err != nil {
			return nil, err
		}
	}
	r.addScratch()
	return image, nil
}

// addScratch adds a writable /tmp to the root.
func (r *guestRoot) addScratch() {
	r.addMount("/tmp", "tmpfs", "tmpfs", "nosuid", "nodev", "noexec", "mode=1777", "size="+strconv.Itoa(tmpSize))
}

func (r *guestRoot) addMount(target, source, kind string, options ...string) {
	r.spec.Mounts = append(r.spec.Mounts, specMount{Destination: target, Type: kind, Source: source, Options: options})
}

// hostPath converts the path of a file inside the root to the path of that file on the host. It also creates the
// directory that contains the file.
func (r *guestRoot) hostPath(inside string) (string, error) {
	where := filepath.Join(r.dir, filepath.FromSlash(inside))
	return where, os.MkdirAll(filepath.Dir(where), 0o755)
}

func (r *guestRoot) writeFile(inside string, data []byte) error {
	where, err := r.hostPath(inside)
	if err != nil {
		return err
	}
	return os.WriteFile(where, data, 0o644)
}

// copyFile adds a file of the host to the root, as a hard link if possible. The file in the root stays the same if
// the file on the host is replaced later.
func (r *guestRoot) copyFile(inside, source string) error {
	where, err := r.hostPath(inside)
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

// writeBundle writes the files that runsc reads for a container. shared is the path of the file through which the
// container shares memory with the engine, or "".
func (r *guestRoot) writeBundle(dir, shared string) error {
	own := r.spec
	if shared != "" {
		own.Mounts = append(slices.Clip(own.Mounts), specMount{
			Destination: confine.RingPath, Type: "bind", Source: shared,
			Options: []string{"rw", "nosuid", "nodev", "noexec"},
		})
	}
	data, err := json.Marshal(own)
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(dir, "config.json"), data, 0o600), os.Mkdir(filepath.Join(dir, "state"), 0o700))
}
