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

	"retort/internal/core"
	"retort/internal/devel/testenv"
	"retort/internal/mcp/client/oauth"
	"retort/internal/mcp/client/oauth/oauthtest"
)

// victim and lastStep are environment variables of the child process. The child is this test binary. It renews an
// expired token and is killed while it does so.
const (
	victim   = "RETORT_TEST_REFRESH"   // address of the server
	lastStep = "RETORT_TEST_LAST_STEP" // step of the refresh at which the process kills itself
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
			select {} // until the signal arrives
		}
	}})
	_, err := c.Authorization(context.Background())
	fmt.Println(steps, err)
}

// refresher renews the stored token in child processes, which the test kills before they have finished.
type refresher struct {
	*bench
	// at says when the server kills the process: at the "arrival" of the request, before the "answer", or "" for
	// never.
	at   atomic.Value
	kill atomic.Value // a func() that kills the current process
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

// arrives kills the process when its request has arrived completely, before the server handles it.
func (r *refresher) arrives(_ http.ResponseWriter, req *http.Request) bool {
	if req.URL.Path == "/token" && r.at.Load() == "arrival" {
		body, _ := io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
		r.kill.Load().(func())()
	}
	return false
}

// refresh renews the token in a child process and returns what the process printed. The process is killed with
// SIGKILL at position: at the step with that number, when its request has arrived at the server ("arrival"), or
// before the server answers ("answer"). For "" it is not killed. refresh waits until the server has handled the
// request of the process.
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
		testenv.WaitUntil(r.t, "the server has handled the request of the killed process", func() bool { return r.Count("token refresh_token") == before+1 })
		r.at.Store("")
	}
	return out.String()
}

// TestKilledRefresh checks what remains of a login if the process is killed at any step of a refresh, at a server
// that rotates refresh tokens. If the server accepts the old token until the new one is used, the login must survive.
// Otherwise the login must still work, or the person must be told to log in again after at most one more request.
func TestKilledRefresh(t *testing.T) {
	for name, grace := range map[string]bool{"grace": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			r := newRefresher(t, grace)
			r.mustLogin(r.client())
			r.age(-2 * time.Hour)
			var steps int
			if said := r.refresh(""); said == "" || r.Count("token refresh_token") != 1 {
				t.Fatalf("the token was not renewed: %q", said)
			} else if _, err := fmt.Sscan(said, &steps); err != nil || steps < 10 {
				t.Fatalf("%q does not start with a number of steps, or with fewer than 10", said)
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
			t.Logf("%d kills, %d lost logins", len(positions), lost)
			if !grace && lost == 0 {
				t.Error("no kill came after the server's answer and before the token was stored")
			}
		})
	}
}

// isKept reports whether the login survived the kill at position. If it did not, isKept checks that
// the client reports it as lost, and logs in again.
func (r *refresher) isKept(position string, grace bool) bool {
	r.t.Helper()
	before := r.Count("token refresh_token")
	c := r.client()
	value, err := c.Authorization(r.t.Context())
	if err == nil && value != "" {
		if err := call(r.t, r.pool(c), "hello"); err != nil {
			r.t.Errorf("killed at %s: there is a login, but it does not work: %v", position, err)
		}
		return true
	}
	if grace || !errors.Is(err, core.ErrLogin) || !strings.Contains(core.AsError(err).Hint, "retort auth login s") {
		r.t.Fatalf("killed at %s: %v", position, err)
	}
	for range 3 { // the loss is recorded, so the server is not asked again
		if _, again := c.Authorization(r.t.Context()); !errors.Is(again, core.ErrLogin) {
			r.t.Errorf("killed at %s: %v", position, again)
		}
	}
	if asked := r.Count("token refresh_token") - before; asked > 1 {
		r.t.Errorf("killed at %s: %d refresh requests for a lost login, want at most 1", position, asked)
	}
	r.mustLogin(r.client())
	return false
}

// age makes the stored token look older or younger: it adds a duration to all times in the token.
func (b *bench) age(by time.Duration) {
	b.t.Helper()
	if err := oauth.Age(oauth.Open(b.dir, key), "s", b.URL, by); err != nil {
		b.t.Fatal(err)
	}
}
