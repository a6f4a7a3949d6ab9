package docker

import (
	"bufio"
	"context"
	"embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"retort/internal/core"
	"retort/internal/sandbox/confine"
	"retort/internal/sandbox/interpreter"
	"retort/internal/sandbox/procgroup"
	"retort/internal/sandbox/warmpool"
	"retort/internal/sandbox/wire/shm"
)

const (
	// nobodyUser is the id of the user that programs run as. This user owns no files.
	nobodyUser = 65534
	// tmpSize sets the size of an interpreter's /tmp in bytes. The files there count as memory of the container.
	tmpSize = 64 << 20
	// guestOverhead is the memory in bytes that a guest needs in addition to its program's memory. kernelOverhead is
	// the memory that a gVisor kernel needs in addition.
	guestOverhead  = 96 << 20
	kernelOverhead = 128 << 20
	// relayMemory bounds the memory of a relay, in bytes. A relay is the process that forwards a guest's network
	// connections. Most of its memory is data that it has not forwarded yet.
	relayMemory  = 96 << 20
	maxOpenFiles = 256
	maxThreads   = 64
	// builtinThreads bounds the threads of the built-in guest, which needs fewer than other runtimes.
	builtinThreads = 32
	// kernelThreads bounds the number of threads in a container with a gVisor kernel, which has many threads of its
	// own.
	kernelThreads = 512
	// closeGrace bounds how long a container may take to exit after its input was closed, before it is killed.
	closeGrace = 300 * time.Millisecond
	// stopTimeoutSeconds is how long, in seconds, the daemon waits for the exit event of a process that it wants to
	// kill and that has already exited. Without this wait, the daemon forgets the container but leaves its shim
	// process, control groups and folders behind.
	stopTimeoutSeconds = 10
	// startTimeout bounds the duration of creating and starting a container. On a busy machine this takes far longer
	// than other requests.
	startTimeout = time.Minute
	// waitConfirmTimeout is how long to wait until the daemon confirms that it will report a container's removal.
	// After that, the container is started without the confirmation.
	waitConfirmTimeout = time.Second
	// drainTimeout is how long to wait for a container's last output after the container has ended. The daemon
	// normally closes the connection after that output.
	drainTimeout = 5 * time.Second
	// removeTimeout bounds how long the daemon may take to remove a container.
	removeTimeout = 20 * time.Second
)

//go:embed seccomp/*.json
var profiles embed.FS

// relayed names the allow list of system calls for containers with network access. The list includes the system calls
// of the relay, which is the process that forwards a guest's network connections.
const relayed = "relayed"

// seccompProfile returns the allow list of system calls for containers of a runtime, as JSON in Docker's format.
func seccompProfile(runtime string) (string, error) {
	if runtime == "bun" || runtime == "deno" {
		runtime = "node"
	}
	data, err := profiles.ReadFile("seccomp/" + runtime + ".json")
	return string(data), err
}

// createRequest is the body of the request that creates a container.
type createRequest struct {
	Image           string
	Entrypoint      []string
	Cmd             []string
	Env             []string
	User            string
	WorkingDir      string
	Hostname        string
	NetworkDisabled bool
	AttachStdin     bool
	AttachStdout    bool
	AttachStderr    bool
	OpenStdin       bool
	StdinOnce       bool
	StopSignal      string
	StopTimeout     int
	Labels          map[string]string
	HostConfig      hostConfig
}

type hostConfig struct {
	Runtime        string `json:",omitempty"`
	AutoRemove     bool
	NetworkMode    string
	IpcMode        string
	CgroupnsMode   string
	ReadonlyRootfs bool
	Privileged     bool
	CapDrop        []string
	SecurityOpt    []string
	Tmpfs          map[string]string `json:",omitempty"`
	Memory         int64
	MemorySwap     int64 `json:",omitempty"`
	NanoCpus       int64
	PidsLimit      int64
	OomScoreAdj    int
	Ulimits        []resourceLimit
	LogConfig      map[string]string
	RestartPolicy  map[string]string
	MaskedPaths    []string
	Dns            []string
	Mounts         []bindMount `json:",omitempty"`
}

// bindMount describes a file of the host that is mounted writable into a container.
type bindMount struct {
	Type, Source, Target string
}

type resourceLimit struct {
	Name       string
	Soft, Hard int64
}

