// Package docker runs each program in its own container, with Docker or Podman. It builds the container's image from
// this binary alone and pulls nothing. The container has no network, no writable files of the host, no capabilities
// and no user of the host. It runs one program and is removed. The package talks to the daemon over its socket with a
// few requests of the Engine API. Inside the container, the first process confines itself again with package confine,
// because its own system call filter can be stricter than that of a container.
package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox"
	"retort/internal/sandbox/hostcmd"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/warmpool"
)

// Name is the name of the backend in settings and reports.
const Name = "docker"

var kind = sandbox.BackendKind{Name: Name, Strength: sandbox.Container}

const (
	quickjs = "quickjs"
	gvisor  = "runsc"
)

// Options configures the docker backend. The zero value is a good default.
type Options struct {
	// Guest gives the command line of the guest. Empty means this binary with the argument "guest". The binary must
	// be statically linked for Linux.
	Guest []string
	// Host is the address of the daemon, such as unix:///path. Empty means that the backend looks for the daemon.
	Host string
	// Runtime is the container runtime, as the daemon names it: "runc", "runsc" and so on. Empty means runsc if the
	// daemon has it, otherwise the daemon's default.
	Runtime string
	// Strict allows only containers that run under runsc (gVisor).
	Strict bool
	// Images maps runtimes to images of the form NAME@sha256:DIGEST. For an interpreter that is not listed, an image
	// is built from files of this machine.
	Images map[string]string
	// Dir names the folder with the lock files that show which engines are alive. Several engines may share it. An
	// engine removes the containers that dead engines left behind. Empty means a folder in the system's directory for
	// temporary files.
	Dir string
	// Warm sets the number of containers that wait for programs, and MaxWarm the number under load: see
	// warmpool.GuestKind. If Ahead is set, containers are started before the first request.
	Warm, MaxWarm int
	Ahead         bool
	// Limits holds the limits that most programs have. Waiting containers are started with them.
	Limits core.Limits
	// Interpreters lists the runtimes other than the built-in one.
	Interpreters []interpreter.Interpreter
	// Commands holds the host commands that programs can start. Each command runs in its own container.
	Commands hostcmd.CommandSet
	// Network gives a program access to the network through its ToolHost, if that implements sandbox.ConnectionProxy
	// and the program's interpreter is marked as Proxied. The containers have no other network. If Network is nil,
	// programs have no connections.
	Network *interpreter.ProxyNetwork
}

// dockerBackend runs programs in containers. It holds the state that all containers of one engine share.
type dockerBackend struct {
	Options
	daemonTimeouts
	life *lifeFile

	closing context.Context // context that ends when the backend is closed
	stop    context.CancelFunc
	images  map[string]*guestImage
	far     atomic.Bool // set once the daemon turned out not to see this machine's files, so that no memory is shared

	mu     sync.Mutex
	looked time.Time
	swept  time.Time
	found  sandbox.Capabilities
	daemon *dockerDaemon // nil until a daemon has responded
	left   []string      // containers that could not be removed
	why    error         // error of the last failed removal
}

// daemonTimeouts holds the timeouts of requests to the daemon, so that tests can shorten them.
type daemonTimeouts struct {
	answering time.Duration // how long the daemon may take to describe itself
	asking    time.Duration // how long the daemon may take to confirm that it will report a container's end
}

// dockerDaemon represents a daemon that has responded, together with the properties of the daemon that this package
// uses.
type dockerDaemon struct {
	api      *engineAPI
	runtime  string // container runtime that requests name; empty means the daemon's default
	kernel   bool   // the container runtime is gVisor, so each container has its own user-space kernel
	swap     bool   // the daemon can limit the swap space of containers
	holes    string
	security []string
	oom      *oomWatcher
}

// closeConnections closes the connections to the daemon.
func (d *dockerDaemon) closeConnections() {
	d.oom.stopWatching()
	d.api.client.CloseIdleConnections()
}

// New returns a docker backend, which the caller must close. It contacts the daemon at the first request. If a dead
// engine has left files behind, it contacts the daemon immediately, to remove that engine's containers.
func New(o Options) *warmpool.Backend { return newBackend(o).openPool() }

