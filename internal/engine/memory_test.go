package engine_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/engine"
)

const (
	groupMemory    = 512 << 20 // memory limit of the engine's control group, in bytes
	restingMemory  = 150 << 20 // bytes that the engine may use once the results are gone
	hostileServers = 8
	// maxAddedDelay limits the delay, in milliseconds, that calls of hostile servers may add to calls of a healthy
	// server at the 95th percentile. It leaves room for time slices of other processes. Only tests before a
	// release check it.
	maxAddedDelay = 5

	hostileCalls = 64 // concurrent calls
)

// floodPlan says how many results the hostile servers return, and how large the results are.
type floodPlan struct {
	Home, Group, URL string
	MB, Rounds       int
	Alone            int  // calls to the healthy server before the flood
	Measures         bool // whether the healthy server is called all the time, instead of once for each large result
}

// floodMeasurements holds the measurements that the engine under test prints when it has made all calls.
type floodMeasurements struct {
	Limit         int64
	Answered      int
	Failed        []string
	Alone, Beside []float64 // durations of calls to the healthy server, in milliseconds
	Peak          int64     // in bytes
}

// TestManyLargeAnswers checks that an engine survives 64 large results at the same time. Each result has an allowed
// size, but the control group of the engine has too little memory for all of them. The engine must answer all calls,
// serve another server at the same time, and give the memory back.
func TestManyLargeAnswers(t *testing.T) {
	f := floodPlan{Home: t.TempDir(), Group: memoryGroup(t, groupMemory), MB: 2, Rounds: 1, Alone: 20}
	if testenv.Full() {
		f.MB, f.Rounds, f.Alone, f.Measures = 15, 20, 5000, true
	}
	servers := httptest.NewServer(overHTTP(f.MB))
	t.Cleanup(servers.Close)
	f.URL = servers.URL
	c, in, out := startFlooded(t, f)
	var told floodMeasurements
	if err := json.NewDecoder(out).Decode(&told); err != nil {
		_ = in.Close()
		t.Fatalf("the engine has not survived: %v, %v", err, c.Wait())
	}
	testenv.WaitUntil(t, fmt.Sprintf("the engine has less than %d MB", restingMemory>>20), func() bool { return memoryOf(c.Process.Pid, "VmRSS:") < restingMemory })
	_ = in.Close()
	if err := c.Wait(); err != nil {
		t.Errorf("the engine ended: %v", err)
	}
	if want := hostileCalls * f.Rounds; told.Answered != want || len(told.Failed) > 0 {
		slices.Sort(told.Failed)
		t.Errorf("%d of %d calls answered; %d failed: %.1000q", told.Answered, want, len(told.Failed), slices.Compact(told.Failed))
	}
	if told.Limit != groupMemory/2 {
		t.Errorf("the engine means to keep to %d MB, want half of the control group", told.Limit>>20)
	}
	alone, beside := percentile(told.Alone, 95), percentile(told.Beside, 95)
	t.Logf("%d MB at most; a call to the healthy server took %.2f ms and %.2f ms (p50, p95) alone, %.2f ms and %.2f ms beside (%d calls)",
		told.Peak>>20, percentile(told.Alone, 50), alone, percentile(told.Beside, 50), beside, len(told.Beside))
	if most := max(1.2*alone, alone+maxAddedDelay); testenv.Full() && beside > most {
		t.Errorf("beside the hostile servers p95 is %.2f ms, want at most %.2f ms", beside, most)
	}
}

func percentile(all []float64, n int) float64 {
	slices.Sort(all)
	return all[len(all)*n/100]
}

// startFlooded starts the engine as a process of its own.
func startFlooded(t *testing.T, f floodPlan) (c *exec.Cmd, in io.Closer, out io.Reader) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	how, _ := json.Marshal(f)
	c = exec.Command(self, floodedEngine, string(how))
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c, stdin, stdout
}

// memoryGroup creates a control group with a memory limit, in bytes, and returns its folder. It skips the test if
// that is not allowed.
func memoryGroup(t *testing.T, limit int64) (dir string) {
	t.Helper()
	groups, _ := os.ReadFile("/proc/self/cgroup")
	for _, way := range []struct{ line, mount, file string }{{":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes"}, {"0::", "/sys/fs/cgroup", "memory.max"}} {
		_, rest, ok := strings.Cut(string(groups), way.line)
		own, _, _ := strings.Cut(rest, "\n")
		dir = filepath.Join(way.mount, own, fmt.Sprintf("retort-test-%d", os.Getpid()))
		if !ok || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() { _ = os.Remove(dir) })
		if os.WriteFile(filepath.Join(dir, way.file), strconv.AppendInt(nil, limit, 10), 0) == nil {
			_ = os.WriteFile(filepath.Join(dir, "memory.swap.max"), []byte("0"), 0)
			return dir
		}
	}
	t.Skip("this process may not make a control group with a limit of memory")
	return ""
}

// memoryOf returns the size in bytes of the memory that the field what of a process's status in /proc gives.
func memoryOf(pid int, what string) int64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, rest, ok := strings.Cut(string(status), what)
	if !ok {
		return 1 << 62
	}
	n, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return n << 10
}

