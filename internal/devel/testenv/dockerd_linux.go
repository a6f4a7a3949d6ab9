package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// DockerDaemon represents a Docker daemon that tests have started. It has its own folders and no networks, and has
// gVisor if that is installed. It ends when the process that started it ends, for whatever reason.
type DockerDaemon struct {
	dir        string
	group, pid int // process group of the shell that supervises the daemon, and the daemon's process ID
}

// supervisorScript is a shell script that runs a command. The first argument is a process id. If that process
// ends, the script kills the command and removes the command's files. If the command itself ends, the script ends,
// too.
const supervisorScript = `parent=$1 dir=$2; shift 2
"$@" > "$dir/log" 2>&1 < /dev/null &
echo $$ $! > "$dir/started"
while kill -0 $parent 2> /dev/null && kill -0 $! 2> /dev/null; do sleep 0.3; done
kill $! 2> /dev/null; wait $!
kill -0 $parent 2> /dev/null || { umount -l "$dir"; rm -rf --one-file-system "$dir"; } 2> /dev/null`

// StartDockerd starts a daemon, or skips or fails the test as Need does. End must be called.
func StartDockerd(t testing.TB) *DockerDaemon {
	t.Helper()
	path := Need(t, "dockerd")
	for _, driver := range []string{"overlay2", "vfs"} {
		dir, err := os.MkdirTemp("", "dkt")
		if err != nil {
			t.Fatal(err)
		}
		d := &DockerDaemon{dir: dir}
		// Use memory if possible: the daemon waits for the disk many times for each container, and its data need
		// not outlive it.
		_ = syscall.Mount("dockerd", dir, "tmpfs", 0, "mode=0700")
		settings := map[string]any{}
		if runsc, err := goInstalled("runsc"); err == nil {
			settings["runtimes"] = map[string]any{"runsc": map[string]any{
				"path": runsc, "runtimeArgs": []string{"--platform=systrap", "--network=none"},
			}}
		}
		text, err := json.Marshal(settings)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, "daemon.json"), text, 0o600)
		}
		if err == nil {
			err = d.start(path, driver)
		}
		if err == nil {
			return d
		}
		said, _ := os.ReadFile(filepath.Join(dir, "log"))
		t.Logf("%s: %v\n%s", driver, err, said)
		d.End()
	}
	t.Fatal("no daemon could be started")
	return nil
}

// start starts the daemon and waits until it answers. The daemon is not a child of this process, because tests count
// their children.
func (d *DockerDaemon) start(path, driver string) error {
	args := []string{
		"--fork", "sh", "-c", supervisorScript, "watched", strconv.Itoa(os.Getpid()), d.dir, path,
		"--bridge=none", "--iptables=false", "--ip6tables=false", "--data-root=" + filepath.Join(d.dir, "data"),
		"--exec-root=" + filepath.Join(d.dir, "exec"),
		"--pidfile=" + filepath.Join(d.dir, "pid"), "--host=" + d.Host(), "--storage-driver=" + driver,
		"--config-file=" + filepath.Join(d.dir, "daemon.json"),
	}
	if err := exec.Command("setsid", args...).Run(); err != nil {
		return err
	}
	ended := false
	if !Poll(func() bool {
		if d.pid == 0 {
			data, _ := os.ReadFile(filepath.Join(d.dir, "started"))
			_, _ = fmt.Sscan(string(data), &d.group, &d.pid)
		}
		ended = d.pid != 0 && !d.isRunning()
		return ended || d.isAnswering()
	}) {
		return fmt.Errorf("the daemon does not answer")
	}
	if ended {
		return fmt.Errorf("the daemon has ended")
	}
	return nil
}

// isRunning reports whether the daemon is still running. A zombie does not count: the shell that started
// the daemon may take a while to reap it.
func (d *DockerDaemon) isRunning() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.pid))
	_, rest, _ := strings.Cut(string(stat), ") ")
	return err == nil && !strings.HasPrefix(rest, "Z")
}

func (d *DockerDaemon) isAnswering() bool {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(d.dir, "sock"))
	}
	client := http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: Patience}
	answer, err := client.Get("http://docker/info")
	if err != nil {
		return false
	}
	return answer.Body.Close() == nil && answer.StatusCode == http.StatusOK
}

// Host returns the address of the daemon.
func (d *DockerDaemon) Host() string { return "unix://" + filepath.Join(d.dir, "sock") }

// End stops the daemon with its containerd, and removes its files.
func (d *DockerDaemon) End() {
	if d.pid > 1 {
		_ = syscall.Kill(d.pid, syscall.SIGTERM)
		Poll(func() bool { return !d.isRunning() })
		_ = syscall.Kill(-d.group, syscall.SIGKILL)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range lines { // what held its containers
		line, _ := os.ReadFile(file)
		if pid, err := strconv.Atoi(
			filepath.Base(filepath.Dir(file)),
		); err == nil && pid != os.Getpid() && strings.Contains(string(line), d.dir+"/") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 1 && strings.HasPrefix(fields[1], d.dir+"/") {
			_ = syscall.Unmount(fields[1], syscall.MNT_DETACH)
		}
	}
	_ = syscall.Unmount(d.dir, syscall.MNT_DETACH)
	_ = os.RemoveAll(d.dir)
}
