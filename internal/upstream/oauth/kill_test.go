package oauth_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"retort/internal/run"
	"retort/internal/testenv"
	"retort/internal/upstream/oauth"
	"retort/internal/upstream/oauth/oauthtest"
)

// As another process, which is killed, this test binary renews a token that has ended.
const (
	victim   = "RETORT_TEST_REFRESH"   // the address of the server
	lastStep = "RETORT_TEST_LAST_STEP" // the step of the refresh at which the process kills itself
)

func TestMain(m *testing.M) {
	address := os.Getenv(victim)
	if address == "" {
		os.Exit(m.Run())
	}
	steps, last := 0, 0
	_, _ = fmt.Sscan(os.Getenv(lastStep), &last)
	c := oauth.New(oauth.Options{Server: "s", URL: address, Store: oauth.Open(os.Getenv("RETORT_TEST_DIR"), key), Secret: func(string, string) {
		if steps++; steps == last {
			self, _ := os.FindProcess(os.Getpid())
			_ = self.Kill()
			select {} // for the moment until the signal arrives
		}
	}})
	_, err := c.Authorization(context.Background())
	fmt.Println(steps, err)
}

// refresher renews the kept token in other processes, which are killed.
type refresher struct {
	*bench
	at   atomic.Value // where the server kills the process: "arrival", "answer", or "" for nowhere
	kill atomic.Value // func() that kills the process
}

func newRefresher(t *testing.T, grace bool) *refresher {
	r := &refresher{}
	r.at.Store("")
	r.bench = newBench(t, oauthtest.Rules{Rotates: true, Grace: grace, Lasts: 3600, Hook: r.arrives, Change: func(doc string, _ map[string]any) {
		if doc == "token" && r.at.Load() == "answer" {
			r.kill.Load().(func())()
		}
	}})
	return r
}

// arrives kills the process whose whole request has come, before it is looked at.
func (r *refresher) arrives(_ http.ResponseWriter, req *http.Request) bool {
	if req.URL.Path == "/token" && r.at.Load() == "arrival" {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.kill.Load().(func())()
	}
	return false
}

// refresh renews the token in a process that ends with SIGKILL at a step of its own, at a place in
// the server, or, for "", not at all. It returns what the process says, when the server has done
// what it was asked for.
func (r *refresher) refresh(position string) (said string) {
	r.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victim+"="+r.URL, "RETORT_TEST_DIR="+r.dir, lastStep+"="+position)
	var out bytes.Buffer
	c.Stdout = &out
	before, serving := r.Count("token refresh_token"), position == "arrival" || position == "answer"
	if err := c.Start(); err != nil {
		r.t.Fatal(err)
	}
	if serving {
		r.kill.Store(func() { _ = c.Process.Kill() })
		r.at.Store(position)
	}
	_ = c.Wait()
	if serving {
		testenv.WaitUntil(r.t, "the server has dealt with the request of the dead", func() bool { return r.Count("token refresh_token") == before+1 })
		r.at.Store("")
	}
	return out.String()
}

// Killed in the middle of a refresh at a server that rotates, at each of its steps: with a server
// that takes the former token until the new one is used, no login is lost. With one that does not,
// it is either there or a person is told to log in again, after one more request and no more.
func TestKilledRefresh(t *testing.T) {
	for name, grace := range map[string]bool{"grace": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			r := newRefresher(t, grace)
			r.mustLogin(r.client())
			r.age(-2 * time.Hour)
			var steps int
			if said := r.refresh(""); said == "" || r.Count("token refresh_token") != 1 {
				t.Fatalf("nothing was renewed: %q", said)
			} else if _, err := fmt.Sscan(said, &steps); err != nil || steps < 10 {
				t.Fatalf("%q has no number of steps, or few", said)
			}
			positions := []string{"arrival", "answer"}
			for n := range steps {
				positions = append(positions, strconv.Itoa(n+1))
			}
			lost := 0
			for _, position := range positions {
				r.age(-2 * time.Hour)
				if said := r.refresh(position); said != "" {
					t.Fatalf("the process was not killed at %s: %s", position, said)
				}
				r.age(-2 * time.Hour)
				if !r.isKept(position, grace) {
					lost++
				}
			}
			t.Logf("%d kills, %d logins to be made again", len(positions), lost)
			if !grace && lost == 0 {
				t.Error("no kill came between the server's answer and the disk")
			}
		})
	}
}

// isKept reports whether the login has outlived the kill at a position. It makes one that has not
// again, after it has seen that it is known to be lost.
func (r *refresher) isKept(position string, grace bool) bool {
	r.t.Helper()
	before := r.Count("token refresh_token")
	c := r.client()
	value, err := c.Authorization(r.t.Context())
	if err == nil && value != "" {
		if err := call(r.t, r.pool(c), "hello"); err != nil {
			r.t.Errorf("killed at %s: the login is there, and does not work: %v", position, err)
		}
		return true
	}
	if grace || !errors.Is(err, run.ErrLogin) || !strings.Contains(run.AsError(err).Hint, "retort auth login s") {
		r.t.Fatalf("killed at %s: %v", position, err)
	}
	for range 3 { // it is known, and nobody is asked again
		if _, again := c.Authorization(r.t.Context()); !errors.Is(again, run.ErrLogin) {
			r.t.Errorf("killed at %s: %v", position, again)
		}
	}
	if asked := r.Count("token refresh_token") - before; asked > 1 {
		r.t.Errorf("killed at %s: %d requests for a login that is lost", position, asked)
	}
	r.mustLogin(r.client())
	return false
}

// age makes the token that is kept one of another time.
func (b *bench) age(by time.Duration) {
	b.t.Helper()
	if err := oauth.Age(oauth.Open(b.dir, key), "s", b.URL, by); err != nil {
		b.t.Fatal(err)
	}
}