// containerRequest returns the API request that creates a container for programs of a runtime.
func (b *dockerBackend) containerRequest(d *dockerDaemon, m *guestImage, name string) (*createRequest, error) {
	plan := confine.SandboxPlan{Profile: m.runtime, Files: maxOpenFiles}
	kind := m.runtime
	if m.i != nil {
		plan.Argv, plan.Env, plan.Tmp, plan.Mounts = m.argv, m.env, tmpSize, m.readableMounts()
	}
	if d.kernel { // gVisor counts threads itself
		if plan.Processes = builtinThreads; m.i != nil {
			plan.Processes = m.i.Threads
		}
	}
	plan.Ring = m.supportsSharedMemory()
	if m.network != nil {
		plan.Network, kind = confine.Relayed, relayed
	}
	return b.confinedRequest(d, m, name, kind, plan, b.Limits)
}

// confinedRequest returns the API request that creates a container. The argument kind names the allow list of system
// calls that Docker applies from outside. The argument plan describes the stricter restrictions that the first process
// in the container applies to itself.
func (b *dockerBackend) confinedRequest(
	d *dockerDaemon, m *guestImage, name, kind string, plan confine.SandboxPlan, l core.Limits,
) (*createRequest, error) {
	list, err := seccompProfile(kind)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	tmpfs, pids := map[string]string{}, int64(maxThreads)
	if plan.Tmp > 0 {
		tmpfs["/tmp"] = fmt.Sprintf("rw,noexec,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", tmpSize, tmpSize>>14)
	}
	if d.kernel { // gVisor shows its own files there
		const nothing = "ro,noexec,nosuid,nodev,size=4k"
		tmpfs["/sys"] = nothing
		if m.i == nil || !m.i.Proc || m.network != nil { // otherwise it would be alone there and not start
			tmpfs["/proc"] = nothing
		}
		pids = kernelThreads
	}
	if plan.Network == confine.Relayed {
		pids += confine.RelayThreads
	}
	most := d.memoryRoom(m, l)
	c := &createRequest{
		Image: name, Entrypoint: append([]string{guestPath, confine.ContainedArgument, string(text)}, b.Guest[1:]...),
		Cmd: []string{}, Env: []string{}, User: fmt.Sprintf("%d:%d", nobodyUser, nobodyUser),
		WorkingDir: "/", Hostname: "retort", NetworkDisabled: true, AttachStdin: true, AttachStdout: true,
		AttachStderr: true, OpenStdin: true, StdinOnce: true,
		StopSignal: "SIGKILL", StopTimeout: stopTimeoutSeconds, Labels: b.life.containerLabels(),
		HostConfig: hostConfig{
			Runtime: d.runtime, AutoRemove: true, NetworkMode: "none", IpcMode: "none", CgroupnsMode: "private",
			ReadonlyRootfs: true, CapDrop: []string{"ALL"},
			SecurityOpt: []string{"no-new-privileges", "seccomp=" + list}, Tmpfs: tmpfs, Memory: most,
			NanoCpus: int64(l.CPU * 1e9), PidsLimit: pids, OomScoreAdj: 500,
			Ulimits:   []resourceLimit{{"core", 0, 0}, {"nofile", maxOpenFiles, maxOpenFiles}, {"memlock", 0, 0}, {"msgqueue", 0, 0}},
			LogConfig: map[string]string{"Type": "none"}, RestartPolicy: map[string]string{"Name": "no"}, Dns: []string{"127.0.0.1"},
			MaskedPaths: maskedPaths,
		},
	}
	if d.swap {
		c.HostConfig.MemorySwap = most
	}
	return c, nil
}

// maskedPaths lists the paths that are hidden in containers because they reveal facts about the host. It extends
// Docker's own list.
var maskedPaths = []string{
	"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/cpuinfo", "/proc/interrupts",
	"/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/loadavg",
	"/proc/meminfo", "/proc/modules", "/proc/sched_debug", "/proc/scsi", "/proc/stat", "/proc/timer_list",
	"/proc/timer_stats", "/proc/uptime", "/proc/version", "/proc/vmstat", "/sys",
}

// memoryAllowance returns the memory that a container may use in addition to its /tmp, in bytes. This limit is a
// backstop: the guest limits its program first, so that the program gets an error.
func memoryAllowance(l core.Limits) int64 { return l.Memory + guestOverhead + 2*l.Result }

