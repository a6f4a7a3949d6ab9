package vminit

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"retort/internal/sandbox/confine"
)

const (
	maxStderr = 8 << 10
	// inside is the id, inside the guest's own user namespace, of the user that a program runs as. Outside the
	// namespace, this user is nobody. Package confine uses the same two ids.
	inside, nobody = 1000, 65534
	// portTimeout bounds how long the kernel may take to find its devices.
	portTimeout = 20 * time.Second
)

// Main implements the main function of a machine's first process. In a machine it never returns, because the machine
// ends with the process.
func Main() error {
	control, err := serveGuest()
	if err != nil && control != nil {
		sendEnd(control, GuestEnd{Status: -1, Failed: err.Error()})
	}
	if os.Getpid() != 1 {
		return err
	}
	time.Sleep(time.Second) // the host ends the machine when it has read that
	return errors.Join(err, unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART))
}

// serveGuest runs the guest. It returns after the guest has ended and the host has been told how the guest ended.
func serveGuest() (control io.Writer, err error) {
	if os.Getpid() != 1 {
		return nil, errors.New("this is the first process of a virtual machine and cannot run elsewhere")
	}
	if err := errors.Join(makeRoot(), mountFilesystems()); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(ConfigPath)
	if err != nil {
		return nil, err
	}
	var c MachineConfig
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	for _, m := range c.Modules {
		if err := loadModule(m); err != nil {
			return nil, fmt.Errorf("module %s: %w", m, err)
		}
	}
	control, wire, err := c.openPorts()
	if err != nil {
		return control, err
	}
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0)
	if c.Commands {
		return control, c.runOrder(wire)
	}
	return control, c.runGuest(wire, control)
}

// openPorts opens the connections to the host. If only the control connection can be opened, openPorts returns both
// that connection and the error.
func (c *MachineConfig) openPorts() (control io.Writer, wire *os.File, err error) {
	if c.Vsock {
		return openVsocks()
	}
	file, err := openPort(ControlPort)
	if err != nil {
		return nil, nil, err
	}
	wire, err = openPort(WirePort)
	if err == nil {
		go handleWakes(file)
	}
	return file, wire, err
}

