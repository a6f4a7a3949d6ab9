//go:build unix

package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/core"
)

const discovered = `{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"resultType":"complete"}`

func acknowledgement(id json.RawMessage) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`, id)
}

// subscribableServer returns a dial function for a server of 2026-07-28 with the tool "t", whose description contains
// the version. listen handles the request for a subscription.
func subscribableServer(version *atomic.Int64, listen func(s *scripted, r request)) func(context.Context) (io.ReadWriteCloser, error) {
	return dialScripted(func(s *scripted) {
		s.on[methodDiscover] = func(s *scripted, r request) bool { s.reply(r, discovered); return true }
		s.on[methodList] = func(s *scripted, r request) bool {
			s.reply(r, `{"tools":[%s]}`, versionOf(version.Load()))
			return true
		}
		s.on[methodListen] = func(s *scripted, r request) bool { listen(s, r); return true }
	})
}

// silentSubscription represents a server that does not acknowledge a subscription immediately. The method change
// changes the tools without announcing that, and then sends the acknowledgement.
type silentSubscription chan func()

func (u silentSubscription) listen(s *scripted, r request) {
	u <- func() { s.line("%s", acknowledgement(r.ID)) }
}

func (u silentSubscription) change(version *atomic.Int64) {
	version.Store(2)
	(<-u)()
}

// TestConnectingAwaitsSubscription checks that the tools are listed only after the server has acknowledged the
// subscription, so that no change is missed. A server that does not react delays the connection once, by
// listenPatience.
func TestConnectingAwaitsSubscription(t *testing.T) {
	var version atomic.Int64
	held := make(silentSubscription, 1)
	for name, c := range map[string]struct {
		listen func(s *scripted, r request)
		took   time.Duration
		listed int64
	}{
		"acknowledged": {held.listen, 100 * time.Millisecond, 2},
		"refused":      {func(s *scripted, r request) { s.fail(r, -32601, "Method not found") }, 0, 1},
		"ended":        {func(s *scripted, r request) { s.reply(r, `{"resultType":"complete"}`) }, 0, 1},
		"silent":       {func(*scripted, request) {}, listenPatience, 1},
		"of another":   {func(s *scripted, _ request) { s.line("%s", acknowledgement(json.RawMessage("77"))) }, listenPatience, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				version.Store(1)
				p := inBubble(t, Options{Identify: identifyText}, ServerSpec{Name: "s", Dial: subscribableServer(&version, c.listen)})
				if c.listed == 2 {
					time.AfterFunc(c.took, func() { held.change(&version) })
				}
				began := time.Now()
				l, err := p.List(t.Context(), "s")
				if err != nil || len(l.Tools) != 1 || string(l.Tools[0]) != versionOf(c.listed) {
					t.Errorf("listed %s, %v, want version %d", l.Tools, err, c.listed)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				began = time.Now()
				mustCall(t, p, "s", "t")
				if took := time.Since(began); took != 0 {
					t.Errorf("a call over the same connection took %s", took)
				}
			})
		})
	}
}

// TestLateAcknowledgement checks that the tools are listed again if the server acknowledges the subscription only
// after listenPatience. A call that was meant for the earlier definition of a tool is then not sent.
func TestLateAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var version, changes atomic.Int64
		version.Store(1)
		held := make(silentSubscription, 1)
		p := inBubble(t, Options{Identify: identifyText, OnChange: func(string) { changes.Add(1) }}, ServerSpec{Name: "s", Dial: subscribableServer(&version, held.listen)})
		pinned := core.WithPin(t.Context(), versionOf(1))
		if _, err := p.Call(pinned, "s", "t", nil); err != nil {
			t.Fatal(err)
		}
		held.change(&version)
		synctest.Wait()
		_, err := p.Call(pinned, "s", "t", nil)
		wantError(t, err, core.KindToolChanged, "was not sent")
		time.Sleep(2 * changeDelay)
		if changes.Load() == 0 {
			t.Error("OnChange was not called")
		}
	})
}

// TestReopenedSubscription checks, over HTTP, that the tools are listed again after the stream of a subscription has
// ended and was opened again. It also checks that connecting does not wait for a subscription that the server
// refuses.
func TestReopenedSubscription(t *testing.T) {
	for name, refuse := range map[string]bool{"reopened": false, "refused": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var version, streams, changes atomic.Int64
				version.Store(1)
				h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					body, _ := io.ReadAll(r.Body)
					var req request
					_ = json.Unmarshal(body, &req)
					w.Header().Set("Content-Type", "application/json")
					s := newScripted(strings.NewReader(""), w)
					switch {
					case req.Method == methodDiscover:
						s.reply(req, discovered)
					case req.Method == methodList:
						s.reply(req, `{"tools":[%s],"resultType":"complete"}`, versionOf(version.Load()))
					case req.Method == methodListen && refuse:
						w.WriteHeader(http.StatusNotFound)
					case req.Method == methodListen:
						w.Header().Set("Content-Type", "text/event-stream")
						fmt.Fprintf(w, "retry: 700\ndata: %s\n\n", acknowledgement(req.ID))
						if streams.Add(1) > 1 {
							_ = http.NewResponseController(w).Flush()
							<-r.Context().Done()
						}
					default:
						s.proper(req)
					}
				})
				p := inBubble(t, Options{Identify: identifyText, OnChange: func(string) { changes.Add(1) }}, serveInBubble(t, h))
				began := time.Now()
				pinned := core.WithPin(t.Context(), versionOf(1))
				if _, err := p.Call(pinned, "s", "t", nil); err != nil || time.Since(began) != 0 {
					t.Fatalf("%v, after %s", err, time.Since(began))
				}
				if refuse {
					return
				}
				version.Store(2)
				time.Sleep(time.Second)
				synctest.Wait()
				_, err := p.Call(pinned, "s", "t", nil)
				wantError(t, err, core.KindToolChanged, "was not sent")
				time.Sleep(changeDelay)
				if changes.Load() == 0 {
					t.Error("OnChange was not called")
				}
			})
		})
	}
}