// memoryRoom returns the memory limit in bytes that a container of an image is created with.
func (d *dockerDaemon) memoryRoom(m *guestImage, l core.Limits) int64 {
	most := memoryAllowance(l) + tmpSize
	if d.kernel {
		most += kernelOverhead
	}
	if m.network != nil {
		most += relayMemory
	}
	return most
}

// guestContainer represents a running container with a guest in it.
type guestContainer struct {
	backend *dockerBackend
	daemon  *dockerDaemon
	i       *interpreter.Interpreter // interpreter of the container's runtime; nil for the built-in runtime
	image   *guestImage
	runtime string
	id      string
	conn    net.Conn
	out     *io.PipeReader    // standard output of the guest, which carries its protocol
	wire    io.ReadWriter     // combines conn, out and the shared memory into one stream
	shared  *shm.SharedMemory // memory that guest and engine share; nil if there is no shared memory
	stderr  procgroup.StderrHead
	limits  core.Limits // limits with which the container was started

	killed   atomic.Bool
	outgrown atomic.Bool // the container was ended because it exceeded its memory limit
	killing  sync.Once
	ended    chan struct{} // closed when the container has ended, or when its end can no longer be determined
	code     int           // exit status of the container; -1 if unknown
	gone     chan struct{}
	began    time.Time // time at which the guest received its program
	peak     warmpool.MemoryPeak
}

// startContainer starts a container for programs of a runtime.
func (b *dockerBackend) startContainer(ctx context.Context, name string) (*guestContainer, error) {
	d, err := b.connectedDaemon()
	if err != nil {
		return nil, err
	}
	shared := b.shareMemory(d, b.images[name])
	ask := func(image string) (*createRequest, error) {
		want, err := b.containerRequest(d, b.images[name], image)
		if err == nil && shared != nil {
			want.HostConfig.Mounts = []bindMount{{"bind", shared.FilePath(), confine.RingPath}}
		}
		return want, err
	}
	c, in, err := b.launchContainer(ctx, d, b.images[name], ask)
	if err != nil && shared != nil {
		_ = shared.Close()
		if shared = nil; b.isRemoteError(err) {
			c, in, err = b.launchContainer(ctx, d, b.images[name], ask)
		}
	}
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	c.out = read
	go func() {
		_ = write.CloseWithError(demuxStreams(in, write, &c.stderr))
		_ = c.conn.Close()
	}()
	c.connectGuest(shared)
	return c, nil
}

// launchContainer creates and starts a container of an image. The function ask returns the request that creates it.
// launchContainer returns the container and a reader of its output.
func (b *dockerBackend) launchContainer(
	ctx context.Context, d *dockerDaemon, m *guestImage, ask func(image string) (*createRequest, error),
) (*guestContainer, *bufio.Reader, error) {
	if err := b.life.lockFile(); err != nil {
		return nil, nil, core.Errorf(
			core.KindSandboxUnavailable, Name, "the engine's folder for container files cannot be used: %w", err,
		).WithHint("make sure that this user owns %s and that its disk has free space", b.life.dir)
	}
	c, in, err := b.createContainer(ctx, d, m, ask)
	if isAnswered(err, http.StatusNotFound) { // another engine may have removed the image
		m.forgetImage(imageRepository + ":" + m.tag)
		c, in, err = b.createContainer(ctx, d, m, ask)
	}
	if err != nil {
		b.recheckDaemon()
		return nil, nil, b.explainError(err)
	}
	return c, in, nil
}

// createContainer creates a container, attaches its streams and starts it.
func (b *dockerBackend) createContainer(
	ctx context.Context, d *dockerDaemon, m *guestImage, ask func(image string) (*createRequest, error),
) (_ *guestContainer, in *bufio.Reader, err error) {
	name, err := m.ensureImage(ctx, d.api)
	if err != nil {
		return nil, nil, err
	}
	want, err := ask(name)
	if err != nil {
		return nil, nil, err
	}
	var made struct{ ID string }
	// After the request the container may exist. Whether or not it is still wanted, the answer must be awaited
	// before it can be removed.
	making, over := context.WithTimeout(context.WithoutCancel(ctx), startTimeout)
	defer over()
	if err := d.api.longCall(making, http.MethodPost, "/containers/create", nil, want, &made); err != nil {
		return nil, nil, err
	}
	c := &guestContainer{
		backend: b, daemon: d, i: m.i, image: m, runtime: m.runtime, id: made.ID, limits: b.Limits, code: -1,
		ended: make(chan struct{}), gone: make(chan struct{}),
	}
	defer func() {
		if err != nil {
			c.removeUnstarted()
		}
	}()
	c.conn, in, err = d.api.attachStreams(ctx, c.id)
	if err != nil {
		return nil, nil, err
	}
	c.awaitRemoval(ctx)
	begin, begun := context.WithTimeout(ctx, startTimeout)
	defer begun()
	if err := d.api.longCall(begin, http.MethodPost, "/containers/"+c.id+"/start", nil, nil, nil); err != nil {
		_ = c.conn.Close()
		return nil, nil, err
	}
	return c, in, nil
}