// resultForms lists the forms in which hostile servers return their results.
var resultForms = []string{"text", "bytes", "log", "structured"}

// overHTTP returns an HTTP server with the tool get. It generates the server's results in advance, not during the
// calls.
func overHTTP(mb int) http.HandlerFunc {
	made := map[string][]byte{}
	for _, as := range resultForms {
		var b bytes.Buffer
		out := bufio.NewWriter(&b)
		_ = largeArguments{As: as, MB: mb}.answer(out, json.RawMessage("0"))
		_ = out.Flush()
		made[as] = bytes.TrimPrefix(b.Bytes(), []byte(`{"jsonrpc":"2.0","id":0`))
	}
	return func(w http.ResponseWriter, r *http.Request) { answerOverHTTP(w, r, made) }
}

// answerOverHTTP answers one HTTP request to a hostile server. The results of the tool get were generated in advance
// and are in made.
func answerOverHTTP(w http.ResponseWriter, r *http.Request, made map[string][]byte) {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Arguments largeArguments }
	}
	if r.Method != http.MethodPost || json.NewDecoder(r.Body).Decode(&m) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if m.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch m.Method {
	case "initialize":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"large","version":"1"}}}`, m.ID)
	case "tools/list":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"get","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}}`, m.ID)
	case "tools/call":
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s`, m.ID)
		_, _ = w.Write(made[m.Params.Arguments.As])
	default:
		fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}`, m.ID)
	}
}

// floodedEngine is the argument that makes this program an engine that calls hostile servers.
const floodedEngine = "flooded-engine"

func serveFloodedEngine(how string) {
	var f floodPlan
	if err := json.Unmarshal([]byte(how), &f); err != nil {
		panic(err)
	}
	if err := runFlood(f); err != nil {
		panic(err)
	}
}

// runFlood opens an engine, makes the calls and prints the measurements. It returns when standard input ends.
func runFlood(f floodPlan) error {
	var told floodMeasurements
	if err := os.WriteFile(filepath.Join(f.Group, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := engine.Config{NoFiles: true, Reserve: engine.ReserveNone, Home: f.Home, Keys: f.Home, Settings: "maxExecutionTime: 1h\n", Servers: []engine.Server{{Name: "good", Command: self, Args: []string{largeServer}}}}
	for i := range hostileServers {
		c.Servers = append(c.Servers, engine.Server{Name: fmt.Sprintf("evil%d", i), URL: f.URL, CallTimeout: time.Hour})
	}
	background := context.Background()
	e, err := engine.Open(background, c)
	if err != nil {
		return err
	}
	defer e.Close()
	e.LimitMemory()
	e.ShareProcessors()
	told.Limit = debug.SetMemoryLimit(-1)
	e.WaitForServers(background)
	for range f.Alone {
		if err := told.callHealthy(e, &told.Alone); err != nil {
			return err
		}
	}
	answered, over := make(chan struct{}, hostileCalls*f.Rounds), make(chan struct{})
	go func() { defer close(over); told.flood(e, f, answered) }()
	for {
		if !f.Measures {
			select {
			case <-answered:
			case <-over:
			}
		}
		if err := told.callHealthy(e, &told.Beside); err != nil {
			return err
		}
		select {
		case <-over:
			told.Peak = memoryOf(os.Getpid(), "VmHWM:")
			_ = json.NewEncoder(os.Stdout).Encode(told)
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		default:
		}
	}
}

// callHealthy calls the healthy server once and adds the duration of the call to *took.
func (told *floodMeasurements) callHealthy(e *engine.Engine, took *[]float64) error {
	o := e.Call(context.Background(), engine.Request{Session: "good"}, "good.get", json.RawMessage(`{"as":"text","mb":0}`))
	if o.Status != core.StatusOK {
		return errors.Join(errors.New("the healthy server's call failed"), o.Error)
	}
	*took = append(*took, o.Stats.DurationMS)
	return nil
}

// flood makes all calls to the hostile servers. After each call it sends to the channel answered, which needs a
// buffer for all calls, so that flood never waits for a receiver.
func (told *floodMeasurements) flood(e *engine.Engine, f floodPlan, answered chan<- struct{}) {
	var mu sync.Mutex
	for range f.Rounds {
		var all sync.WaitGroup
		for i := range hostileCalls {
			all.Go(func() {
				arguments := fmt.Sprintf(`{"as":%q,"mb":%d}`, resultForms[i/hostileServers%len(resultForms)], f.MB)
				session := engine.Request{Session: fmt.Sprintf("s%d", i)}
				o := e.Call(context.Background(), session, fmt.Sprintf("evil%d.get", i%hostileServers), json.RawMessage(arguments))
				answered <- struct{}{}
				mu.Lock()
				defer mu.Unlock()
				if o.Status == core.StatusOK {
					told.Answered++
				} else {
					told.Failed = append(told.Failed, string(o.Status)+": "+o.Error.Message)
				}
			})
		}
		all.Wait()
	}
}