// openMemory opens the machine's memory and positions the file at the address at which the memory begins that is
// shared with the host. The machine's kernel does not use that memory.
func openMemory(at int64) (*os.File, error) {
	f, err := os.OpenFile("/dev/mem", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if _, err := f.Seek(at, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// makeRoot mounts the root file system, which contains the files of the archive, a second time and makes the second
// mount the root. The confinement of the guest replaces the root later, which would be impossible with the first
// mount.
func makeRoot() error {
	const place = "/mnt"
	if err := os.MkdirAll(place, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("/", place, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount the root once more: %w", err)
	}
	if err := os.Chdir(place); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	return errors.Join(unix.Chroot("."), os.Chdir("/"))
}

// mountFilesystems mounts the file systems that Linux programs expect, such as /proc.
func mountFilesystems() error {
	for _, m := range []struct{ kind, target string }{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tmpfs", "/tmp"}} {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.kind, m.target, m.kind, unix.MS_NOSUID|unix.MS_NOEXEC, ""); err != nil && err != unix.EBUSY {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	return nil
}

// loadModule loads a kernel module. It returns no error if the module is already loaded.
func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && err != unix.EEXIST {
		return err
	}
	return nil
}

// openPort opens the serial port with the given name. It waits until the kernel has found the port.
func openPort(name string) (*os.File, error) {
	for end := time.Now().Add(portTimeout); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		files, _ := filepath.Glob("/sys/class/virtio-ports/*/name")
		for _, file := range files {
			said, _ := os.ReadFile(file)
			if strings.TrimSpace(string(said)) != name {
				continue
			}
			fd, err := unix.Open("/dev/"+filepath.Base(filepath.Dir(file)), unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err == unix.ENOENT || err == unix.ENXIO {
				break // not quite yet
			}
			if err != nil {
				return nil, err
			}
			return os.NewFile(uintptr(fd), name), nil
		}
	}
	return nil, fmt.Errorf("the machine has no port %s: %w", name, fs.ErrNotExist)
}

// runGuest runs the guest until it ends.
func (c *MachineConfig) runGuest(wire *os.File, control io.Writer) error {
	cmd := exec.Command(Program, append([]string{confine.Argument}, c.Command...)...)
	cmd.Stdin, cmd.Stdout = wire, wire
	var more []*os.File
	if c.Plan.Ring {
		shared, err := openMemory(c.Plan.RingAt)
		if err != nil {
			return err
		}
		defer shared.Close()
		more = append(more, shared)
	}
	stderr := &headBuffer{}
	cmd.Stderr = stderr
	err := beginChild(cmd, c.Plan, more...)
	_ = wire.Close()
	if err != nil {
		return err
	}
	_ = cmd.Wait() // how it ended is in ProcessState
	end := endOf(cmd)
	end.Stderr = stderr.String()
	sendEnd(control, end)
	return nil
}

// beginChild starts a child that confines itself according to the plan p. The child also inherits the open files in
// the argument more.
func beginChild(cmd *exec.Cmd, p confine.SandboxPlan, more ...*os.File) error {
	plan, err := startChild(cmd, more...)
	if err != nil {
		return err
	}
	return sendPlan(plan, p)
}

// startChild starts a child that waits for its confinement plan.
func startChild(cmd *exec.Cmd, more ...*os.File) (plan *os.File, err error) {
	read, plan, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Env, cmd.Dir, cmd.ExtraFiles, cmd.SysProcAttr = []string{}, "/", append([]*os.File{read}, more...), childAttributes()
	err = cmd.Start()
	_ = read.Close()
	if err != nil {
		return nil, errors.Join(err, plan.Close())
	}
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", cmd.Process.Pid), []byte("1000"), 0)
	return plan, nil
}

// sendPlan sends a child its confinement plan.
func sendPlan(plan *os.File, p confine.SandboxPlan) error {
	p.User = inside
	data, err := json.Marshal(p)
	if err == nil {
		_, err = plan.Write(data)
	}
	return errors.Join(err, plan.Close())
}

// endOf returns how a child ended.
func endOf(cmd *exec.Cmd) GuestEnd {
	end := GuestEnd{Status: cmd.ProcessState.ExitCode()}
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		end.Signal = int(status.Signal())
	}
	return end
}

// childAttributes returns the process attributes that start a child in its own namespaces. There it runs as a user
// that owns no files.
func childAttributes() *syscall.SysProcAttr {
	users := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 1}, {ContainerID: inside, HostID: nobody, Size: 1}}
	return &syscall.SysProcAttr{
		Setsid: true, Pdeathsig: syscall.SIGKILL, UidMappings: users, GidMappings: users, GidMappingsEnableSetgroups: true,
		Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP,
	}
}

// handleWakes handles the messages that the host sends after it has resumed the machine.
func handleWakes(control *os.File) {
	lines := bufio.NewReader(control)
	for {
		if lines.Buffered() == 0 {
			awaitInput(control)
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var w WakeMessage
		if err = json.Unmarshal(line, &w); err == nil {
			err = w.applyWake()
		}
		if err != nil {
			sendEnd(control, GuestEnd{Status: -1, Failed: "the machine does not resume: " + err.Error()})
			return
		}
		_, _ = io.WriteString(control, "\n")
	}
}

// awaitInput waits until there is input. It polls the port, because blocking in a read would be slower. The kernel's
// driver reclaims the buffers that the host has read only when the port is polled. Until then every interrupt of any
// port wakes the reader, which would cost two process switches for each call of a program.
func awaitInput(f *os.File) {
	fds := []unix.PollFd{{Fd: int32(f.Fd()), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			return
		}
	}
}

// applyWake sets the clock and reseeds the kernel's random number generator, so that each copy of a saved machine
// draws other random numbers.
func (w *WakeMessage) applyWake() error {
	if len(w.Seed) < 32 {
		return errors.New("there is no seed")
	}
	now := unix.NsecToTimespec(w.Now)
	if err := unix.ClockSettime(unix.CLOCK_REALTIME, &now); err != nil {
		return fmt.Errorf("set the clock: %w", err)
	}
	random, err := os.OpenFile("/dev/urandom", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer random.Close()
	// struct rand_pool_info: the entropy in bits, the length, and the bytes.
	info := make([]byte, 8+len(w.Seed))
	*(*int32)(unsafe.Pointer(&info[0])) = int32(8 * len(w.Seed))
	*(*int32)(unsafe.Pointer(&info[4])) = int32(len(w.Seed))
	copy(info[8:], w.Seed)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, random.Fd(), unix.RNDADDENTROPY, uintptr(unsafe.Pointer(&info[0]))); errno != 0 {
		return fmt.Errorf("add random numbers: %w", errno)
	}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, random.Fd(), unix.RNDRESEEDCRNG, 0); errno != 0 {
		return fmt.Errorf("use new random numbers: %w", errno)
	}
	return nil
}

func sendEnd(control io.Writer, e GuestEnd) {
	data, err := json.Marshal(e)
	if err == nil {
		_, _ = control.Write(append(data, '\n'))
	}
}

// headBuffer implements an io.Writer that keeps the first bytes and discards the rest.
type headBuffer struct {
	mu   sync.Mutex
	text []byte
}

func (h *headBuffer) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.text = append(h.text, b[:min(len(b), maxStderr-len(h.text))]...)
	return len(b), nil
}

func (h *headBuffer) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.ToValidUTF8(string(h.text), "�")
}