func (b *dockerBackend) openPool() *warmpool.Backend {
	kinds := []warmpool.GuestKind{b.poolKind(quickjs, nil)}
	for _, i := range b.Interpreters {
		kinds = append(kinds, b.poolKind(i.Runtime, &i))
	}
	if hasDeadEngines(b.life.dir) {
		go b.Capabilities() // which removes what they have left
	}
	return warmpool.New(warmpool.Options{
		Kind: kind, Kinds: kinds, Capabilities: b.Capabilities, Changing: true, Command: b.runCommand,
		Closed: b.closeBackend,
	})
}

func newBackend(o Options) *dockerBackend {
	o.Limits = o.Limits.WithDefaults(core.DefaultLimits())
	b := &dockerBackend{
		Options: o, life: newLife(o.Dir), daemonTimeouts: daemonTimeouts{answerTimeout, waitConfirmTimeout},
		images: map[string]*guestImage{},
	}
	b.closing, b.stop = context.WithCancel(context.Background())
	if len(b.Guest) == 0 {
		b.Guest = []string{"/proc/self/exe", "guest"}
	}
	for _, c := range o.Commands.Commands() {
		b.images[commandImage(c.Name)] = &guestImage{
			runtime: commandImage(c.Name), guest: b.Guest[0], command: c, labels: b.life.containerLabels(),
		}
	}
	return b
}

func (b *dockerBackend) poolKind(name string, i *interpreter.Interpreter) warmpool.GuestKind {
	m := &guestImage{runtime: name, guest: b.Guest[0], i: i, base: b.Images[name], labels: b.life.containerLabels()}
	if i != nil && i.Proxied {
		m.network = b.Network
	}
	b.images[name] = m
	start := func(ctx context.Context) (warmpool.Guest, error) {
		c, err := b.startContainer(ctx, name)
		if err != nil {
			return nil, err // not a *container that is nil
		}
		return c, nil
	}
	return warmpool.GuestKind{
		Runtime: name, Start: start, Within: importTimeout, Warm: b.Warm, MaxWarm: b.MaxWarm, Ahead: b.Ahead,
		Relayed: m.network != nil,
	}
}

// trustedAge and doubtedAge are how long the backend relies on its last check of the daemon. trustedAge applies if the
// check found that the daemon can be used, doubtedAge if not.
const (
	trustedAge = 15 * time.Second
	doubtedAge = time.Second
)

// Capabilities returns the capabilities of the backend. It checks the daemon if the last check was too long ago.
func (b *dockerBackend) Capabilities() sandbox.Capabilities {
	b.mu.Lock()
	defer b.mu.Unlock()
	age := time.Since(b.looked)
	if !b.looked.IsZero() && (age < doubtedAge || age < trustedAge && b.found.Unavailable == nil) {
		return b.found
	}
	b.found = b.findCapabilities()
	b.looked = time.Now()
	return b.found
}

// recheckDaemon discards the result of the last check, so that the next request checks the daemon again.
func (b *dockerBackend) recheckDaemon() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.looked = time.Time{}
}

// findCapabilities determines the capabilities of the daemon. The caller must hold b.mu.
func (b *dockerBackend) findCapabilities() sandbox.Capabilities {
	have := sandbox.Capabilities{Name: kind.Name, Strength: kind.Strength, Walls: confinementLines, Proxies: b.Network != nil}
	ctx, cancel := context.WithTimeout(context.Background(), b.answering)
	defer cancel()
	d, err := b.connectDaemon(ctx)
	if err != nil {
		have.Unavailable = b.explainError(err)
		return have
	}
	if b.daemon != nil && b.daemon.api.address != d.api.address {
		b.daemon.closeConnections()
		b.daemon = nil
	}
	if b.daemon != nil {
		d.oom = b.daemon.oom
	} else {
		d.oom = watchMemory(d.api, b.life.id)
	}
	b.daemon = d
	if time.Since(b.swept) > sweepInterval {
		b.swept = time.Now()
		go b.sweepDeadEngines(d.api)
	}
	have.Warning = d.holes
	if d.kernel {
		have.Strength, have.Walls = sandbox.UserKernel, append([]string{"its own user-space kernel (gVisor)"}, confinementLines...)
	}
	have.Runtimes = []string{quickjs}
	for _, i := range b.Interpreters {
		if why := b.missingError(i); why != nil {
			have.Missing = append(have.Missing, sandbox.MissingRuntime{Runtime: i.Runtime, Why: why})
			continue
		}
		have.Runtimes = append(have.Runtimes, i.Runtime)
	}
	slices.Sort(have.Runtimes)
	b.Commands.AddToCapabilities(&have)
	return have
}

