package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"retort/internal/devel/testenv"
)

const secret = "a secret of more than 24 bytes"

// inBubble starts an HTTP server with the handler h inside a testing/synctest bubble, and returns a WebhookEndpoint
// for it.
func inBubble(t *testing.T, h http.HandlerFunc) *WebhookEndpoint {
	t.Helper()
	pipes, server := testenv.NewPipes(), &http.Server{Handler: h}
	go func() { _ = server.Serve(pipes) }()
	t.Cleanup(func() { _ = server.Close() })
	to, err := New("http://127.0.0.1/hook", secret)
	if err != nil {
		t.Fatal(err)
	}
	to.client.Transport = &http.Transport{DialContext: pipes.Dial}
	return to
}

// TestQueue checks that messages arrive signed, in order and only once. A failed message must be retried after
// increasing delays. It must be dropped if it still fails after several minutes, or if the receiver rejects it.
func TestQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived []string
		failures := map[string]int{"a": 2, "c": 100, "d": -1}
		began := time.Now()
		to := inBubble(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			id, at := r.Header.Get("webhook-id"), r.Header.Get("webhook-timestamp")
			h := hmac.New(sha256.New, []byte(secret))
			fmt.Fprintf(h, "%s.%s.%s", id, at, body)
			if r.Header.Get("webhook-signature") != "v1,"+base64.StdEncoding.EncodeToString(h.Sum(nil)) {
				t.Errorf("not signed: %v", r.Header)
			}
			switch {
			case failures[id] > 0:
				failures[id]--
				w.WriteHeader(http.StatusBadGateway)
			case failures[id] < 0:
				w.WriteHeader(http.StatusBadRequest)
				failures[id]--
			default:
				arrived = append(arrived, fmt.Sprint(id, " after ", time.Since(began)))
			}
		})
		q := NewQueue(to, slog.New(slog.DiscardHandler))
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			if !q.QueueMessage(id, []byte(`{"of":"`+id+`"}`)) {
				t.Fatal("no room")
			}
		}
		time.Sleep(time.Hour)
		if err := q.Close(); err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(arrived, ", "), "a after 15s, b after 15s, e after 5m30s"; got != want || failures["c"] != 100-maxTries || failures["d"] != -2 {
			t.Errorf("arrived: %s, want %s; failures left: %v", got, want, failures)
		}
	})
}

// TestQueueParts checks that Close delivers queued messages for a few seconds and then drops the rest.
func TestQueueParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var arrived atomic.Int32
		q := NewQueue(inBubble(t, func(http.ResponseWriter, *http.Request) {
			time.Sleep(closeTimeout / 3)
			arrived.Add(1)
		}), slog.New(slog.DiscardHandler))
		for range 10 {
			q.QueueMessage("x", []byte("{}"))
		}
		began := time.Now()
		_ = q.Close()
		if took := time.Since(began); took != closeTimeout || arrived.Load() < 2 || arrived.Load() > 3 {
			t.Errorf("closing took %v, in which %d messages arrived; want %v and 2 or 3", took, arrived.Load(), closeTimeout)
		}
		time.Sleep(closeTimeout) // the message that was cut off may have reached its handler, which must end in the bubble
	})
}

// TestQueueNeverWaits checks that QueueMessage does not block when the queue is full, and that Close returns after
// closeTimeout if the endpoint never responds.
func TestQueueNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := NewQueue(inBubble(t, func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the server notices that the client disconnects only after the body was read
			<-r.Context().Done()
		}), slog.New(slog.DiscardHandler))
		put, began := 0, time.Now()
		for range 2 * maxQueued {
			if q.QueueMessage("x", []byte("{}")) {
				put++
			}
		}
		if took := time.Since(began); took != 0 || put < maxQueued || put > maxQueued+1 {
			t.Errorf("%d messages were queued in %v", put, took)
		}
		began = time.Now()
		_ = q.Close()
		if took := time.Since(began); took != closeTimeout {
			t.Errorf("closing took %v, want %v", took, closeTimeout)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	for _, c := range [][2]string{{"http://example.org", secret}, {"ftp://x", secret}, {"https://example.org", "short"}, {"https://example.org", "whsec_?"}} {
		if _, err := New(c[0], c[1]); err == nil {
			t.Errorf("%q with %q is taken", c[0], c[1])
		}
	}
}
