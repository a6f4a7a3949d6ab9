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
	"retort/internal/sandbox/wire/shm"
)

const (
	// nobody identifies the user that programs run as. It owns nothing.
	nobody = 65534
	// temporary sets the size of /tmp for interpreters, in bytes. It counts as memory.
	temporary = 64 << 20
	// beside gives the memory in bytes that a guest needs in addition to the program's own. kernelMemory is what a
	// gVisor kernel needs on top.
	beside       = 96 << 20
	kernelMemory = 128 << 20
	// relayMemory bounds the memory of a relay, in bytes. Most of it is data that waits in connections.
	relayMemory = 96 << 20
	files       = 256
	threads     = 64
	// builtinThreads bounds the threads of the built-in guest. It needs fewer.
	builtinThreads = 32
	// kernelThreads sets the number of threads that gVisor has in addition to the program's.
	kernelThreads = 512
	// lull bounds the time that a container may take to exit after its input was closed.
	lull = 300 * time.Millisecond
	// hearing sets how long, in seconds, the daemon waits for the exit event when it finds that the process to kill
	// is already gone. A daemon that does not wait forgets the container and leaves its shim behind, with control
	// groups and folders.
	hearing = 10
	// starting bounds the time of creating and starting a container. On a busy machine this takes far longer than
	// other requests.
	starting = time.Minute
	// asking bounds the time that the daemon may take to confirm that it waits for a container's removal. A daemon
	// that does not confirm is not waited for any longer.
	asking = time.Second
	// draining sets the time in which the last output of a container must arrive after its end. The daemon closes the
	// connection after that output.
	draining = 5 * time.Second
	// ending bounds the time that the daemon may take to remove a container.
	ending = 20 * time.Second
)

//go:embed seccomp/*.json
var profiles embed.FS

// relayed names the allow list of a runtime whose programs have a network. It includes the calls that the relay
// needs.
const relayed = "relayed"

// profile returns the allow list of system calls for containers of a runtime.
func profile(runtime string) (string, error) {
	if runtime == "bun" || runtime == "deno" {
		runtime = "node"
	}
	data, err := profiles.ReadFile("seccomp/" + runtime + ".json")
	return string(data), err
}

// create represents the request for a new container.
type create struct {
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
	Ulimits        []ulimit
	LogConfig      map[string]string
	RestartPolicy  map[string]string
	MaskedPaths    []string
	Dns            []string
	Mounts         []mount `json:",omitempty"`
}

// mount represents a file of the machine that a container can write.
type mount struct {
	Type, Source, Target string
}

type ulimit struct {
	Name       string
	Soft, Hard int64
}

// ask returns the request for a container that runs programs of a runtime.
func (b *backend) ask(d *daemon, m *image, name string) (*create, error) {
	plan := confine.Plan{Profile: m.runtime, Files: files}
	kind := m.runtime
	if m.i != nil {
		plan.Argv, plan.Env, plan.Tmp, plan.Mounts = m.argv, m.env, temporary, m.mounts()
	}
	if d.kernel { // gVisor counts threads itself
		if plan.Processes = builtinThreads; m.i != nil {
			plan.Processes = m.i.Threads
		}
	}
	plan.Ring = m.shares()
	if m.network != nil {
		plan.Network, kind = confine.Relayed, relayed
	}
	return b.contain(d, m, name, kind, plan, b.Limits)
}

// contain returns the request for a container with the restrictions of its kind outside and those of plan inside.
func (b *backend) contain(d *daemon, m *image, name, kind string, plan confine.Plan, l core.Limits) (*create, error) {
	list, err := profile(kind)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan)
	if err != nil {
		return nil, err
	}
	tmpfs, pids := map[string]string{}, int64(threads)
	if plan.Tmp > 0 {
		tmpfs["/tmp"] = fmt.Sprintf("rw,noexec,nosuid,nodev,mode=1777,size=%d,nr_inodes=%d", temporary, temporary>>14)
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
	most := d.room(m, l)
	c := &create{
		Image: name, Entrypoint: append([]string{guestPath, confine.ContainedArgument, string(text)}, b.Guest[1:]...), Cmd: []string{}, Env: []string{}, User: fmt.Sprintf("%d:%d", nobody, nobody),
		WorkingDir: "/", Hostname: "retort", NetworkDisabled: true, AttachStdin: true, AttachStdout: true, AttachStderr: true, OpenStdin: true, StdinOnce: true,
		StopSignal: "SIGKILL", StopTimeout: hearing, Labels: b.life.labels(),
		HostConfig: hostConfig{
			Runtime: d.runtime, AutoRemove: true, NetworkMode: "none", IpcMode: "none", CgroupnsMode: "private", ReadonlyRootfs: true, CapDrop: []string{"ALL"},
			SecurityOpt: []string{"no-new-privileges", "seccomp=" + list}, Tmpfs: tmpfs, Memory: most, NanoCpus: int64(l.CPU * 1e9), PidsLimit: pids, OomScoreAdj: 500,
			Ulimits:   []ulimit{{"core", 0, 0}, {"nofile", files, files}, {"memlock", 0, 0}, {"msgqueue", 0, 0}},
			LogConfig: map[string]string{"Type": "none"}, RestartPolicy: map[string]string{"Name": "no"}, Dns: []string{"127.0.0.1"},
			MaskedPaths: masked,
		},
	}
	if d.swap {
		c.HostConfig.MemorySwap = most
	}
	return c, nil
}

