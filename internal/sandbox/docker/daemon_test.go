//go:build unix

package docker

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/sandbox"
)

// startFakeDaemon starts a fake daemon and returns Options that point to it. The argument says maps a request, such as
// "GET /info", to the function that handles it. The daemon responds to all other requests with 404.
func startFakeDaemon(t *testing.T, says map[string]func(http.ResponseWriter, *http.Request)) Options {
	t.Helper()
	if why := checkGuest(os.Args[0], ""); why != nil {
		t.Skip(why) // as on a Mac, or with the race detector
	}
	dir, err := os.MkdirTemp("", "dkf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "sock"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		if strings.HasPrefix(path, "/v1.") {
			_, path, _ = strings.Cut(path[1:], "/")
			path = "/" + path
		}
		if say := says[r.Method+" "+path]; say != nil {
			say(w, r)
			return
		}
		http.Error(w, `{"message":"no such thing"}`, http.StatusNotFound)
	})}
	go server.Serve(l)
	t.Cleanup(func() { _ = server.Close() })
	return Options{Host: "unix://" + filepath.Join(dir, "sock"), Dir: filepath.Join(dir, "lives"), Guest: []string{os.Args[0], "guest"}, Warm: -1}
}

func saying(text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) }
}

func failing(status int, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"message":%q}`, text)
	}
}

const (
	aVersion = `{"ApiVersion":"1.41","Components":[{"Name":"runc","Version":"1.1.5"}]}`
	anInfo   = `{"OSType":"linux","MemoryLimit":true,"PidsLimit":true,"SwapLimit":true,"SecurityOptions":["name=seccomp"],"DefaultRuntime":"runc","Runtimes":{"runc":{}}}`
)

// healthyHandlers returns the handlers of a fake daemon that passes the backend's checks. It has no handlers for
// requests about containers.
func healthyHandlers() map[string]func(http.ResponseWriter, *http.Request) {
	return map[string]func(http.ResponseWriter, *http.Request){
		"GET /version": saying(aVersion), "GET /info": saying(anInfo), "POST /images/create": func(w http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) },
		"GET /images/json": saying("[]"), "GET /containers/json": saying("[]"), "POST /containers/create": saying(`{"Id":"c1"}`), "DELETE /containers/c1": saying(""),
	}
}

// foreignArchitecture is the name of a processor architecture that is not this machine's.
var foreignArchitecture = cmp.Or(map[string]string{"amd64": "aarch64"}[runtime.GOARCH], "x86_64")

// TestDaemonUnusable checks the message and the hint for each reason why a daemon cannot be used.
func TestDaemonUnusable(t *testing.T) {
	with := func(path string, say func(http.ResponseWriter, *http.Request)) map[string]func(http.ResponseWriter, *http.Request) {
		says := healthyHandlers()
		says[path] = say
		return says
	}
	rewrite := func(old, new string) map[string]func(http.ResponseWriter, *http.Request) {
		return with("GET /info", saying(strings.Replace(anInfo, old, new, 1)))
	}
	for name, test := range map[string]struct {
		says          map[string]func(http.ResponseWriter, *http.Request)
		change        func(*Options)
		message, hint string
	}{
		"nonsense":        {with("GET /version", saying("<html>")), nil, "answer is invalid", "systemctl"},
		"another service": {with("GET /version", saying("{}")), nil, "is not Docker", "find out which program listens"},
		"an error":        {with("GET /info", failing(500, "broken")), nil, "broken", "doctor"},
		"windows":         {rewrite("linux", "windows"), nil, "containers for windows", "Linux"},
		"no memory limit": {rewrite(`"MemoryLimit":true`, `"MemoryLimit":false`), nil, "cannot limit the memory", "control groups"},
		"no seccomp":      {rewrite("name=seccomp", "name=apparmor"), nil, "system calls", "seccomp"},
		"no such runtime": {healthyHandlers(), func(o *Options) { o.Runtime = "kata" }, `no runtime "kata"`, "runsc install"},
		"strict":          {healthyHandlers(), func(o *Options) { o.Strict = true }, "gVisor", "runsc install"},
		"no ELF":          {healthyHandlers(), func(o *Options) { o.Guest = []string{"daemon_test.go", "guest"} }, "not a program for Linux", "docker: {guest:"},
		"another machine": {rewrite(`"OSType"`, `"Architecture":"`+foreignArchitecture+`","OSType"`), nil, "another processor", "docker: {guest:"},
		"a tag":           {healthyHandlers(), func(o *Options) { o.Images = map[string]string{"python": "python:3.12"} }, "has no digest", "@sha256:"},
		"far away":        {healthyHandlers(), func(o *Options) { o.Host = "tcp://192.0.2.1:2375" }, "another machine", "unix:///"},
		"nobody there":    {healthyHandlers(), func(o *Options) { o.Host = "unix:///nonexistent/docker.sock" }, "is not running", "systemctl start docker"},
	} {
		t.Run(name, func(t *testing.T) {
			o := startFakeDaemon(t, test.says)
			if test.change != nil {
				test.change(&o)
			}
			b := New(o)
			defer b.Close()
			e := b.Capabilities().Unavailable
			if e == nil || e.Kind != core.KindSandboxUnavailable || !strings.Contains(e.Message, test.message) || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("%v (%s)", e, core.AsError(e).Hint)
			}
		})
	}
}

// TestContainerRefused checks that a container that cannot be created or started gives an error with a hint and is
// removed.
func TestContainerRefused(t *testing.T) {
	for name, test := range map[string]struct {
		path          string
		say           func(http.ResponseWriter, *http.Request)
		message, hint string
		removed       bool
	}{
		"disk full":       {"POST /images/create", saying(`{"error":"write /x: no space left on device"}`), "disk of Docker is full", "docker system", false},
		"cannot create":   {"POST /containers/create", failing(500, "no can do"), "no can do", "doctor", false},
		"cannot attach":   {"POST /containers/c1/attach", failing(500, "no streams"), "no streams", "doctor", true},
		"cannot start":    {"POST /containers/c1/start", failing(500, "OCI runtime create failed"), "OCI runtime", "doctor", true},
		"dies meanwhile":  {"POST /containers/c1/start", func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) }, "", "", true},
		"says nonsense":   {"POST /containers/create", saying("{"), "answer is invalid", "", false},
		"streams nothing": {"", nil, "did not become ready", "doctor", true},
	} {
		t.Run(name, func(t *testing.T) {
			says := healthyHandlers()
			removed, started := make(chan bool, 16), make(chan bool, 1)
			says["DELETE /containers/c1"] = func(http.ResponseWriter, *http.Request) { removed <- true }
			says["POST /containers/c1/attach"] = func(w http.ResponseWriter, _ *http.Request) {
				conn, rw, _ := w.(http.Hijacker).Hijack()
				_, _ = rw.WriteString("HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n")
				_ = rw.Flush()
				_ = conn.Close()
			}
			says["POST /containers/c1/start"] = func(http.ResponseWriter, *http.Request) { started <- true }
			says["POST /containers/c1/wait"] = func(w http.ResponseWriter, r *http.Request) {
				late := len(started) > 0 // then the container may have gone before, and Docker waits without end
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				select {
				case <-started:
					if late {
						t.Error("asked when it may be too late")
					}
				case <-removed:
				case <-r.Context().Done():
				}
				removed <- true
				fmt.Fprint(w, `{"StatusCode":1}`)
			}
			if test.path != "" {
				says[test.path] = test.say
			}
			daemon := newBackend(startFakeDaemon(t, says))
			daemon.asking = testenv.Patience
			b := daemon.openPool()
			_, err := b.Prepare(t.Context(), sandbox.SandboxSpec{Runtime: quickjs})
			if e := core.AsError(err); err == nil || e.Kind != core.KindSandboxUnavailable || e.Hint == "" || !strings.Contains(e.Message, test.message) || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("%v (%s)", err, core.AsError(err).Hint)
			}
			if err := b.Close(); err != nil {
				t.Error(err)
			}
			if test.removed && len(removed) == 0 {
				t.Error("the container is left")
			}
		})
	}
}

// TestDaemonHangs checks that Capabilities returns an error, instead of blocking, if the daemon does not respond.
func TestDaemonHangs(t *testing.T) {
	t.Parallel()
	says := healthyHandlers()
	done := make(chan struct{})
	defer close(done)
	says["GET /version"] = func(http.ResponseWriter, *http.Request) { <-done }
	b := newBackend(startFakeDaemon(t, says))
	b.answering = 50 * time.Millisecond
	if e := b.Capabilities().Unavailable; e == nil || !strings.Contains(e.Message, "does not answer") || !strings.Contains(e.Hint, "restart") {
		t.Errorf("Unavailable is %v, want an error that says that the daemon does not answer", e)
	}
	if err := b.closeBackend(); err != nil {
		t.Error(err)
	}
}

// TestHardened checks that the API request for a container sets every restriction, such as no network and no
// capabilities.
func TestHardened(t *testing.T) {
	b := newBackend(Options{Dir: t.TempDir()})
	c, err := b.containerRequest(&dockerDaemon{swap: true}, &guestImage{runtime: quickjs}, "x")
	if err != nil {
		t.Fatal(err)
	}
	h := c.HostConfig
	if !h.ReadonlyRootfs || h.Privileged || h.NetworkMode != "none" || !c.NetworkDisabled || h.IpcMode != "none" || len(h.CapDrop) != 1 || h.CapDrop[0] != "ALL" || c.User != "65534:65534" ||
		h.Memory <= 0 || h.MemorySwap != h.Memory || h.NanoCpus <= 0 || h.PidsLimit <= 0 || h.LogConfig["Type"] != "none" || !h.AutoRemove || len(c.Env) != 0 || !c.StdinOnce || c.StopTimeout < 5 {
		t.Errorf("%+v", c)
	}
	if len(h.SecurityOpt) != 2 || h.SecurityOpt[0] != "no-new-privileges" || !strings.HasPrefix(h.SecurityOpt[1], "seccomp={") {
		t.Errorf("%.60q", h.SecurityOpt)
	}
	data, err := json.Marshal(c)
	if err != nil || bytes.Contains(data, []byte("Binds")) || bytes.Contains(data, []byte("Devices")) {
		t.Errorf("%v %s", err, data)
	}
}

// TestDemuxStreams checks that demuxStreams splits a container's output into its streams and returns an error for
// invalid data.
func TestDemuxStreams(t *testing.T) {
	frame := func(stream byte, text string) string {
		return string(binary.BigEndian.AppendUint32([]byte{stream, 0, 0, 0}, uint32(len(text)))) + text
	}
	var out, stderr bytes.Buffer
	err := demuxStreams(bufio.NewReader(strings.NewReader(frame(1, "a")+frame(2, "oh")+frame(1, "")+frame(1, "b")+"\x01\x00")), &out, &stderr)
	if err != io.EOF || out.String() != "ab" || stderr.String() != "oh" {
		t.Errorf("%v %q %q", err, &out, &stderr)
	}
	if err := demuxStreams(bufio.NewReader(strings.NewReader("HTTP/1.1 200 OK")), &out, &stderr); err == io.EOF || err == nil {
		t.Errorf("nonsense: %v", err)
	}
}

// TestOutputAfterEnd checks that the last output of a container arrives even if the daemon reports the container's end
// before it sends that output.
func TestOutputAfterEnd(t *testing.T) {
	says := healthyHandlers()
	says["POST /containers/c1/wait"] = saying(`{"StatusCode":0}`)
	a, known := findDaemon(startFakeDaemon(t, says).Host)
	if known != nil {
		t.Fatal(known)
	}
	near, far := net.Pipe()
	c := &guestContainer{daemon: &dockerDaemon{api: newAPI(a)}, id: "c1", conn: near, code: -1, ended: make(chan struct{}), gone: make(chan struct{})}
	c.waitRemoved(make(chan struct{}))
	go func() {
		_, _ = far.Write([]byte("\x01\x00\x00\x00\x00\x00\x00\x04late"))
		_ = far.Close()
	}()
	var out bytes.Buffer
	if _ = demuxStreams(bufio.NewReader(near), &out, io.Discard); out.String() != "late" || c.code != 0 {
		t.Errorf("output %q and exit code %d, want late and 0", &out, c.code)
	}
}

// TestFindDaemon checks where the daemon's address is taken from: first the settings, then the environment, then the
// current context of the docker command.
func TestFindDaemon(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("DOCKER_CONFIG", "")
	t.Setenv("DOCKER_CONTEXT", "")
	t.Setenv("DOCKER_HOST", "")
	write := func(name, text string) {
		file := filepath.Join(home, ".docker", name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("config.json", `{"currentContext":"colima"}`)
	write("contexts/meta/f24fd3749c1368328e2b149bec149cb6795619f244c5b584e844961215dadd16/meta.json", `{"Endpoints":{"docker":{"Host":"unix:///c.sock"}}}`)
	if a, err := findDaemon(""); err != nil || a.path != "/c.sock" {
		t.Errorf("context: %v %v", a, err)
	}
	t.Setenv("DOCKER_HOST", "unix:///e.sock")
	if a, err := findDaemon(""); err != nil || a.path != "/e.sock" {
		t.Errorf("environment: %v %v", a, err)
	}
	if a, err := findDaemon("tcp://127.0.0.1:2375"); err != nil || a.network != "tcp" {
		t.Errorf("settings: %v %v", a, err)
	}
	for _, bad := range []string{"ssh://x", "tcp://example.com:2375", "docker.sock", "unix://relative"} {
		if _, err := findDaemon(bad); err == nil || err.Hint == "" {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestOrphans checks that only containers of dead engines on this machine count as orphans.
func TestOrphans(t *testing.T) {
	l := newLife(t.TempDir())
	if err := l.lockFile(); err != nil {
		t.Fatal(err)
	}
	change := func(key, value string) map[string]string {
		labels := l.containerLabels()
		labels[labelProcess] = "1 1"
		labels[key] = value
		return labels
	}
	if isOrphan(change("x", "")) {
		t.Error("an engine that lives is taken for dead")
	}
	if !isDeadEngine(l.filePath() + "0") {
		t.Error("a file that is gone is taken for locked")
	}
	for name, labels := range map[string]map[string]string{"of another machine": change(labelMachine, "elsewhere"), "without a file": change(labelLock, ""), "with another file": change(labelLock, "/etc/passwd")} {
		if isOrphan(labels) {
			t.Errorf("one %s is taken for an orphan", name)
		}
	}
	alive := l.containerLabels()
	l.unlockFile()
	if !isOrphan(change("x", "")) {
		t.Error("an engine that has died is taken for alive")
	}
	if strings.Contains(alive[labelProcess], " ") && isOrphan(alive) {
		t.Error("one whose process is there is taken for an orphan")
	}
	if hasDeadEngines(l.dir) {
		t.Error("an engine that has ended has left something")
	}
}

// TestBeginBesideOthers checks that an engine that is just starting does not count as dead, even if other engines look
// for dead engines in the same folder at that moment.
func TestBeginBesideOthers(t *testing.T) {
	dir, done := t.TempDir(), make(chan struct{})
	var looking sync.WaitGroup
	defer looking.Wait()
	defer close(done)
	for range 4 {
		looking.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					hasDeadEngines(dir)
				}
			}
		})
	}
	for range 2000 {
		l := newLife(dir)
		if err := l.lockFile(); err != nil {
			t.Fatal(err)
		}
		if isDeadEngine(l.filePath()) {
			t.Fatal("an engine that lives is taken for dead")
		}
		l.unlockFile()
	}
}

// TestRemoveLooksTwice checks that removeContainer tries again if the daemon responds with 404 only because the
// container has no process to kill.
func TestRemoveLooksTwice(t *testing.T) {
	says := healthyHandlers()
	asked := 0
	says["DELETE /containers/c1"] = func(w http.ResponseWriter, _ *http.Request) {
		if asked++; asked < 3 {
			failing(404, "Cannot kill process (pid=7) with signal 9: no such process.")(w, nil)
		}
	}
	says["GET /containers/c1/json"] = saying("{}")
	a, known := findDaemon(startFakeDaemon(t, says).Host)
	if known != nil {
		t.Fatal(known)
	}
	if err := removeContainer(t.Context(), newAPI(a), "c1"); err != nil || asked != 3 {
		t.Errorf("%v after %d requests", err, asked)
	}
}
