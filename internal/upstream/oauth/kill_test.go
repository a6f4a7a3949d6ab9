package oauth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"retort/internal/run"
	"retort/internal/upstream/oauth"
	"retort/internal/upstream/oauth/oauthtest"
)

// As another process, which is killed, this test binary renews a token that has ended.
const victim = "RETORT_TEST_REFRESH"

func TestMain(m *testing.M) {
	address := os.Getenv(victim)
	if address == "" {
		os.Exit(m.Run())
	}
	c := oauth.New(oauth.Options{Server: "s", URL: address, Store: oauth.Open(os.Getenv("RETORT_TEST_DIR"), key)})
	fmt.Println("ready")
	_, _ = io.ReadFull(os.Stdin, make([]byte, 1))
	_, err := c.Authorization(context.Background())
	fmt.Println("done", err)
}

// killed renews the token in a process that ends with SIGKILL after a while; zero is never.
func (b *bench) killed(after time.Duration) time.Duration {
	b.t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), victim+"="+b.URL, "RETORT_TEST_DIR="+b.dir)
	in, _ := c.StdinPipe()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		b.t.Fatal(err)
	}
	_, _ = io.ReadFull(out, make([]byte, len("ready\n")))
	began := time.Now()
	_, _ = io.WriteString(in, "\n")
	if after > 0 {
		time.Sleep(after)
		_ = c.Process.Kill()
	}
	_, _ = io.ReadAll(out)
	_ = c.Wait()
	return time.Since(began)
}

// slowly answers token requests late, before and after the tokens have been made.
func slowly(w http.ResponseWriter, r *http.Request) bool {
	if r.URL.Path == "/token" {
		time.Sleep(15 * time.Millisecond)
	}
	return false
}

// Killed in the middle of a refresh at a server that rotates, at any moment: with a server that
// takes the former token until the new one is used, no login is lost. With one that does not, it
// is either there or a person is told to log in again, after one more request and no more.
func TestKilledRefresh(t *testing.T) {
	const kills = 30
	for name, grace := range map[string]bool{"grace": true, "none": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, oauthtest.Rules{Rotates: true, Grace: grace, Lasts: 3600, Hook: slowly, Change: func(doc string, _ map[string]any) {
				if doc == "token" {
					time.Sleep(15 * time.Millisecond)
				}
			}})
			b.mustLogin(b.client())
			old := func() { b.age(-2 * time.Hour) }
			old()
			takes := b.killed(0)
			lost, kept := 0, 0
			for n := range kills {
				old()
				b.killed(max(1, time.Duration(n)*takes*5/4/kills))
				time.Sleep(60 * time.Millisecond) // the server may still be at the request of the dead
				old()
				before := b.Count("token refresh_token")
				c := b.client()
				value, err := c.Authorization(t.Context())
				switch {
				case err == nil && value != "":
					if kept++; call(t, b.pool(c), "hello") != nil {
						t.Errorf("kill %d: the login is there, and does not work", n)
					}
				case grace || !errors.Is(err, run.ErrLogin) || !strings.Contains(run.AsError(err).Hint, "retort auth login s"):
					t.Fatalf("kill %d: %v", n, err)
				default:
					lost++
					for range 3 { // it is known, and nobody is asked again
						if _, again := c.Authorization(t.Context()); !errors.Is(again, run.ErrLogin) {
							t.Errorf("kill %d: %v", n, again)
						}
					}
					if asked := b.Count("token refresh_token") - before; asked > 1 {
						t.Errorf("kill %d: %d requests for a login that is lost", n, asked)
					}
					b.mustLogin(b.client())
				}
			}
			t.Logf("%d kills: %d logins kept, %d to be made again", kills, kept, lost)
		})
	}
}

// age makes the token that is kept one of another time.
func (b *bench) age(by time.Duration) {
	b.t.Helper()
	if err := oauth.Age(oauth.Open(b.dir, key), "s", b.URL, by); err != nil {
		b.t.Fatal(err)
	}
}