// removeUnstarted removes a container that was created but not started.
func (c *guestContainer) removeUnstarted() {
	ctx, cancel := context.WithTimeout(context.Background(), removeTimeout)
	defer cancel()
	if err := removeContainer(ctx, c.daemon.api, c.id); err != nil {
		c.backend.noteUnremoved(c.id, err)
	}
}

// demuxStreams splits the output of an attached container into standard output, which carries the guest's protocol,
// and standard error, which explains failures. Each frame of the container's output has a stream number, three zero
// bytes, a length and that many bytes.
func demuxStreams(in *bufio.Reader, out, stderr io.Writer) error {
	var header [8]byte
	for {
		if _, err := io.ReadFull(in, header[:]); err != nil {
			return io.EOF
		}
		to := out
		switch header[0] {
		case 1:
		case 2:
			to = stderr
		default:
			return fmt.Errorf("the daemon sent data for an unknown stream, %d", header[0])
		}
		if _, err := io.CopyN(to, in, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return io.EOF
		}
	}
}

// Read implements warmpool.Guest.
func (c *guestContainer) Read(b []byte) (int, error) { return c.wire.Read(b) }

// Write implements warmpool.Guest.
func (c *guestContainer) Write(b []byte) (int, error) { return c.wire.Write(b) }

// Close closes the connection, which makes the guest exit.
func (c *guestContainer) Close() error {
	c.Kill()
	return errors.Join(c.out.Close(), c.shared.Close())
}

// Gone implements warmpool.Guest.
func (c *guestContainer) Gone() <-chan struct{} { return c.gone }

// Bounds implements warmpool.Guest.
func (c *guestContainer) Bounds() string { return "container" }

// Kill implements warmpool.Guest. It first closes the input, so that the guest exits by itself, which costs the
// daemon less than killing it. A guest that does not exit within closeGrace is killed.
func (c *guestContainer) Kill() {
	c.killing.Do(func() {
		c.killed.Store(true)
		go c.endContainer()
	})
}

func (c *guestContainer) endContainer() {
	_ = c.conn.Close()
	select {
	case <-c.ended:
		return
	case <-time.After(closeGrace):
	}
	ctx, cancel := context.WithTimeout(context.Background(), answerTimeout)
	defer cancel()
	_ = c.daemon.api.callJSON(ctx, http.MethodPost, "/containers/"+c.id+"/kill", url.Values{"signal": {"KILL"}}, nil, nil)
}

// awaitRemoval asks the daemon to report when it has removed the container. It must be called before the container
// starts, because the daemon may never answer the request for a container that was already removed.
func (c *guestContainer) awaitRemoval(ctx context.Context) {
	asked := make(chan struct{})
	go c.waitRemoved(asked)
	select {
	case <-asked:
	case <-time.After(c.backend.asking):
	case <-ctx.Done():
	}
}

// waitRemoved asks the daemon to report the container's removal and waits for the report. As soon as the daemon has
// accepted the request, waitRemoved closes the channel in the argument asked.
func (c *guestContainer) waitRemoved(asked chan<- struct{}) {
	defer close(c.gone)
	response, err := c.daemon.api.openResponse(
		context.Background(), http.MethodPost, "/containers/"+c.id+"/wait", url.Values{"condition": {"removed"}}, "",
		nil,
	)
	close(asked)
	if err == nil {
		var said struct{ StatusCode int }
		if err = decodeResponse(response, &said); err == nil {
			c.code = said.StatusCode
		}
	}
	close(c.ended)
	// Output of the container may still be on its way. Its reader closes the connection.
	if c.conn.SetReadDeadline(time.Now().Add(drainTimeout)) != nil {
		_ = c.conn.Close()
	}
	if err != nil && !isAnswered(err, http.StatusNotFound) {
		c.removeUnstarted()
	}
}