// missingError returns the reason why programs of a runtime cannot run here, or nil.
func (b *dockerBackend) missingError(i interpreter.Interpreter) *core.Error {
	if name := b.Images[i.Runtime]; name != "" {
		return checkImage(i.Runtime, name)
	}
	if runtime.GOOS != "linux" {
		return core.Errorf(core.KindSandboxUnavailable, Name, "%s on this machine is not a Linux program", i.Runtime).
			WithHint("set an image that contains one: docker: {images: {%s: \"NAME@sha256:…\"}}", i.Runtime)
	}
	if _, err := i.FindProgram(); err != nil {
		return core.AsError(err)
	}
	return nil
}

// daemonInfo holds the fields of the daemon's response to GET /info that this package uses.
type daemonInfo struct {
	OSType, Architecture string
	ServerVersion        string
	DefaultRuntime       string
	Runtimes             map[string]any
	SecurityOptions      []string
	MemoryLimit          bool
	SwapLimit            bool
	PidsLimit            bool
}

type daemonVersions struct {
	APIVersion string `json:"ApiVersion"`
	Version    string
	Platform   struct{ Name string }
	Components []struct{ Name, Version string }
}

// connectDaemon finds the daemon and checks that it can be used. The caller must hold b.mu.
func (b *dockerBackend) connectDaemon(ctx context.Context) (*dockerDaemon, error) {
	for name, image := range b.Images {
		if err := checkImage(name, image); err != nil {
			return nil, err
		}
	}
	a, known := findDaemon(b.Host)
	if known != nil {
		return nil, known
	}
	d := &dockerDaemon{api: newAPI(a)}
	if b.daemon != nil && b.daemon.api.address == a {
		d.api.client = b.daemon.api.client
	}
	err := d.checkDaemon(ctx, b.Options)
	if err != nil {
		d.api.client.CloseIdleConnections()
	}
	return d, err
}

// checkDaemon queries the daemon's versions and properties. It returns an error if the daemon cannot be used.
func (d *dockerDaemon) checkDaemon(ctx context.Context, o Options) error {
	var v daemonVersions
	if err := d.api.callJSON(ctx, http.MethodGet, "/version", nil, nil, &v); err != nil {
		return err
	}
	if d.api.version = newestAPIVersion; isOlder(v.APIVersion, newestAPIVersion) {
		d.api.version = v.APIVersion
	}
	var info daemonInfo
	if err := d.api.callJSON(ctx, http.MethodGet, "/info", nil, nil, &info); err != nil {
		return err
	}
	if err := d.judgeDaemon(v, info, o); err != nil {
		return err
	}
	if unfit := checkGuest(o.Guest[0], info.Architecture); unfit != nil {
		return unfit
	}
	return nil
}

// isOlder reports whether API version a is older than b.
func isOlder(a, b string) bool {
	x, ok := parseVersion(a)
	y, _ := parseVersion(b)
	return ok && compareVersions(x, y) < 0
}