// masked lists paths that reveal something about the machine: those that Docker hides, and more.
var masked = []string{
	"/proc/acpi", "/proc/asound", "/proc/cmdline", "/proc/config.gz", "/proc/cpuinfo", "/proc/interrupts", "/proc/kallsyms", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/loadavg",
	"/proc/meminfo", "/proc/modules", "/proc/sched_debug", "/proc/scsi", "/proc/stat", "/proc/timer_list", "/proc/timer_stats", "/proc/uptime", "/proc/version", "/proc/vmstat", "/sys",
}

// allowance returns the memory that a container may use in addition to its /tmp. It is a backstop: the guest limits
// its program first, and the program then gets an error.
func allowance(l core.Limits) int64 { return l.Memory + beside + 2*l.Result }

// room returns the memory limit of a container of an image.
func (d *daemon) room(m *image, l core.Limits) int64 {
	most := allowance(l) + temporary
	if d.kernel {
		most += kernelMemory
	}
	if m.network != nil {
		most += relayMemory
	}
	return most
}

// container represents one running container.
type container struct {
	backend *backend
	daemon  *daemon
	i       *interpreter.Interpreter // nil for the built-in runtime
	image   *image
	runtime string
	id      string
	conn    net.Conn
	out     *io.PipeReader // output of the guest
	wire    io.ReadWriter  // over both and over the shared memory
	shared  *shm.Memory    // nil if no memory is shared
	stderr  procgroup.Head
	limits  core.Limits // the limits that it was started with

	killed   atomic.Bool
	outgrown atomic.Bool // it exceeded its memory limit
	killing  sync.Once
	ended    chan struct{} // closed when it has ended, or its end cannot be determined
	code     int           // exit status; -1 if unknown
	gone     chan struct{}
	began    time.Time // when its program came
	peak     atomic.Int64
}

// start starts a container of a runtime.
func (b *backend) start(ctx context.Context, name string) (*container, error) {
	d, err := b.met()
	if err != nil {
		return nil, err
	}
	shared := b.share(d, b.images[name])
	ask := func(image string) (*create, error) {
		want, err := b.ask(d, b.images[name], image)
		if err == nil && shared != nil {
			want.HostConfig.Mounts = []mount{{"bind", shared.Path(), confine.RingPath}}
		}
		return want, err
	}
	c, in, err := b.launch(ctx, d, b.images[name], ask)
	if err != nil && shared != nil {
		_ = shared.Close()
		if shared = nil; b.distant(err) {
			c, in, err = b.launch(ctx, d, b.images[name], ask)
		}
	}
	if err != nil {
		return nil, err
	}
	read, write := io.Pipe()
	c.out = read
	go func() {
		_ = write.CloseWithError(demux(in, write, &c.stderr))
		_ = c.conn.Close()
	}()
	c.connect(shared)
	return c, nil
}

// launch starts a container of an image with the request that ask returns. It returns the container and a reader of
// its output.
func (b *backend) launch(ctx context.Context, d *daemon, m *image, ask func(image string) (*create, error)) (*container, *bufio.Reader, error) {
	if err := b.life.begin(); err != nil {
		return nil, nil, core.Errorf(core.KindSandboxUnavailable, Name, "the engine's folder for containers cannot be used: %w", err).WithHint("make sure that this user owns %s and that its disk has free space", b.life.dir)
	}
	c, in, err := b.create(ctx, d, m, ask)
	if answered(err, http.StatusNotFound) { // another engine may have removed the image
		m.forget(repository + ":" + m.tag)
		c, in, err = b.create(ctx, d, m, ask)
	}
	if err != nil {
		b.doubt()
		return nil, nil, b.explain(err)
	}
	return c, in, nil
}

