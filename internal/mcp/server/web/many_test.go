package web_test

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"retort/internal/devel/testenv"
	"retort/internal/mcp/server/web"
)

// heapBytes returns the number of bytes in use on the heap after garbage collection.
func heapBytes() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestThousandPrincipals checks that a thousand principals have separate sessions in bounded memory, and that a
// principal that exceeds its limits does not delay the others.
func TestThousandPrincipals(t *testing.T) {
	const principals = 1_000
	p := open(t, func(o *web.Options) {
		o.Authenticator = tokens{}
		o.Limits = web.ListenerLimits{Sessions: 2, Requests: 200, Connections: 8192, PerAddress: 8192}
	})
	as := func(i int) string { return fmt.Sprintf("Authorization: Bearer token-p%d", i) }
	before := heapBytes()
	sessions := make([]string, principals)
	eachConcurrently(principals, func(i int) { sessions[i] = p.begin(as(i)) })
	if perPrincipal := (heapBytes() - before) / principals; perPrincipal > 256<<10 {
		t.Errorf("%d KB for each principal", perPrincipal>>10)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	eachConcurrently(principals, func(i int) {
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[i]); r.StatusCode != 200 {
			t.Errorf("p%d: %s", i, r.Status)
		}
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[(i+1)%principals]); r.StatusCode != 404 {
			t.Errorf("p%d in the session of another: %s", i, r.Status)
		}
	})
	greedy, refused := make(chan struct{}), make(chan struct{})
	refuse := sync.OnceFunc(func() { close(refused) })
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() {
			for {
				select {
				case <-greedy:
					return
				default:
					if r, _ := p.send("POST", "/mcp", ping, as(0), "Mcp-Session-Id: "+sessions[0]); r.StatusCode == http.StatusTooManyRequests {
						refuse()
					}
				}
			}
		})
	}
	testenv.Receive(t, refused, "a refusal of the flood")
	for i := 1; i < 50; i++ {
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[i]); r.StatusCode != 200 {
			t.Errorf("p%d: %s", i, r.Status)
		}
	}
	close(greedy)
	flood.Wait()
}

// eachConcurrently calls f for the numbers from 0 to n-1, distributed over 16 goroutines.
func eachConcurrently(n int, f func(i int)) {
	var all sync.WaitGroup
	at := make(chan int)
	for range 16 {
		all.Go(func() {
			for i := range at {
				f(i)
			}
		})
	}
	for i := range n {
		at <- i
	}
	close(at)
	all.Wait()
}

// TestAllSessions checks that the sessions of all principals together are bounded.
func TestAllSessions(t *testing.T) {
	t.Parallel()
	p := open(t, func(o *web.Options) { o.Authenticator, o.Limits = tokens{}, web.ListenerLimits{AllSessions: 2} })
	p.begin("Authorization: Bearer token-a")
	p.begin("Authorization: Bearer token-b")
	if r, text := p.send("POST", "/mcp", hello, "Authorization: Bearer token-c"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s", r.Status, text)
	}
}

// TestRefusals checks how requests with invalid tokens are reported: the first request of an address immediately, and
// later ones together, as a number.
func TestRefusals(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var told []web.RefusedLogins
	p := open(t, func(o *web.Options) {
		o.Authenticator = tokens{}
		o.Refused = func(r web.RefusedLogins) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r)
		}
	})
	eachConcurrently(500, func(i int) {
		if r, _ := p.send("POST", "/mcp", hello, fmt.Sprintf("Authorization: Bearer guess-%d", i)); r.StatusCode != http.StatusUnauthorized {
			t.Error(r.Status)
		}
	})
	p.send("POST", "/mcp", hello) // has no token, and has not tried any
	p.send("POST", "/mcp", hello, "Authorization: Bearer token-ann")
	p.stop()
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 2 || len(told) > 4 || told[0] != (web.RefusedLogins{From: "127.0.0.1", Why: "the token is not valid", Count: 1}) {
		t.Fatalf("%+v", told)
	}
	all := 0
	for _, r := range told {
		all += r.Count
	}
	if all != 500 {
		t.Errorf("%d of 500 were told of", all)
	}
}