// judgeDaemon records the properties of a daemon that matter here. It returns an error if the daemon cannot be used.
func (d *dockerDaemon) judgeDaemon(v daemonVersions, info daemonInfo, o Options) error {
	refuse := func(hint, format string, args ...any) error {
		return core.Errorf(core.KindSandboxUnavailable, Name, format, args...).WithHint("%s", hint)
	}
	d.runtime, d.security, d.swap = o.Runtime, info.SecurityOptions, info.SwapLimit
	if _, has := info.Runtimes[gvisor]; d.runtime == "" && has {
		d.runtime = gvisor
	}
	d.kernel = strings.HasPrefix(d.runtime, gvisor) || d.runtime == "" && strings.HasPrefix(info.DefaultRuntime, gvisor)
	_, registered := info.Runtimes[d.runtime]
	switch {
	case v.APIVersion == "" || info.OSType == "":
		return refuse("find out which program listens there", "the service at %s is not Docker", d.api.address)
	case info.OSType != "linux":
		return refuse("switch it to Linux containers", "the daemon runs containers for %s", info.OSType)
	case d.runtime != "" && !registered && d.runtime != info.DefaultRuntime:
		return refuse("sudo runsc install && sudo systemctl restart docker", "the daemon has no runtime %q", d.runtime)
	case o.Strict && !d.kernel:
		return refuse(
			"install gVisor and register it: sudo runsc install && sudo systemctl restart docker",
			"securityLevel: maximum needs the gVisor runtime (runsc), which the daemon does not have",
		)
	case !info.MemoryLimit || !info.PidsLimit:
		return refuse(
			"turn on the memory and pids controllers of control groups; for a rootless daemon: https://rootlesscontaine.rs/getting-started/common/cgroup2",
			"the daemon cannot limit the memory and threads of containers",
		)
	case !d.kernel && !slices.ContainsFunc(info.SecurityOptions, func(s string) bool { return strings.Contains(s, "seccomp") }):
		return refuse("use a daemon and a kernel with seccomp", "the daemon cannot restrict the system calls of containers")
	}
	versions := map[string]string{}
	for _, c := range v.Components {
		versions[strings.ToLower(c.Name)] = c.Version
	}
	if d.kernel {
		delete(versions, "runc") // which is not what runs them
	}
	if _, version, ok := strings.Cut(v.Platform.Name, "Docker Desktop "); ok {
		versions["docker desktop"] = version
	}
	d.holes = knownVulnerabilities(versions)
	return nil
}

// confinementLines describes, for users, what separates a program in a container from the host.
var confinementLines = []string{
	"a container without network, devices or capabilities, with its own read-only file system",
	"a user that owns nothing, no new privileges, an allow list of system calls outside and a stricter one inside",
	"memory, processors and threads limited by a control group",
}

// explainError converts an error of the daemon to one with a hint on how to fix it.
func (b *dockerBackend) explainError(err error) *core.Error {
	var known *core.Error
	var said *apiFailure
	say := func(format string, args ...any) *core.Error {
		return core.Errorf(core.KindSandboxUnavailable, Name, format, args...)
	}
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, fs.ErrPermission):
		return say("this user may not access Docker: %w", err).WithHint(
			"sudo usermod -aG docker $USER, and log in again; members of that group can become root",
		)
	case errors.Is(err, syscall.ENOSPC), errors.As(err, &said) && strings.Contains(said.message, "no space left"):
		return say("the disk of Docker is full: %w", err).WithHint("make room: docker system df, docker system prune")
	case errors.As(err, &said):
		return say("Docker refused to create the container: %w", err).WithHint("run `retort doctor` or `docker info` to see what is wrong")
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return say("Docker does not answer").WithHint("sudo systemctl restart docker (or: colima restart)")
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return say("Docker is not running: %w", err).WithHint(
			"sudo systemctl start docker (or: colima start, podman: systemctl --user start podman.socket)",
		)
	}
	return say("Docker cannot be used: %w", err).WithHint("restart Docker with `sudo systemctl restart docker`, or run `retort doctor` for details")
}

func isTimeout(err error) bool {
	var n net.Error
	return errors.As(err, &n) && n.Timeout()
}

// closeBackend releases the backend's resources after all containers are gone. It returns an error if a container
// could not be removed.
func (b *dockerBackend) closeBackend() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.stop()
	if b.daemon != nil {
		b.daemon.closeConnections()
	}
	b.life.unlockFile()
	if len(b.left) > 0 {
		return core.Errorf(
			core.KindInternal, Name, "the daemon did not remove %s: %w", strings.Join(b.left, ", "), b.why,
		).WithHint("docker rm -f %s", strings.Join(b.left, " "))
	}
	return nil
}

// noteUnremoved records that a container could not be removed.
func (b *dockerBackend) noteUnremoved(id string, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left, b.why = append(b.left, id), why
}

// connectedDaemon returns the daemon, after checking it if necessary, or an error if it cannot be used.
func (b *dockerBackend) connectedDaemon() (*dockerDaemon, error) {
	if have := b.Capabilities(); have.Unavailable != nil {
		return nil, have.Unavailable
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.daemon == nil {
		return nil, fmt.Errorf("no daemon answered: %w", os.ErrNotExist)
	}
	return b.daemon, nil
}
