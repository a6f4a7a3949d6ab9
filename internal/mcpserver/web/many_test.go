package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"retort/internal/mcpserver/web"
)

// heap is what is in use after everything that can go is gone, in bytes.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// A thousand principals have each their session, in bounded memory; nobody's is another's; and
// one who asks for more than its share keeps nobody waiting.
func TestThousandPrincipals(t *testing.T) {
	const principals = 1_000
	p := open(t, func(o *web.Options) {
		o.Authenticator = tokens{}
		o.Limits = web.Limits{Sessions: 2, Requests: 200, Connections: 8192, PerAddress: 8192}
	})
	as := func(i int) string { return fmt.Sprintf("Authorization: Bearer token-p%d", i) }
	before := heap()
	sessions := make([]string, principals)
	each(principals, func(i int) { sessions[i] = p.begin(as(i)) })
	if each := (heap() - before) / principals; each > 256<<10 {
		t.Errorf("%d KB for each principal", each>>10)
	}
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	each(principals, func(i int) {
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[i]); r.StatusCode != 200 {
			t.Errorf("p%d: %s", i, r.Status)
		}
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[(i+1)%principals]); r.StatusCode != 404 {
			t.Errorf("p%d in the session of another: %s", i, r.Status)
		}
	})
	greedy := make(chan struct{})
	var flood sync.WaitGroup
	for range 8 {
		flood.Go(func() {
			for {
				select {
				case <-greedy:
					return
				default:
					p.send("POST", "/mcp", ping, as(0), "Mcp-Session-Id: "+sessions[0])
				}
			}
		})
	}
	time.Sleep(200 * time.Millisecond)
	slowest := time.Duration(0)
	for i := 1; i < 50; i++ {
		began := time.Now()
		if r, _ := p.send("POST", "/mcp", ping, as(i), "Mcp-Session-Id: "+sessions[i]); r.StatusCode != 200 {
			t.Errorf("p%d: %s", i, r.Status)
		}
		slowest = max(slowest, time.Since(began))
	}
	if r, _ := p.send("POST", "/mcp", ping, as(0), "Mcp-Session-Id: "+sessions[0]); r.StatusCode != 429 {
		t.Errorf("the flood is answered: %s", r.Status)
	}
	close(greedy)
	flood.Wait()
	if slowest > 10*time.Second {
		t.Errorf("somebody waited %s", slowest)
	}
}

// each does something n times, some at once.
func each(n int, f func(i int)) {
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

// All sessions together have a bound, too.
func TestAllSessions(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Authenticator, o.Limits = tokens{}, web.Limits{AllSessions: 2} })
	p.begin("Authorization: Bearer token-a")
	p.begin("Authorization: Bearer token-b")
	if r, text := p.send("POST", "/mcp", hello, "Authorization: Bearer token-c"); r.StatusCode != 503 || r.Header.Get("Retry-After") == "" {
		t.Errorf("%s %s", r.Status, text)
	}
}

// Whoever opens connections without end from one address gets its share of them, and others are
// answered.
func TestConnectionsPerAddress(t *testing.T) {
	p := open(t, func(o *web.Options) { o.Limits = web.Limits{Connections: 100, PerAddress: 3} })
	ours := make([]io.Closer, 3)
	for i := range ours {
		ours[i] = p.dial()
	}
	time.Sleep(100 * time.Millisecond)
	more := p.dial()
	_ = more.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := more.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("a fourth connection stays: %v", err)
	}
	_ = ours[0].Close()
	for late := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		again := p.dial()
		_, _ = io.WriteString(again, "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
		if line, _ := bufio.NewReader(again).ReadString('\n'); strings.HasPrefix(line, "HTTP/1.1 200") {
			return
		}
		if time.Now().After(late) {
			t.Fatal("no connection after one has ended")
		}
	}
}

// Tokens that do not count are told of: the first of an address at once, a flood as a number.
func TestRefusals(t *testing.T) {
	var mu sync.Mutex
	var told []web.Refusal
	p := open(t, func(o *web.Options) {
		o.Authenticator = tokens{}
		o.Refused = func(r web.Refusal) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, r)
		}
	})
	each(500, func(i int) {
		if r, _ := p.send("POST", "/mcp", hello, fmt.Sprintf("Authorization: Bearer guess-%d", i)); r.StatusCode != http.StatusUnauthorized {
			t.Error(r.Status)
		}
	})
	p.send("POST", "/mcp", hello) // has no token, and has not tried any
	p.send("POST", "/mcp", hello, "Authorization: Bearer token-ann")
	p.stop()
	mu.Lock()
	defer mu.Unlock()
	if len(told) < 2 || len(told) > 4 || told[0] != (web.Refusal{From: "127.0.0.1", Why: "the token does not count", Count: 1}) {
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