// create creates a container, attaches its streams and starts it.
func (b *backend) create(ctx context.Context, d *daemon, m *image, ask func(image string) (*create, error)) (_ *container, in *bufio.Reader, err error) {
	name, err := m.ensure(ctx, d.api)
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
	making, over := context.WithTimeout(context.WithoutCancel(ctx), starting)
	defer over()
	if err := d.api.longCall(making, http.MethodPost, "/containers/create", nil, want, &made); err != nil {
		return nil, nil, err
	}
	c := &container{backend: b, daemon: d, i: m.i, image: m, runtime: m.runtime, id: made.ID, limits: b.Limits, code: -1, ended: make(chan struct{}), gone: make(chan struct{})}
	defer func() {
		if err != nil {
			c.discard()
		}
	}()
	c.conn, in, err = d.api.attach(ctx, c.id)
	if err != nil {
		return nil, nil, err
	}
	c.await(ctx)
	begin, begun := context.WithTimeout(ctx, starting)
	defer begun()
	if err := d.api.longCall(begin, http.MethodPost, "/containers/"+c.id+"/start", nil, nil, nil); err != nil {
		_ = c.conn.Close()
		return nil, nil, err
	}
	return c, in, nil
}

// discard removes a container that was not started.
func (c *container) discard() {
	ctx, cancel := context.WithTimeout(context.Background(), ending)
	defer cancel()
	if err := remove(ctx, c.daemon.api, c.id); err != nil {
		c.backend.behind(c.id, err)
	}
}

// demux splits the output of an attached container. Each frame has the number of a stream, three zero bytes and a
// length. The second stream is standard error, which explains failures.
func demux(in *bufio.Reader, out, stderr io.Writer) error {
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
			return fmt.Errorf("the daemon sent data of an unknown stream, %d", header[0])
		}
		if _, err := io.CopyN(to, in, int64(binary.BigEndian.Uint32(header[4:]))); err != nil {
			return io.EOF
		}
	}
}

// Read implements warmpool.Guest.
func (c *container) Read(b []byte) (int, error) { return c.wire.Read(b) }

// Write implements warmpool.Guest.
func (c *container) Write(b []byte) (int, error) { return c.wire.Write(b) }

// Close closes the connection, which ends the guest.
func (c *container) Close() error {
	c.Kill()
	return errors.Join(c.out.Close(), c.shared.Close())
}

// Gone implements warmpool.Guest.
func (c *container) Gone() <-chan struct{} { return c.gone }

// Kill implements warmpool.Guest. It first closes the input, after which a guest exits by itself: that costs the
// daemon less than killing it. A guest that does not exit is killed soon after.
func (c *container) Kill() {
	c.killing.Do(func() {
		c.killed.Store(true)
		go c.end()
	})
}

func (c *container) end() {
	_ = c.conn.Close()
	select {
	case <-c.ended:
		return
	case <-time.After(lull):
	}
	ctx, cancel := context.WithTimeout(context.Background(), answering)
	defer cancel()
	_ = c.daemon.api.call(ctx, http.MethodPost, "/containers/"+c.id+"/kill", url.Values{"signal": {"KILL"}}, nil, nil)
}

// await lets the daemon report when it has removed the container. The request must be sent before the container
// starts: for a container that has just been removed the daemon would wait for ever, because it knows the name a
// little longer.
func (c *container) await(ctx context.Context) {
	asked := make(chan struct{})
	go c.wait(asked)
	select {
	case <-asked:
	case <-time.After(c.backend.asking):
	case <-ctx.Done():
	}
}

// wait waits until the daemon has removed the container. It closes asked as soon as the daemon waits for that.
func (c *container) wait(asked chan<- struct{}) {
	defer close(c.gone)
	response, err := c.daemon.api.open(context.Background(), http.MethodPost, "/containers/"+c.id+"/wait", url.Values{"condition": {"removed"}}, "", nil)
	close(asked)
	if err == nil {
		var said struct{ StatusCode int }
		if err = decoded(response, &said); err == nil {
			c.code = said.StatusCode
		}
	}
	close(c.ended)
	// Output of the container may still be on its way. Its reader closes the connection.
	if c.conn.SetReadDeadline(time.Now().Add(draining)) != nil {
		_ = c.conn.Close()
	}
	if err != nil && !answered(err, http.StatusNotFound) {
		c.discard()
	}
}
