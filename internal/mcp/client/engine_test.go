//go:build unix

package client

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"retort/internal/base/reaper"
	"retort/internal/devel/testenv"
)

// engine runs in a child process: it starts three servers with a pool and then waits to be killed.
func engine() {
	servers := []ServerSpec{hostileServer("grandchildren"), hostileServer("ignore term"), hostileServer("deaf")}
	for i := range servers {
		servers[i].Name = fmt.Sprint(i)
		servers[i].Env = map[string]string{processMarker: os.Getenv(processMarker)}
	}
	p := New(servers, Options{Processes: reaper.New(os.Args[0], "reaper")})
	p.ListAll(context.Background(), func(_ string, _ ToolListing, err error) {
		if err != nil {
			fmt.Println(err)
		}
	})
	fmt.Println("ready")
	select {}
}

// TestNothingOutlivesTheEngine checks that killing the engine with SIGKILL also ends its servers and every process
// that they have started.
func TestNothingOutlivesTheEngine(t *testing.T) {
	mark := fmt.Sprintf("%d-engine", os.Getpid())
	cmd := exec.Command(os.Args[0], "engine")
	cmd.Env = append(os.Environ(), processMarker+"="+mark)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		t.Errorf("engine said %q", line)
	}
	testenv.WaitUntil(t, "all 7 processes run: the engine, 3 servers, sh and 2 sleep", func() bool { return len(markedProcesses(mark)) == 7 })
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	checkProcesses(t, mark)
}
